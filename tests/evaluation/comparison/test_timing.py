"""Seconds are compared where all runs were timed alike, and refused, with the reason, where they were not."""

import json
from pathlib import Path
from typing import Any

import pytest
from made_runs import lines, write_runs

from rollwise.evaluation import Comparison, compare_runs
from rollwise.evaluation.comparison.curve_table import curves_csv
from rollwise.evaluation.comparison.timing import Timing
from rollwise.reports.comparison.formats import format_markdown
from rollwise.reports.comparison.page import render_comparison
from rollwise.reports.comparison.page_figures import page_figures
from rollwise.reports.comparison.words.verdict import verdict
from rollwise.runs.sets import RunSet

ALONE: dict[str, Any] = {"jobs": 1, "cores": [1], "pinned": True, "processor": "chip", "load": 1.2}
SECONDS = {"wall_s", "step_time", "throughput_ratio"}


def timed(folder: Path, uniform: list[dict[str, Any]], bots: list[dict[str, Any]]) -> tuple[Comparison, RunSet]:
    """Two runs; each was started or resumed once for each of its timings."""
    methods = {"uniform": [lines((0.1, 0.2, 0.3))], "bots": [lines((0.1, 0.3, 0.4))]}
    runs = write_runs(folder, methods)
    for method, timings in (("uniform", uniform), ("bots", bots)):
        if timings:
            text = "".join(json.dumps(one) + "\n" for one in timings)
            (folder / method / "seed0/timing.jsonl").write_text(text)
    return compare_runs(runs, baseline="uniform"), RunSet("timed", runs, "uniform")


def test_runs_that_were_timed_alike_are_compared_in_seconds(tmp_path: Path) -> None:
    found, _ = timed(tmp_path, [ALONE, ALONE | {"load": 0.3}], [ALONE])
    assert found.timing == "one at a time, bound to core 1 of chip"
    assert found.method("bots").axes["wall_s"].ttb[100].value == pytest.approx(0.5)
    assert found.measures.keys() >= SECONDS
    assert "<dt>timed</dt><dd>one at a time, bound to core 1 of chip</dd>" in render_comparison(found, [], tmp_path)


def test_runs_of_before_are_compared_as_they_were(tmp_path: Path) -> None:
    found, _ = timed(tmp_path, [], [])
    assert found.timing == ""
    assert "wall_s" in found.budgets
    assert not [problem for problem in found.problems if problem.kind == "timing"]


@pytest.mark.parametrize(
    ("bots", "reason"),
    [
        pytest.param([ALONE | {"jobs": 2}], "2 at a time, bound to core 1 of chip: bots seed 0", id="several"),
        pytest.param([ALONE, ALONE | {"pinned": False, "cores": [0, 1]}], "on any of 2 cores", id="gone on otherwise"),
        pytest.param([ALONE | {"processor": "other"}], "core 1 of other", id="another machine"),
        pytest.param([], "not noted how: bots seed 0", id="not noted"),
        pytest.param([ALONE | {"load": 2.4}], "busy when runs began: bots seed 0 (load 2.4)", id="busy"),
    ],
)
def test_mixed_timings_are_refused_with_the_reason(tmp_path: Path, bots: list[dict[str, Any]], reason: str) -> None:
    found, runs = timed(tmp_path, [ALONE], bots)
    assert "wall_s" not in found.budgets
    assert all("wall_s" not in method.axes for method in found.methods)
    assert not SECONDS & found.measures.keys()
    assert set(found.budgets) >= {"steps", "tokens"}
    said = [sentence for sentence in verdict(found) if sentence.startswith("Seconds are not compared")]
    assert len(said) == 1
    assert reason in said[0]
    assert "seconds of training" not in format_markdown(found)
    assert not {"speed", "time_by_phase"} & {figure.spec.name for figure in page_figures(found)}
    assert {row.split(",")[-2] for row in curves_csv(runs, found).splitlines()[1:]} == {""}


def test_what_makes_seconds_comparable_in_words() -> None:
    several = Timing(jobs=2, cores=(0, 1, 2), pinned=False, processor="chip", load=9.0)
    assert str(several) == "2 at a time, on any of 3 cores of chip"
    assert not several.busy  # its own runs keep the machine busy
