"""Reading a comparison's folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rollwise.errors import ConfigError, StateFileError
from rollwise.runs.sets import for_choosing, read_comparison

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
        ({"seeds": 3}, "seeds must be a list of whole numbers, got 3"),
        ({"seeds": [0, True]}, "seeds must be a whole number >= 0, got True"),
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


def test_a_run_for_choosing_is_one_however_its_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `.`, from within it, and by a link."""
    folder = write_plan(tmp_path, seeds={"tune": [10], "report": [0]}) / "runs/uniform/seed10"
    folder.mkdir(parents=True)
    (tmp_path / "latest").symlink_to(folder)
    monkeypatch.chdir(folder)
    assert [for_choosing(path) for path in (folder, Path(), tmp_path / "latest")] == [True, True, True]
    assert not for_choosing(folder.with_name("seed0"))
