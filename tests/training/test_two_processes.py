"""Two gloo ranks train on one choice, and resume exactly."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from toys import GROUP, PROMPTS, toy_dataset
from two_ranks_evaluated import SETS

from rollwise.prompt_ids import content_id
from rollwise.runs.evaluations import read_evaluations


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


@pytest.mark.slow
def test_prompts_that_fill_up_the_batches_of_an_evaluation_do_not_count(two_processes: Callable[[str], Path]) -> None:
    """Neither in a set's score, nor in what the sets weigh; every result stands under its own prompt."""
    run = two_processes("evaluated") / "run"
    line = json.loads((run / "metrics.jsonl").read_text())
    for one in read_evaluations(run):
        n, solved = SETS[str(one.set)]
        assert one.ids == [f"h{i}" for i in range(n)]
        assert one.successes.tolist() == [2] * solved + [0] * (n - solved)
        assert line[f"eval/{one.set}/pass@1"] == pytest.approx(solved / n, abs=1e-6)
        assert line[f"eval/{one.set}/reward"] == pytest.approx(solved / n, abs=1e-6)
    assert line["eval/pass@1"] == pytest.approx(4 / 10, abs=1e-6)


@pytest.mark.slow
def test_ranks_with_other_rows_are_refused_on_all_of_them(two_processes: Callable[[str], Path]) -> None:
    """Rows are sent by their numbers: a rank whose data set was shuffled otherwise rolled out other prompts."""
    first, second = json.loads((two_processes("other-rows") / "said.json").read_text())
    names = ("train_dataset", "eval_dataset", "dataset")
    assert [text.partition(", so it")[0] for text in first] == [
        f"rank 1 has other rows in {name} than rank 0" for name in names
    ]
    assert second == first
