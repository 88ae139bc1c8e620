"""Through a gate, two gloo ranks decide alike, and train on whole groups that straddle them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toys import PROMPTS


@pytest.mark.parametrize("group", [4, 3])  # of 3, a round must be of 2 groups, or the ranks would have unequal shares
@pytest.mark.slow
def test_two_ranks_train_on_the_same_admitted_groups_and_resume(
    group: int, two_processes: Callable[[str], Path]
) -> None:
    folder = two_processes(f"gate-{group}")
    first, second = json.loads((folder / "straight.json").read_text())
    assert first["parameters"] == second["parameters"]
    assert second["trace"] == second["groups"] == []  # rank 0 alone asks, is told, and decides
    assert len(first["groups"]) == len(first["generations"]) == 2
    assert first["gate"]["rounds"] > 2
    for groups, one, two in zip(first["groups"], first["generations"], second["generations"], strict=True):
        check(groups, one, two, group)
    sizes = [np.bincount(g["rounds"])[1:].tolist() for g in first["groups"]]
    if group == 3:
        assert all(n % 2 == 0 for rounds in sizes for n in rounds)
    else:
        assert any(n % 2 for rounds in sizes for n in rounds)  # some group lay on both ranks

    resumed: list[dict[str, Any]] = json.loads((folder / "resumed.json").read_text())
    assert {r["parameters"] for r in resumed} == {first["parameters"]}
    assert resumed[0]["trace"] == first["trace"][-len(resumed[0]["trace"]) :]
    assert resumed[0]["gate"] == first["gate"]


def check(groups: dict[str, Any], one: dict[str, Any], two: dict[str, Any], group: int) -> None:
    rows = np.flatnonzero(groups["trained"])
    admitted = np.flatnonzero(groups["admitted"])
    assert len(rows) == PROMPTS
    assert set(rows) <= set(admitted)
    assert rows.tolist() == admitted[:PROMPTS].tolist()  # the first that were admitted
    assert groups["gate"]["surplus"] == len(admitted) - PROMPTS
    both = {name: one[name] + two[name] for name in one if name != "items"}
    assert both["prompts"] == [groups["prompts"][i] for i in rows for _ in range(group)]
    assert both["texts"] == [text for i in rows for text in groups["texts"][i]]
    assert both["lengths"] == [n for i in rows for n in groups["lengths"][i]]
    assert one["items"] == two["items"] == sum(both["lengths"])
    rewards = np.array([groups["rewards"][i] for i in rows])
    scaled = (rewards - rewards.mean(1, keepdims=True)) / (rewards.std(1, ddof=1, keepdims=True) + 1e-4)
    assert both["advantages"] == pytest.approx(scaled.ravel().tolist(), abs=1e-5)
    assert all(old < 0 for old in both["old"])
