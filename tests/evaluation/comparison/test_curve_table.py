"""`curves.csv`: the evaluations of all runs, and the tables made from it again."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from made_runs import write_sets_comparison

from rollwise.errors import StateFileError
from rollwise.evaluation.comparison.curve_table import read_curves
from rollwise.evaluation.comparison.results import Comparison
from rollwise.reports.comparison.report import compare_set
from rollwise.reports.comparison.tables import relative_table, result_table
from rollwise.reports.comparison.words.cells import Table
from rollwise.reports.comparison.words.verdict import verdict
from rollwise.runs.sets import read_comparison

EVIDENCE = Path(__file__).parents[3] / "docs/evidence.md"
GAINS = {"uniform": 0.2, "oracle": 0.4, "bots": 0.3}


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Evaluated every 6,400 tokens, and cut between two evaluations, at 15,000."""
    folder = write_sets_comparison(tmp_path_factory.mktemp("made") / "sets", GAINS, seeds=3)
    plan = json.loads((folder / "comparison.yaml").read_text())
    (folder / "comparison.yaml").write_text(json.dumps({**plan, "oracle": "oracle", "budget": {"tokens": 15_000}}))
    for path in folder.glob("runs/*/*/config.yaml"):
        config = json.loads(path.read_text())
        start = f"/starts/{'ab'[config['seed'] % 2]}"
        path.write_text(json.dumps({**config, "model": start, "eval_aggregate": "prompts"}))
    return compare_set(replace(read_comparison(folder), name="p"))


def texts(table: Table) -> list[list[tuple[str, str]]]:
    return [[(cell.text, cell.below) for cell in row] for row in table.rows]


def test_a_row_has_what_was_spent_and_every_score(comparison: Comparison) -> None:
    rows = list(csv.DictReader(comparison.curves.splitlines()))
    own = [row for row in rows if (row["method"], row["seed"]) == ("uniform", "1")]
    assert [row["step"] for row in own] == ["0", "10", "20", "23", "24", "30", "40"]  # 23 and 24 about 15,000 tokens
    assert own[2]["tokens"] == "12800"
    assert own[2]["wall_s"] == "30"
    assert own[3]["eval/pass@1"] == ""
    assert {row["start"] for row in own} == {"b"}
    assert {(row["method"], row["role"]) for row in rows} == {
        ("uniform", "baseline"), ("oracle", "oracle"), ("bots", ""),
    }  # fmt: skip
    assert {key for key in own[0] if key.startswith("eval/")} == {
        f"eval/{name}pass@{k}" for name in ("", "id/", "ood/") for k in (1, 8)
    }


def test_tables_come_out_the_same_from_the_file(comparison: Comparison, tmp_path: Path) -> None:
    (tmp_path / "curves.csv").write_text(comparison.curves)
    again = compare_set(read_curves(tmp_path / "curves.csv")["p"])
    assert again.curves == comparison.curves
    assert again.aggregate == comparison.aggregate == "by prompts"
    for axis in comparison.budgets:
        assert texts(relative_table(again, axis)) == texts(relative_table(comparison, axis))
    for row, now in zip(texts(result_table(comparison)), texts(result_table(again)), strict=True):
        assert now[:-1] == row[:-1]  # the last column, the effective task ratio, needs every step
    for name, own in comparison.sets.items():
        assert texts(relative_table(again.sets[name], "tokens")) == texts(relative_table(own, "tokens"))


def test_what_was_not_noted_at_an_evaluation_is_filled_in_before_lines_are_left_out(tmp_path: Path) -> None:
    """A step took 640 tokens, but the 21st 6,400: between steps 10 and 23 alone they would be filled otherwise."""
    folder = write_sets_comparison(tmp_path / "sets", {"uniform": 0.2, "bots": 0.3}, seeds=1)
    plan = json.loads((folder / "comparison.yaml").read_text())
    (folder / "comparison.yaml").write_text(json.dumps({**plan, "budget": {"tokens": 20_000}}))
    path = folder / "runs/bots/seed0/metrics.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        row["tokens"] += 5760 * (row["step"] > 20)
    del rows[20]["tokens"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = compare_set(read_comparison(folder))
    (tmp_path / "curves.csv").write_text(found.curves)
    (again,) = (compare_set(runs) for runs in read_curves(tmp_path / "curves.csv").values())
    for axis in found.budgets:
        assert texts(relative_table(again, axis)) == texts(relative_table(found, axis))


def test_a_step_that_generates_nothing_ends_with_the_budget(tmp_path: Path) -> None:
    """Two steps train on each generation: after uniform's 200 tokens bots has done its steps 3 and 4."""
    folder = write_sets_comparison(tmp_path / "sets", {"uniform": 0.2, "bots": 0.3}, seeds=1)
    for method, last, spent in (("uniform", 10, 40), ("bots", 40, 100)):
        path = folder / "runs" / method / "seed0/metrics.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()][: last + 1]
        path.write_text("".join(json.dumps(row | {"tokens": spent * ((row["step"] + 1) // 2)}) + "\n" for row in rows))
        config = path.with_name("config.yaml")
        config.write_text(json.dumps(json.loads(config.read_text()) | {"steps": last}))
    found = compare_set(read_comparison(folder))
    (tmp_path / "curves.csv").write_text(found.curves)
    (again,) = (compare_set(runs) for runs in read_curves(tmp_path / "curves.csv").values())
    assert (found.budgets["tokens"].value, found.budgets["tokens"].set_by) == (200, "uniform seed 0")
    assert [one.method("bots").axes["steps"].cut for one in (found, again)] == [4, 4]


def test_no_method_stands_in_for_a_baseline_without_a_run(comparison: Comparison, tmp_path: Path) -> None:
    rows = [row for row in comparison.curves.splitlines() if ",baseline," not in row]
    (tmp_path / "curves.csv").write_text("\n".join(rows))
    again = compare_set(read_curves(tmp_path / "curves.csv")["p"])
    assert again.statistics.verdicts == {}
    assert verdict(again)[0].startswith("There is nothing to compare with yet: the baseline, baseline, has no")


@pytest.mark.usefixtures("page_alone")
def test_the_page_of_evidence_runs(comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What docs/evidence.md shows makes a page from a plan's file of curves."""
    (block,) = re.findall(r"```python\n(.*?)```", EVIDENCE.read_text(), re.DOTALL)
    folder = tmp_path / "benchmarks/results/evidence/NAME"
    folder.mkdir(parents=True)
    (folder / "curves.csv").write_text(comparison.curves.replace("\np,", "\nNAME,"))
    monkeypatch.chdir(tmp_path)
    exec(block, {})
    assert "pass@1 (by prompts)" in (tmp_path / "again/report.html").read_text()


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StateFileError, match="curves.csv' can't be read"):
        read_curves(tmp_path / "curves.csv")
    (tmp_path / "other.csv").write_text("method,seed\n")
    with pytest.raises(StateFileError, match="has no column 'plan'; give a curves.csv"):
        read_curves(tmp_path / "other.csv")
    (tmp_path / "edited.csv").write_text('plan,method,role,seed,step,eval/pass@1\np,u,baseline,0,0,"0,1"\n')
    with pytest.raises(StateFileError, match="edited.csv' has a cell that is no number .*'0,1'"):
        read_curves(tmp_path / "edited.csv")
    (tmp_path / "packed.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(StateFileError, match="packed.csv' can't be read: 'utf-8' codec"):
        read_curves(tmp_path / "packed.csv")
