"""The adapter to Trinity-RFT over its scheduler."""

import asyncio
import importlib
import json
from typing import Any

import pytest
from engines.worlds import other_signature

from rollwise.errors import ConfigError, SilentNoOpError, StateError

ROWS = [{"question": f"{i}+{i}=", "answer": str(2 * i), "category": f"c{i % 3}"} for i in range(60)]
KWARGS = {"curriculum": "bots", "n_rollouts": 8}


def metric() -> str:
    """Where the scheduler looks for what the operator `pass_rate_calculator` has found."""
    return str(importlib.import_module("trinity.buffer.task_scheduler").SELECTOR_METRIC)


def step(scheduler: Any, *, told: bool = True) -> list[int]:
    """One step of the explorer; the mean reward is a function of the row."""
    indices = [int(task.index["index"]) for task in asyncio.run(scheduler.read())]
    if told:
        means = [(index % 9) / 8 for index in indices]
        scheduler.feedback({metric(): {0: {"indices": indices, "values": means}}})
    return indices


def selector_of(scheduler: Any) -> Any:
    return scheduler.selector if hasattr(scheduler, "selector") else scheduler.tasksets[0].reader.selector


def again(make_scheduler: Any, saved: Any, latest: int, *, rows: list[dict[str, Any]] = ROWS) -> Any:
    """A scheduler that goes on from the state of another one."""
    state = json.loads(json.dumps({"taskset_states": saved.state_dict(), "latest_iteration": latest}))
    return make_scheduler(rows, KWARGS, state)


def test_a_hook_that_moved_is_named(trinity: Any, make_scheduler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trinity.BaseSelector, "feedback", other_signature)
    with pytest.raises(SilentNoOpError, match=r"BaseSelector\.feedback takes \['nothing'\]"):
        make_scheduler(ROWS, KWARGS, {})


def test_a_resumed_run_asks_as_the_straight_one(make_scheduler: Any) -> None:
    straight = make_scheduler(ROWS, KWARGS, {})
    for _ in range(3):
        step(straight)
    resumed = again(make_scheduler, straight, 3)
    assert [step(straight) for _ in range(4)] == [step(resumed) for _ in range(4)]
    metrics = selector_of(resumed).service.metrics()
    assert (metrics["told"], metrics["open"]) == (28, 0)


def test_prompts_that_were_in_flight_at_a_save_are_free_after_the_resume(make_scheduler: Any) -> None:
    """Trinity does not roll them out again: they were in flight for another hundred steps."""
    killed = make_scheduler(ROWS[:6], KWARGS, {})
    step(killed, told=False)
    resumed = again(make_scheduler, killed, 1, rows=ROWS[:6])
    assert len(step(resumed)) == 4


def test_a_mean_without_a_count_is_not_one_rollout_without_contrast(make_scheduler: Any) -> None:
    scheduler = make_scheduler(ROWS, KWARGS, {})
    indices = [int(task.index["index"]) for task in asyncio.run(scheduler.read())]
    scheduler.feedback({metric(): {0: {"indices": indices, "values": [0.5, 0.0, 1.0, 0.5]}}})
    metrics = selector_of(scheduler).service.metrics()
    assert (metrics["mixed"], metrics["all_bad"], metrics["all_good"]) == (2, 1, 1)


def test_feedback_that_never_comes_is_an_error_that_names_the_operator(make_scheduler: Any) -> None:
    scheduler = make_scheduler(ROWS, KWARGS, {})
    with pytest.raises(SilentNoOpError, match="pass_rate_calculator"):
        for _ in range(len(ROWS)):
            asyncio.run(scheduler.read())
            scheduler.feedback({"rollout/reward": 0.5})  # without the operator there is no selector metric


def test_feedback_that_never_comes_is_noticed_in_a_large_pool_too(make_scheduler: Any) -> None:
    scheduler = make_scheduler(ROWS, {**KWARGS, "silent_after": 20}, {})
    with pytest.raises(SilentNoOpError, match="20 tickets were asked"):
        for _ in range(6):
            asyncio.run(scheduler.read())


def test_a_prompt_that_is_heard_in_two_parts_is_told_once(make_scheduler: Any) -> None:
    scheduler = make_scheduler(ROWS, KWARGS, {})
    indices = step(scheduler)
    scheduler.feedback({metric(): {0: {"indices": indices[:1], "values": [1.0]}}})
    selector = selector_of(scheduler)
    assert selector.not_open == 1
    assert selector.service.metrics()["told"] == 4


def test_the_state_of_another_selector_is_refused(make_scheduler: Any) -> None:
    make_scheduler(ROWS, KWARGS, {"taskset_states": [{"current_index": 0}]})
    with pytest.raises(StateError, match="another selector's state"):
        make_scheduler(ROWS, KWARGS, {"taskset_states": [{"current_index": 32}]})


def test_the_number_of_rollouts_must_be_given(make_scheduler: Any) -> None:
    with pytest.raises(ConfigError, match=r"algorithm\.repeat_times"):
        make_scheduler(ROWS, {"curriculum": "bots"}, {})
