"""The adapter to Tinker's cookbook over its `do_group_rollout`."""

import asyncio
import importlib
import pickle
from pathlib import Path
from typing import Any

import pytest
from engines.worlds import other_signature

import rollwise as rw
from rollwise.errors import ConfigError, SilentNoOpError, StateFileError

TIMEOUT = "rollout_timeout"


def rewards_of(prompt_id: str) -> list[tuple[float, str | None]]:
    """Four rollouts of a prompt; every eleventh fails before any."""
    number = int(prompt_id[1:])
    return [] if number % 11 == 0 else [(float((number * 7 + k) % 5 < 2), None) for k in range(4)]


def make(tinker: Any, group: Any, folder: Path, rollouts: Any = rewards_of, **options: Any) -> Any:
    curriculum = rw.Recommended(rw.PromptPool(ids=[f"p{i}" for i in range(40)]), seed=2)
    return tinker.CurriculumRLDataset(
        curriculum,
        lambda ticket: group.make(rollouts(ticket.prompt_id)),
        **{"batches": 9, "batch_size": 5, "group_size": 4, "folder": folder, **options},
    )


def run(data: Any, group: Any, steps: range, **options: Any) -> list[list[str]]:
    rollouts = importlib.import_module("tinker_cookbook.rl.rollouts")

    async def all_steps() -> list[list[str]]:
        asked = []
        for index in steps:
            groups = data.get_batch(index)
            asked.append([one.ticket.prompt_id for one in groups])
            for one in groups:
                try:
                    await rollouts.do_group_rollout(one, group.policy, **options)
                except RuntimeError:
                    assert rewards_of(one.ticket.prompt_id) == []
        return asked

    return asyncio.run(all_steps())


def test_a_hook_that_moved_is_named(
    tinker: Any, tinker_group: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tinker.EnvGroupBuilder, "cleanup", other_signature)
    with pytest.raises(SilentNoOpError, match=r"EnvGroupBuilder\.cleanup takes"):
        make(tinker, tinker_group, tmp_path)


def test_a_resumed_run_asks_as_the_straight_one(tinker: Any, tinker_group: Any, tmp_path: Path) -> None:
    first = make(tinker, tinker_group, tmp_path)
    straight = run(first, tinker_group, range(6))
    metrics = first.service.metrics()
    assert metrics["told"] == 30
    assert metrics["open"] == 0
    assert metrics["failed"] > 0
    first.service.close()
    assert run(make(tinker, tinker_group, tmp_path), tinker_group, range(3, 6)) == straight[3:]


def test_groups_that_were_in_flight_at_a_save_are_free_after_the_resume(
    tinker: Any, tinker_group: Any, tmp_path: Path
) -> None:
    """Tinker's asynchronous training reads batches ahead, and loses them at a restart."""
    first = make(tinker, tinker_group, tmp_path, batch_size=15)
    for index in range(2):
        first.get_batch(index)
    first.service.save(2)
    first.service.close()
    second = make(tinker, tinker_group, tmp_path, batch_size=15)
    assert len(second.get_batch(2)) == 15
    assert second.service.metrics()["open"] == 15


def test_a_batch_without_a_saved_state_is_an_error(tinker: Any, tinker_group: Any, tmp_path: Path) -> None:
    with pytest.raises(StateFileError):
        make(tinker, tinker_group, tmp_path, save_every=2).get_batch(3)


def test_a_finished_run_can_be_made_longer(
    tinker: Any, tinker_group: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No state is saved after a run's last batch, nor at a rolling checkpoint: resumed there it was an error."""
    first = make(tinker, tinker_group, tmp_path, save_every=2)
    run(first, tinker_group, range(5))
    first.service.close()
    second = make(tinker, tinker_group, tmp_path, save_every=2)
    run(second, tinker_group, range(5, 7))
    assert "as it was at batch 4" in caplog.text
    assert second.service.metrics()["told"] == 30  # of 35: those of batch 4 came after its state
    assert second.service.saved_steps() == [0, 2, 4, 6]


def test_a_second_pass_over_the_batches_is_refused(tinker: Any, tinker_group: Any, tmp_path: Path) -> None:
    """With Tinker's num_epochs=2 the batches have the numbers of the first pass again: the clock stood still, and the
    state of batch 0 took the place of those saved before."""
    data = make(tinker, tinker_group, tmp_path, batches=4)
    run(data, tinker_group, range(4))
    with pytest.raises(ConfigError, match="num_epochs"):
        data.get_batch(4 % len(data))
    assert data.service.saved_steps() == [0, 1, 2, 3]


def told_after(
    tinker: Any, group: Any, folder: Path, rollouts: list[tuple[float, str | None]], policy: Any, **options: Any
) -> tuple[dict[str, float], list[float]]:
    """What one group was told, and what `do_group_rollout` returns for training."""
    data = make(tinker, group, folder, lambda _: rollouts, batch_size=1, termination=policy)
    (one,) = data.get_batch(0)
    engine = importlib.import_module("tinker_cookbook.rl.rollouts")
    trained = asyncio.run(engine.do_group_rollout(one, group.policy, termination=policy, **options))
    return data.service.metrics(), trained.get_total_rewards()


def test_clamped_rewards_are_told_as_they_are_trained_on(
    tinker: Any, tinker_group: Any, termination: Any, tmp_path: Path
) -> None:
    rollouts = [(1.0, "max_tokens")] * 4  # graded 1, trained on as 0
    metrics, trained = told_after(tinker, tinker_group, tmp_path, rollouts, termination())
    assert trained == [0.0] * 4
    assert (metrics["all_bad"], metrics["all_good"]) == (1, 0)


def test_a_group_whose_grading_is_skipped_is_told_as_it_is_trained_on(
    tinker: Any, tinker_group: Any, termination: Any, tmp_path: Path
) -> None:
    policy = termination(skip_grading_on_timeout=True)
    rollouts = [(1.0, TIMEOUT)] * 4
    strategies = importlib.import_module("tinker_cookbook.rl.rollout_strategy")
    listening = tinker.Listening(strategies.FailFast())
    metrics, trained = told_after(tinker, tinker_group, tmp_path, rollouts, policy, strategy=listening)
    assert trained == [0.0] * 4
    assert (metrics["all_bad"], metrics["failed"]) == (1, 0)


def test_a_group_can_not_go_to_another_process(tinker: Any, tinker_group: Any, tmp_path: Path) -> None:
    (one, *_) = make(tinker, tinker_group, tmp_path).get_batch(0)
    with pytest.raises(ConfigError, match="set_rollout_executor"):
        pickle.dumps(one)
