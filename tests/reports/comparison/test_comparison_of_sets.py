"""A comparison of five methods on two named evaluation sets with three categories each."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from made_runs import CATEGORIES, lines, write_run, write_runs, write_sets_run
from rich.console import Console

from rollwise.evaluation import read_run
from rollwise.evaluation.comparison.compare import compare_runs
from rollwise.evaluation.comparison.results import Comparison
from rollwise.reports.comparison.formats import format_markdown, format_table
from rollwise.reports.comparison.page_tables import runs_section
from rollwise.reports.comparison.report import compare_set
from rollwise.reports.comparison.set_tables import MOST_CATEGORIES, category_tables, set_relative_tables, set_tables
from rollwise.reports.comparison.tables import all_tables
from rollwise.reports.comparison.words.verdict import verdict
from rollwise.runs.evaluations import read_evaluations
from rollwise.runs.sets import read_comparison


@pytest.fixture(scope="session")
def folder(comparison_of_sets: Path) -> Path:
    return comparison_of_sets


@pytest.fixture(scope="session")
def found(folder: Path) -> Comparison:
    return compare_set(read_comparison(folder))


def test_each_set_is_a_comparison_by_its_own_score(tmp_path: Path) -> None:
    """On `a` the method is twice as fast to uniform's .3 and ends .2 above it; on `b` it is uniform's equal.

    Each has its own TTB, BSF and interval, in the methods' order of the whole, whose score is the mean of both.
    """
    ways = {"uniform": ((0.1, 0.2, 0.3), (0.5, 0.6, 0.7)), "fast": ((0.1, 0.3, 0.5), (0.5, 0.6, 0.7))}
    runs = {}
    for method, (a, b) in ways.items():
        rows = lines([(x + y) / 2 for x, y in zip(a, b, strict=True)])
        for row, x, y in zip(rows, a, b, strict=True):
            row |= {"eval/a/pass@1": x, "eval/b/pass@1": y, "eval/a/reward": x, "eval/a/pass@4": 2 * x}
        runs[method] = [rows] * 3
    found = compare_runs(write_runs(tmp_path, runs), baseline="uniform")
    assert (found.aggregate, found.score_name, list(found.sets)) == (
        "mean of sets",
        "pass@1 (mean of sets)",
        ["a", "b"],
    )
    assert found.sets["a"].score == "eval/a/pass@1"
    on_a, on_b = (found.sets[name].method("fast").axes["tokens"] for name in "ab")
    assert (on_a.ttb[100].value, on_a.bsf[100].value) == pytest.approx((0.5, 0.5 / 0.3))
    assert (on_b.ttb[100].value, on_b.bsf[100].value) == (1, 1)
    assert on_a.score.difference is not None
    assert on_a.score.difference.interval is not None
    assert on_a.score.difference.interval.low == pytest.approx(0.2)
    whole = found.method("fast").axes["tokens"].score.difference
    assert whole is not None
    assert whole.mean == pytest.approx(0.1)
    assert [m.name for m in found.sets["b"].methods] == [m.name for m in found.methods] == ["fast", "uniform"]
    measures = found.sets["a"].method("fast").measures
    assert {key: found.mean for key, found in measures.items()} == pytest.approx(
        {"best_a/pass@1": 0.5, "final_a/pass@1": 0.5, "best_a/pass@4": 1, "final_a/pass@4": 1,
         "best_a/reward": 0.5, "final_a/reward": 0.5}
    )  # fmt: skip
    plain = found.to_dict(tmp_path)  # the same paths in the sets' parts of results.json, so that a folder can be moved
    assert {tuple(run["path"] for run in one["runs"]) for one in (plain, *plain["sets"].values())} == {
        tuple(f"{method}/seed{seed}" for method in ways for seed in range(3))
    }


@pytest.mark.parametrize(("chosen", "named"), [("prompts", "by prompts"), ("ood", "set ood"), (None, "mean of sets")])
def test_the_aggregate_is_the_runs_own(tmp_path: Path, chosen: str | None, named: str) -> None:
    options = {} if chosen is None else {"eval_aggregate": chosen}
    runs = {
        m: {0: read_run(write_sets_run(tmp_path / m, m, 0, g, **options))} for m, g in (("uniform", 0.1), ("bots", 0.3))
    }
    found = compare_runs(runs, baseline="uniform")
    assert found.aggregate == named
    assert f"its pass@1 ({named}) is" in verdict(found)[0]


def test_a_sets_numbers_are_those_of_its_prompts(found: Comparison, folder: Path) -> None:
    """The mean over seeds of each category's last and best pass@1, from the successes of every prompt."""
    for name in ("id", "ood"):
        last, best = [], []
        for seed in range(3):
            rates = [
                one.pass_rates[np.array(one.categories) == "hard"].mean()
                for one in read_evaluations(folder / f"runs/bots/seed{seed}")
                if one.set == name
            ]
            last.append(rates[-1])
            best.append(max(rates))
        category = next(one for one in found.categories if (one.set, one.category) == (name, "hard"))
        assert category.prompts == {"id": 10, "ood": 4}[name]
        measures = found.method("bots").measures
        assert measures[f"final[{name}/hard]"].mean == pytest.approx(np.mean(last))
        assert measures[category.key("best")].mean == pytest.approx(np.mean(best))
        assert measures[f"final[{name}/hard]"].difference is not None


def test_tables_of_sets_and_categories(found: Comparison) -> None:
    shown = [*set_tables(found), *category_tables(found), *set_relative_tables(found)]
    assert [table.title for table in shown] == [
        "Set id", "Set ood", "Set id by category", "Set ood by category",
        "Set id: Time to baseline (TTB) and best so far (BSF) in generated tokens",
        "Set ood: Time to baseline (TTB) and best so far (BSF) in generated tokens",
    ]  # fmt: skip
    for table in shown:
        assert [row[0].text for row in table.rows] == [method.name for method in found.methods]
        assert {len(row) for row in table.rows} == {len(table.head)}
    assert [table.head[-1] for table in shown[:2]] == ["final id/pass@8", "final ood/pass@8"]
    assert shown[3].head == ("method", *(f"{name} (4 prompts)" for name in sorted(CATEGORIES)))
    row = next(row for row in shown[3].rows if row[0].text == "bots")
    assert re.fullmatch(r"[+-]0\.\d{3} \[.*\], best 0\.\d{3}", row[1].below)


def test_the_page_shows_sets_and_categories(folder: Path) -> None:
    text = (folder / "report.html").read_text(encoding="utf-8")
    for part in ("By evaluation set", "By category", "Score on each set", "Difference on each set", "Time by phase",
                 "pass@1 (mean of sets)", "hard (4 prompts)", "On each set, the difference of bots"):  # fmt: skip
        assert part in text
    names = {path.stem for path in (folder / "figures").iterdir()}
    assert {"score_by_set", "difference_by_set", "speed", "time_by_phase"} <= names
    results = json.loads((folder / "results.json").read_text())
    assert results["aggregate"] == "mean of sets"
    assert list(results["sets"]) == ["id", "ood"]
    assert {"set": "ood", "category": "hard", "prompts": 4} in results["categories"]
    table = (folder / "table.md").read_text()
    assert "## Set ood by category" in table


def test_the_csv_has_every_set(folder: Path) -> None:
    rows = list(csv.DictReader((folder / "results.csv").open()))
    row = next(row for row in rows if (row["method"], row["seed"]) == ("bots", "1"))
    last = [one for one in read_evaluations(folder / "runs/bots/seed1") if one.set == "ood"][-1]
    assert float(row["final_ood/pass@1"]) == pytest.approx(last.pass_rates.mean())
    assert float(row["ood/score/tokens"]) == pytest.approx(last.pass_rates.mean())
    assert {"id/ttb_100/wall_s", "ood/time_of_best_ratio/steps", "final[ood/hard]", "best[id/easy]"} <= row.keys()


def test_the_terminal_has_a_column_for_each_set(found: Comparison) -> None:
    console = Console(width=80, file=io.StringIO(), record=True)
    console.print(format_table(found))
    shown = console.export_text()
    assert max(map(len, shown.splitlines())) <= 80
    assert "by evaluation set (mean of sets above)" in shown
    own = found.sets["ood"].method("bots").axes["tokens"].score
    assert own.difference is not None
    assert f"{own.mean:.3f} {own.difference.mean:+.3f}" in shown


def test_many_categories_have_the_largest_in_the_table(tmp_path: Path) -> None:
    run = write_sets_run(tmp_path / "run", "uniform", 0, 0.1)
    sets = json.loads((run / "evaluation_sets.json").read_text())
    sets["id"]["categories"] = [f"c{min(i, 14):02}" for i in range(30)]  # the last of 15 has 16 prompts
    (run / "evaluation_sets.json").write_text(json.dumps(sets))
    found = compare_runs({"uniform": {0: read_run(run)}}, baseline="uniform")
    table = category_tables(found)[0]
    assert len(table.head) == 1 + MOST_CATEGORIES
    assert table.head[1] == "c14 (16 prompts)"
    assert "3 smaller categories are in results.csv alone" in table.note


def test_damaged_evaluations_are_named_and_the_rest_is_compared(tmp_path: Path) -> None:
    run = write_sets_run(tmp_path / "run", "uniform", 0, 0.1)
    path = run / "evaluations.jsonl"
    path.write_text("torn\n" + path.read_text())
    groups = [json.dumps({"step": step, "prompt_id": "a", "rewards": [0, 1]}) for step in (1, 2)]
    (run / "rollouts.jsonl").write_text("\n".join([groups[0], "torn", groups[1]]) + "\n")
    found = compare_runs({"uniform": {0: read_run(run)}}, baseline="uniform")
    assert [str(problem).partition(" could")[0] for problem in found.problems] == [
        "uniform seed 0: evaluations.jsonl: line 1", "uniform seed 0: rollouts.jsonl: line 2",
    ]  # fmt: skip
    assert len(found.categories) == 6


def test_a_best_score_whose_weights_are_gone_is_named(tmp_path: Path) -> None:
    """Of four runs one keeps the step of its best, .3 at step 1; the best of one is at step 0, where it began."""
    ways = {"uniform": (0.1, 0.2, 0.3), "fast": (0.1, 0.3, 0.2)}
    paths = {}
    for method, scores in ways.items():
        for seed in range(2):
            paths[method, seed] = tmp_path / method / f"seed{seed}"
            write_run(paths[method, seed], lines(scores if method == "fast" or seed else (0.4, 0.2, 0.3)))
    (paths["fast", 0] / "checkpoints/checkpoint-1").mkdir(parents=True)
    (paths["fast", 1] / "checkpoints/checkpoint-2").mkdir(parents=True)
    runs = {m: {s: read_run(paths[m, s]) for s in range(2)} for m in ways}
    found = compare_runs(runs, baseline="uniform")
    assert {(run.method, run.seed): run.best_kept for run in found.runs} == {
        ("uniform", 0): True, ("uniform", 1): False, ("fast", 0): True, ("fast", 1): False,
    }  # fmt: skip
    reached = next(table for table in all_tables(found) if table.title == "What whole runs reached")
    assert "in 2 of 4 runs its weights are gone" in reached.note
    assert "Train with --keep_best pass@1 to keep them." in reached.note
    page = runs_section(found, tmp_path)
    assert page.count("<small>weights gone</small>") == 2


def test_where_all_are_kept_nothing_is_said(tmp_path: Path) -> None:
    """A script's checkpoints are where its trainer put them."""
    (tmp_path / "out/checkpoint-2").mkdir(parents=True)
    run = write_run(tmp_path / "run", lines((0.1, 0.2, 0.3)), checkpoints=str(tmp_path / "out"))
    found = compare_runs({"uniform": {0: run}}, baseline="uniform")
    assert [run.best_kept for run in found.runs] == [True]
    assert "gone" not in format_markdown(found) + runs_section(found, tmp_path)


def test_runs_without_sets_have_nothing_of_them(tmp_path: Path) -> None:
    found = compare_runs(write_runs(tmp_path, {"uniform": [lines((0.1, 0.2, 0.3))]}), baseline="uniform")
    assert (found.aggregate, found.sets, found.categories, found.score_name) == ("", {}, (), "pass@1")
    text = format_markdown(found)
    assert "Set" not in text
    assert "category" not in text
