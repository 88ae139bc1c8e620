"""TRL's asynchronous trainer with a curriculum: its loop asks and tells, resumes exactly, and its worker is spawned."""

from __future__ import annotations

import asyncio
import inspect
import json
import queue
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
from accelerate import PartialState
from trl.experimental.async_grpo import async_rollout_worker as trl_worker
from trl.experimental.async_grpo.async_grpo_trainer import AsyncGRPOTrainer
from trl_async_parts import GROUP, MadeUpWorker, group_of, make_service, options

import rollwise as rw
from rollwise.engines import CurriculumService
from rollwise.engines.trl_async import CurriculumRolloutLoop, CurriculumRolloutWorker
from rollwise.errors import ConfigError, RewardError, SilentNoOpError


def make_loop(service: Any, kind: type = CurriculumRolloutLoop, **given: Any) -> Any:
    PartialState(cpu=True)  # TRL's logger wants it
    ctx = get_context("spawn")
    shared = {"rollout_buffer": queue.Queue(), "metrics_queue": queue.Queue(), "exception_info_queue": queue.Queue()}
    shared |= {"model_version_value": ctx.Value("i", 0), "heartbeat_value": ctx.Value("d", 0.0)}
    return kind(service=service, failed_event=ctx.Event(), **shared, **options(**given))


def take(groups: Any) -> tuple[int, dict[str, Any]]:
    """The next group of the loop's iterator: TRL takes a rollout at a time."""
    rows = [next(groups) for _ in range(GROUP)]
    assert all(row == rows[0] for row in rows)
    return rows[0]


def score(loop: Any, group_id: int, row: dict[str, Any]) -> None:
    asyncio.run(loop._score_group(group_of(group_id, row, list("0123"))))


@pytest.mark.parametrize(
    ("owner", "name", "parameters"),
    [
        (trl_worker._AsyncRolloutLoop, "_repeat_iterator", ["self"]),
        (trl_worker._AsyncRolloutLoop, "_score_group", ["self", "group"]),
        (trl_worker._AsyncRolloutLoop, "_push_metrics", ["self", "values"]),
        (trl_worker.AsyncRolloutWorker, "update_model_version", ["self", "model_version"]),
        (AsyncGRPOTrainer, "_save_checkpoint", ["self", "model", "trial"]),
        (AsyncGRPOTrainer, "_inner_training_loop", ["self", "args", "kwargs"]),
    ],
)
def test_the_hooks_are_where_they_were(owner: type, name: str, parameters: list[str]) -> None:
    found = vars(owner).get(name)
    assert found is not None, f"TRL has moved {owner.__name__}.{name}"
    assert list(inspect.signature(found).parameters) == parameters, f"TRL has changed {owner.__name__}.{name}"


def test_trl_makes_the_loop_by_loop_cls_and_takes_a_worker() -> None:
    assert trl_worker.AsyncRolloutWorker._loop_cls is trl_worker._AsyncRolloutLoop, "TRL has moved _loop_cls"
    assert "rollout_worker" in inspect.signature(AsyncGRPOTrainer).parameters, "TRL has moved rollout_worker"


def test_resumed_it_asks_as_if_it_had_never_stopped() -> None:
    service = make_service()
    loop = make_loop(service)
    groups = loop._repeat_iterator()
    taken = [take(groups) for _ in range(5)]
    for group in taken[:3]:
        score(loop, *group)
    state = json.loads(json.dumps(service.state_dict()))  # two groups are out

    again = make_service()
    again.load_state_dict(state)
    resumed = make_loop(again)
    rolled_out = resumed._repeat_iterator()
    open_then = [take(rolled_out) for _ in range(2)]
    assert [row["prompt"] for _, row in open_then] == [row["prompt"] for _, row in taken[3:]]
    for group in taken[3:]:
        score(loop, *group)
    for group in open_then:
        score(resumed, *group)
    for _ in range(6):
        one, other = take(groups), take(rolled_out)
        assert one[1] == other[1]
        score(loop, *one)
        score(resumed, *other)
    assert service.metrics()["told"] == again.metrics()["told"] == 11
    assert service.metrics()["mixed"] == again.metrics()["mixed"] > 0


def test_each_conversations_reward_is_told_once_however_many_rows_it_trains() -> None:
    service = make_service()
    loop = make_loop(service)
    group_id, row = take(loop._repeat_iterator())
    ticket = service.open_tickets()[0]
    group = group_of(group_id, {**row, "level": 2}, ["0", "?", "1", "3"], rows=[2, 1, 0, 3])
    samples = asyncio.run(loop._score_group(group))
    plain = asyncio.run(trl_worker._AsyncRolloutLoop._score_group(loop, group))
    assert len(samples) == len(plain) == 6
    for ours, theirs in zip(samples, plain, strict=True):
        assert (ours.advantage, ours.input_ids.tolist()) == (theirs.advantage, theirs.input_ids.tolist())
        np.testing.assert_equal(ours.metrics, theirs.metrics)
    assert service.ticket_status(ticket.id) == "told"
    metrics = service.metrics()
    assert (metrics["rollouts"], metrics["failed"], metrics["mixed"]) == (3, 1, 1)  # 1, 1, 0 and one that failed


def test_what_it_can_not_do_is_refused() -> None:
    with pytest.raises(ConfigError, match="up to 20 prompts are in flight, and the data set has 10"):
        make_loop(make_service(), dataset=options()["dataset"].select(range(10)))
    with pytest.raises(ConfigError, match="wants probes or judgments"):
        make_loop(make_service("lilo"))
    with pytest.raises(ConfigError, match=r"success must be one of the reward functions \['reward'\], got 'other'"):
        make_loop(make_service(), success="other")
    other = options()["dataset"].map(lambda row: {"prompt": [{"role": "user", "content": "x" + str(row["level"])}]})
    with pytest.raises(SilentNoOpError, match="is not in train_dataset"):
        take(make_loop(make_service(), dataset=other)._repeat_iterator())
    exhausted = make_loop(make_service(n=2))._repeat_iterator()
    take(exhausted), take(exhausted)
    with pytest.raises(SilentNoOpError, match="gave no prompt"):
        take(exhausted)
    wrong = make_loop(make_service(), reward_funcs=[far_off])
    with pytest.raises(RewardError, match="1000"):
        score(wrong, *take(wrong._repeat_iterator()))


def test_an_allocator_which_divides_nothing_among_one_prompt_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(8)])
    with pytest.raises(ConfigError, match="Knapsack divides rollouts .* asks for one prompt at a time"):
        CurriculumRolloutWorker(service=CurriculumService(rw.BOTS(pool, allocator="knapsack")))
    with pytest.raises((ImportError, TypeError)):  # of TRL, which wants vLLM, and more arguments
        CurriculumRolloutWorker(service=CurriculumService(rw.BOTS(pool, adaptive="score")))
    assert "BOTS follows the score of evaluations, which TRL's asynchronous worker has no place for" in caplog.text


def far_off(completions: list[Any], **_: Any) -> list[float]:
    return [1000.0] * len(completions)


@pytest.mark.slow
def test_the_spawned_worker_asks_and_tells_the_service_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("vllm", "aiohttp"):
        monkeypatch.setattr(trl_worker, f"is_{package}_available", lambda: True)
    PartialState(cpu=True)  # TRL's logger wants it
    service = make_service()
    worker = MadeUpWorker(service=service, queue_maxsize=8, **options())
    worker.start()
    samples = [worker.rollout_buffer.get(timeout=300) for _ in range(10 * GROUP)]
    worker.update_model_version(2)
    later = next(s for s in iter(lambda: worker.rollout_buffer.get(timeout=300), None) if s.model_version == 2)
    worker.check_health(300)
    assert service.status()["step"] == 2
    assert later.group_id > samples[-1].group_id
    assert service.metrics()["told"] >= 11
    assert service.metrics()["mixed"] > 0
    worker.stop()
