"""Reading a comparison's folder, and grouping any runs by method and seed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rollwise.errors import ConfigError, StateFileError
from rollwise.evaluation.run_sets import group_runs, read_comparison

LINE = '{"step": 0, "eval/pass@1": 0.1}\n'
PLAN = {"name": "mine", "baseline": "uniform", "oracle": None, "methods": {"uniform": {}, "bots": {}}, "seeds": [0, 1]}


def write_run(folder: Path, text: str = LINE, **config: Any) -> Path:
    folder.mkdir(parents=True)
    (folder / "metrics.jsonl").write_text(text)
    if config:
        (folder / "config.yaml").write_text(json.dumps(config))
    return folder


def write_plan(folder: Path, **changes: Any) -> Path:
    (folder / "comparison.yaml").write_text(json.dumps({**PLAN, **changes}))
    return folder


def test_a_folder_with_missing_damaged_and_strange_runs(tmp_path: Path) -> None:
    write_plan(tmp_path)
    runs = tmp_path / "runs"
    write_run(runs / "uniform/seed0")
    write_run(runs / "uniform/seed1", "torn\n" + LINE)
    (runs / "bots/seed0").mkdir(parents=True)
    (runs / "bots/seed0/config.yaml").write_text("steps: 5\n")
    write_run(runs / "bots/seed7")
    found = read_comparison(tmp_path)
    assert {method: list(seeds) for method, seeds in found.runs.items()} == {"uniform": [0], "bots": []}
    assert [(p.kind, str(p).split(":")[0]) for p in found.problems] == [
        ("damaged", "uniform seed 1"),
        ("missing", "bots seed 0"),
        ("waiting", "bots"),
        ("unknown", "bots/seed7 is not in comparison.yaml, and is left out"),
    ]
    assert "line 1" in found.problems[0].text
    assert "has begun" in found.problems[1].text
    assert str(found.problems[2]) == "bots: seed 1: not begun"
    assert (found.name, found.baseline, found.oracle, found.budget) == ("mine", "uniform", None, None)


def test_a_torn_last_line_is_no_problem(tmp_path: Path) -> None:
    write_run(write_plan(tmp_path, methods={"uniform": {}}, seeds=[0]) / "runs/uniform/seed0", LINE + '{"step": 1, "ev')
    assert read_comparison(tmp_path).problems == ()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"methods": {}}, "'methods' must map names to options"),
        ({"seeds": 3}, "'seeds' must be a list of whole numbers, got 3"),
        ({"seeds": [0, True]}, "'seeds' must be a list"),
        ({"baseline": "random"}, r"baseline 'random' is none of the methods \['uniform', 'bots'\]"),
        ({"baseline": None}, "baseline None"),
        ({"oracle": "best"}, "oracle 'best' is none"),
        ({"budget": {"tokens": 0}}, "'budget' must be {tokens: N}"),
        ({"budget": 5e5}, "'budget' must be {tokens: N}"),
    ],
)
def test_a_plan_that_does_not_hold(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_comparison(write_plan(tmp_path, **changes))


def test_the_budget_of_a_plan(tmp_path: Path) -> None:
    assert read_comparison(write_plan(tmp_path, budget={"tokens": 500_000})).budget == 500_000


def test_no_plan(tmp_path: Path) -> None:
    with pytest.raises(StateFileError, match=r"comparison\.yaml is missing; give the folder"):
        read_comparison(tmp_path)
    (tmp_path / "comparison.yaml").write_text("a: [")
    with pytest.raises(StateFileError, match="not valid YAML"):
        read_comparison(tmp_path)
    (tmp_path / "comparison.yaml").write_text("- a")
    with pytest.raises(ConfigError, match="holds a list"):
        read_comparison(tmp_path)


def test_labels_say_what_differs(tmp_path: Path) -> None:
    base = {"task": "countdown", "steps": 60, "gate": "none", "out": "x"}
    ungated = {"task": "countdown", "steps": 60}
    options = {"ema": 0.9, "lanes": {"a": [1] * 9}}
    gate = {"gate": "mixed", "gate_options": {"max_rounds": 4}}
    paths = [
        write_run(tmp_path / "a", **base, curriculum="uniform", seed=0),
        write_run(tmp_path / "b", **base, curriculum="uniform", seed=1),
        write_run(tmp_path / "c", **base, curriculum="prioritized", curriculum_options=options, seed=0),
        write_run(tmp_path / "d", **ungated, **gate, curriculum="uniform", seed=0),
        write_run(tmp_path / "e", **ungated, curriculum="uniform", seed=0),
        write_run(tmp_path / "bare-run-seed3"),
    ]  # fmt: skip
    found = group_runs(paths)
    assert {method: list(seeds) for method, seeds in found.runs.items()} == {
        "uniform": [0, 1],
        "prioritized (ema=0.9, lanes={…})": [0],
        "uniform + mixed (max_rounds=4)": [0],
        "uniform [e]": [0],
        "bare-run": [3],
    }
    assert (found.baseline, found.oracle) == ("uniform", None)
    longer = write_run(tmp_path / "f", **{**base, "steps": 90}, curriculum="uniform", seed=0)
    assert list(group_runs([paths[0], longer]).runs) == ["uniform, steps=60", "uniform, steps=90"]


def test_the_baseline_and_the_oracle_of_grouped_runs(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / name, curriculum=name, seed=0) for name in ("sec", "oracle", "bots")]
    found = group_runs(paths)
    assert (found.baseline, found.oracle) == ("sec", "oracle")
    assert group_runs(paths, baseline="bots").baseline == "bots"
    with pytest.raises(ConfigError, match="baseline 'uniform' is none"):
        group_runs(paths, baseline="uniform")


def test_grouped_runs_that_can_not_be_read_are_named(tmp_path: Path) -> None:
    found = group_runs([write_run(tmp_path / "a", curriculum="sec"), tmp_path / "nowhere"])
    (problem,) = found.problems
    assert "nowhere' is not a folder" in str(problem)
    with pytest.raises(ConfigError, match=r"no run to compare; .*nowhere"):
        group_runs([tmp_path / "nowhere"])
    with pytest.raises(ConfigError, match="give run folders"):
        group_runs([])


def test_runs_that_are_scored_on_different_things(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / str(n), curriculum="sec", seed=0, eval_samples=n) for n in (4, 8)]
    (problem,) = group_runs(paths).problems
    assert problem.kind == "unequal"
    assert str(problem) == "the runs differ in eval_samples (4, 8), so their scores do not measure the same"
