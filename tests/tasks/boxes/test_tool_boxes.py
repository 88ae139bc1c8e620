"""Boxes: its scenarios, its tools, and the credit of a turn worked out by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rollwise.errors import ConfigError, TaskError
from rollwise.tasks import Boxes, ToolError
from rollwise.tasks.boxes.scenarios import read_scenario
from rollwise.tasks.boxes.task import BoxesEnvironment, turn_credit
from rollwise.tasks.tool_conversation import OVER, tools_of, trajectory_reward


def playing(scenario: str) -> BoxesEnvironment:
    environment = BoxesEnvironment()
    environment.reset(id=scenario, prompt=[], category="", difficulty=0.0)
    return environment


def test_a_turns_credit_counts_the_ordered_boxes_and_the_wrong_ones() -> None:
    """Ordered: a and b. Right: a. Wrong: b, and d, which nobody asked for. So 1 of {a, b, d}."""
    wanted = {"a": 5, "b": 4, "c": 0, "d": 2}
    reached = {"a": 5, "b": 5, "c": 0, "d": 3}
    assert turn_credit(reached, wanted, {"a", "b"}) == pytest.approx(1 / 3)
    assert turn_credit(wanted, wanted, {"a", "b"}) == 1.0


def test_a_trajectorys_reward_is_the_mean_over_turns_reached_or_not() -> None:
    """Boxes hold 3, 5, 0, 2. Turn 1, +a2 -b1: a right, b left alone: 1/2. Turn 2, ~d: d right, but b is still wrong: of
    {d, b} one is right: 1/2. Turn 3 is not reached: 0. (1/2 + 1/2 + 0) / 3 = 1/3."""
    environment = playing("3502|+a2-b1|~d|+c1")
    assert environment.put("a", 2) == 5
    assert environment.next_request() == "Empty d."
    assert environment.look("d") == 2
    assert environment.take("d", 2) == 0
    assert environment.turns_reached == 2
    assert environment.reward == pytest.approx(1 / 3)
    assert environment.reward == pytest.approx(1 / 3)  # reading it twice changes nothing
    assert trajectory_reward([0.5, 0.5], 3) == pytest.approx(1 / 3)


def test_everything_right_is_1_and_nothing_done_is_0() -> None:
    environment = playing("3502|+a2|~d")
    assert environment.reward == 0.0
    environment.reset(id="3502|+a2|~d")
    environment.put("a", 2)
    environment.next_request()
    environment.take("d", 2)
    assert environment.next_request() == OVER
    assert environment.reward == 1.0


def test_a_wrong_call_changes_nothing_and_says_why() -> None:
    environment = playing("3502|+a2")
    for call, message in [
        (lambda: environment.put("x", 1), "no box 'x'"),
        (lambda: environment.put("a", 7), "box a holds 3 of 9"),
        (lambda: environment.take("c", 1), "box c holds 0"),
        (lambda: environment.put("a", "2"), "whole number from 1 to 9, got '2'"),  # type: ignore[arg-type]
        (lambda: environment.put("a", 0), "got 0"),
    ]:
        with pytest.raises(ToolError, match=message):
            call()
    assert [environment.look(box) for box in "abcd"] == [3, 5, 0, 2]
    environment.next_request()
    with pytest.raises(ToolError, match="no more requests"):
        environment.put("a", 2)


def test_a_reset_begins_anew() -> None:
    environment = playing("3502|+a2|+a1")
    environment.put("a", 2)
    environment.next_request()
    environment.reset(id="1111|-b1")
    assert environment.look("a") == 1
    assert environment.turns_reached == 1
    environment.take("b", 1)
    assert environment.reward == 1.0


def test_what_is_no_tool_is_not_offered() -> None:
    assert [tool.__name__ for tool in tools_of(BoxesEnvironment())] == ["look", "next_request", "put", "take"]


def test_sides_never_meet_and_ids_tell_the_scenario() -> None:
    task = Boxes(turns=(1, 2), orders=2)
    train = {r["id"] for seed in (0, 1) for r in task.train_records(300, seed)}
    held_out = task.eval_records(100, 0)
    assert not train & {r["id"] for r in held_out}
    for row in held_out:
        assert read_scenario(row["id"]).key == row["id"]
        assert row["prompt"][-1]["content"] == read_scenario(row["id"]).requests[0]
    assert {r["category"] for r in held_out} == {"1 turns", "2 turns"}
    assert task.train_records(5, 3) == task.train_records(5, 3)


def test_demonstrations_without_slips_earn_1_and_with_slips_less() -> None:
    """The conversation is played again from its messages alone."""
    task = Boxes(turns=(2,), orders=2)
    means = {}
    for accuracy in (1.0, 0.6):
        rewards = []
        for demo in task.demonstrations(60, 0, accuracy=accuracy):
            rewards.append(replayed(task, demo))
        means[accuracy] = sum(rewards) / len(rewards)
    assert means[1.0] == 1.0
    assert 0.1 < means[0.6] < 0.95


def replayed(task: Boxes, demo: dict) -> float:  # type: ignore[type-arg]
    """The demonstrator's calls, made again; the scenario is the one whose requests the messages quote."""
    environment = task.environment()
    asked = [demo["prompt"][-1]["content"]]
    asked += [m["content"] for m in demo["completion"] if m.get("name") == "next_request" and m["content"] != OVER]
    looked = {m["content"] for m in demo["completion"]}
    assert OVER in looked
    environment.reset(id=demo["id"])
    assert environment._requests == asked
    for message in demo["completion"]:
        for call in message.get("tool_calls", []):
            try:
                getattr(environment, call["function"]["name"])(**call["function"]["arguments"])
            except ToolError:
                continue
    reward = environment.reward
    assert reward is not None
    return reward


def test_bad_options_and_ids_are_refused() -> None:
    for options in ({"turns": ()}, {"turns": (0,)}, {"orders": 5}, {"empty": 1.5}, {"slips": -1}, {"eval_share": 1}):
        with pytest.raises(ConfigError, match=next(iter(options))):
            Boxes(**options)
    for key in ("12|+a1", "1234", "1234|a1", "1234|+z1", "abcd|+a1"):
        with pytest.raises(TaskError, match="no scenario"):
            read_scenario(key)
    with pytest.raises(TaskError, match="environment_factory=task.environment"):
        Boxes().reward([""], [""])


def test_the_environment_of_the_docs_runs() -> None:
    """22 wanted and set: 1. Then 18 wanted, left at 22: 1 - 4/10. The mean of 1 and 0.6 is 0.8."""
    page = (Path(__file__).parents[3] / "docs/agentic.md").read_text()
    block = next(b for b in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "Thermostat" in b)
    names: dict[str, Any] = {}
    exec(block, names)
    environment = names["Thermostat"]()
    environment.reset(wanted=[22, 18])
    assert [tool.__name__ for tool in tools_of(environment)] == ["next_request", "set_temperature"]
    environment.set_temperature(22)
    assert environment.next_request() == "Make it 18 degrees."
    with pytest.raises(ToolError, match="from 5 to 30"):
        environment.set_temperature(90)
    assert environment.reward == pytest.approx(0.8)


def test_turns_must_be_several_numbers_and_accuracy_a_share() -> None:
    with pytest.raises(ConfigError, match=r"turns must be one or more whole numbers in \[1, 8\], got 3"):
        Boxes(turns=3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="accuracy must be"):
        Boxes().demonstrations(1, 0, accuracy=2.0)
