"""Two gloo ranks train on one choice, and resume exactly."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from toys import GROUP, PROMPTS, toy_dataset

from rollwise.prompt_ids import content_id


@pytest.mark.slow
def test_both_ranks_train_on_the_same_choice_and_resume(two_processes: Callable[[str], Path]) -> None:
    folder = two_processes("plain")
    first, second = json.loads((folder / "straight.json").read_text())
    assert (first["rank"], second["rank"]) == (0, 1)
    assert first["parameters"] == second["parameters"]
    assert second["trace"] == []  # rank 0 alone asks and is told
    assert (first["bound"], second["bound"]) == (True, False)  # and holds the prompts' beliefs
    prompt_of = {content_id(row["prompt"]): row["prompt"] for row in toy_dataset()}
    asked = [what for kind, what in first["trace"] if kind == "ask"]
    assert len(asked) == 4
    for step, ids in enumerate(asked):
        chosen = [prompt_of[i] for i in ids for _ in range(GROUP)]
        assert len(set(ids)) == PROMPTS
        assert first["seen"][step] + second["seen"][step] == chosen  # each rank its own contiguous slice

    resumed: list[dict[str, Any]] = json.loads((folder / "resumed.json").read_text())
    assert resumed[0]["trace"] == first["trace"][4:]
    assert {r["parameters"] for r in resumed} == {first["parameters"]}
