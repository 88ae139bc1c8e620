"""Seeds for choosing: shown by themselves, in no result."""

import io
import json
from pathlib import Path

import pytest
from made_runs import lines, write_run

from rollwise.errors import ConfigError
from rollwise.reports.comparison.formats import format_markdown, format_table
from rollwise.reports.comparison.report import compare_set, write_comparison
from rollwise.reports.comparison.words.verdict import verdict
from rollwise.runs.by_method import group_runs
from rollwise.runs.sets import read_comparison
from rollwise.watching.targets import planned_runs


def write_plan(folder: Path, seeds: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    plan = {"name": "apart", "baseline": "uniform", "seeds": seeds, "methods": {"uniform": {}, "bots": {}}}
    (folder / "comparison.yaml").write_text(json.dumps(plan))
    return folder


def write_seed(folder: Path, seed: int, gain: float) -> None:
    for method, end in (("uniform", 0.3), ("bots", 0.3 + gain)):
        write_run(folder / f"runs/{method}/seed{seed}", lines((0.1, 0.2, end)), seed=seed)


@pytest.fixture
def apart(tmp_path: Path) -> Path:
    """The method gains .5 with the two seeds that it was chosen on, and nothing with the other two."""
    folder = write_plan(tmp_path / "apart", {"tune": [7, 8], "report": [0, 1]})
    for seed, gain in ((7, 0.5), (8, 0.5), (0, 0.0), (1, 0.0)):
        write_seed(folder, seed, gain)
    return folder


def test_results_are_of_the_seeds_for_reporting(apart: Path) -> None:
    comparison = compare_set(read_comparison(apart))
    assert comparison.method("bots").seeds == (0, 1)
    assert {run.seed for run in comparison.runs} == {0, 1}
    assert comparison.tune is not None
    assert comparison.tune.method("bots").seeds == (7, 8)
    assert "Seeds 7 and 8 were for choosing; no number here includes them." in verdict(comparison)
    assert not comparison.problems


@pytest.mark.usefixtures("unrendered")
def test_both_are_shown_and_labelled(apart: Path) -> None:
    rich_console = pytest.importorskip("rich.console")
    page = write_comparison(apart).read_text()
    assert page.count("Seeds for choosing") == 1
    assert "They are no evidence: what was chosen on a seed looks better there than it is." in page
    results, tuned = ((apart / name).read_text().splitlines() for name in ("results.csv", "tune.csv"))
    assert [line.split(",")[:2] for line in results[1:]] == [[m, s] for m in ("uniform", "bots") for s in "01"]
    assert [line.split(",")[:2] for line in tuned[1:]] == [[m, s] for m in ("uniform", "bots") for s in "78"]
    assert json.loads((apart / "results.json").read_text())["tune"]["runs"][0]["path"] == "runs/uniform/seed7"
    comparison = compare_set(read_comparison(apart))
    assert "## Seeds for choosing" in format_markdown(comparison)
    console = rich_console.Console(width=80, file=io.StringIO(), record=True)
    console.print(format_table(comparison))
    assert "apart: seeds for choosing: at equal compute" in console.export_text()


def test_seeds_for_choosing_alone_are_shown_as_such(tmp_path: Path) -> None:
    """As of a plan that looks for a learning rate; before, it showed empty tables and no figure."""
    folder = write_plan(tmp_path, {"tune": [7]})
    write_seed(folder, 7, 0.5)
    comparison = compare_set(read_comparison(folder))
    assert (comparison.name, comparison.tune) == ("apart: seeds for choosing", None)
    assert comparison.method("bots").seeds == (7,)
    assert verdict(comparison)[0].startswith(
        "This is no result: the runs are of seeds for choosing, and what is chosen"
    )
    assert "\n| bots | 1 |" in format_markdown(comparison)


def test_they_are_watched_too_and_an_overlap_is_refused(apart: Path) -> None:
    assert len(planned_runs(apart)) == 8
    write_plan(apart, {"tune": [0], "report": [0, 1]})
    with pytest.raises(ConfigError, match="can't be reported on: 0 in both tune and report"):
        read_comparison(apart)


def test_runs_given_one_by_one_are_not_mixed_either(apart: Path) -> None:
    runs = [apart / f"runs/{method}/seed{seed}" for method in ("uniform", "bots") for seed in (0, 1, 7, 8)]
    with pytest.raises(ConfigError, match=r"uniform/seed7' is of a seed for choosing, others are not"):
        group_runs(runs)
    assert not group_runs([run for run in runs if run.name in ("seed0", "seed1")]).problems
    tuned = compare_set(group_runs([run for run in runs if run.name in ("seed7", "seed8")]))
    assert verdict(tuned)[0].startswith("This is no result: the runs are of seeds for choosing, and what is chosen")
