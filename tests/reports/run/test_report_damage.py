"""A run whose files are damaged or missing has a page all the same, which says so."""

from __future__ import annotations

import os
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from rollwise.errors import StateFileError
from rollwise.reports import write_report
from rollwise.reports.comparison.report import write_run_comparison

pytestmark = pytest.mark.usefixtures("page_alone")
RunMaker = Callable[..., Path]
Rows = Callable[..., list[dict[str, Any]]]


def damage(path: Path, numbers: list[int], tail: str = "") -> None:
    """Cut the lines with these numbers in half, as a full disk or a bad copy does."""
    lines = path.read_text().splitlines()
    for number in numbers:
        lines[number - 1] = lines[number - 1][: len(lines[number - 1]) // 2]
    path.write_text("\n".join(lines) + "\n" + tail)


def test_damaged_lines_are_named_and_the_rest_is_drawn(
    make_run: RunMaker, metric_rows: Rows, rollout_rows: Rows, recwarn: pytest.WarningsRecorder
) -> None:
    run = make_run(metric_rows(40, seed=0), rollout_rows(40, groups=4, seed=1))
    damage(run / "metrics.jsonl", [17, 18, 40])  # steps 16, 17 and 39, as the first line is of step 0
    damage(run / "rollouts.jsonl", [9, 10, 11, 12], tail='{"step": 41, "tick')  # all four groups of step 3
    page = unescape(write_report(run).read_text())
    for said in [
        "Damaged or missing",
        "metrics.jsonl: lines 17, 18 and 40 could not be read (not valid JSON).",
        "rollouts.jsonl: lines 9, 10, 11 and 12 could not be read (not valid JSON).",
        "rollouts.jsonl has a torn last line (161), still being written or cut off; it was left out.",
        "config.yaml is not there.",
        "metrics.jsonl has no line for 3 steps: 16-17 and 39.",
        "rollouts.jsonl has no group for step 3.",
        "156 groups",
        "38 steps from 0 to 40",
    ]:
        assert said in page
    assert not recwarn.list


@pytest.mark.usefixtures("unrendered")
def test_metrics_missing_or_rollouts_missing(make_run: RunMaker, rollout_rows: Rows, metric_rows: Rows) -> None:
    run = make_run(metric_rows(3, seed=0), rollout_rows(3, groups=4, seed=1))
    (run / "metrics.jsonl").unlink()
    page = write_report(run).read_text()
    assert "metrics.jsonl is not there." in page
    assert 'id="success_rates"' in page
    run = make_run(metric_rows(3, seed=0), name="other")
    page = write_report(run).read_text()
    assert "rollouts.jsonl is not there." in page
    assert 'id="score"' in page
    assert 'id="rollouts"' not in page


@pytest.mark.parametrize("metrics", [[], [{"step": 0, "eval/pass@1": 0.1}]])
def test_hardly_anything(make_run: RunMaker, metrics: list[dict[str, Any]]) -> None:
    page = write_report(make_run(metrics, [])).read_text()
    assert "Not drawn" in page
    assert 'id="rollouts"' not in page


def test_nothing_but_garbage(make_run: RunMaker, recwarn: pytest.WarningsRecorder) -> None:
    run = make_run([], [])
    for name in ("metrics.jsonl", "rollouts.jsonl", "config.yaml"):
        (run / name).write_bytes(os.urandom(3000) + b"\n{\n[" + b"\xff" * 50 + b"\n\n\x00\n" * 5)
    page = write_report(run).read_text()
    assert "could not be read" in page
    assert not recwarn.list


def test_lines_of_the_wrong_kind(make_run: RunMaker, recwarn: pytest.WarningsRecorder) -> None:
    metrics = [{"step": 1, "frac_mixed": "half", "tokens": None, "wall_s": [1]}, {"step": 10**300}]
    rollouts = [
        {"step": "1", "rewards": {"a": 1}, "texts": 5, "prompt": {"x": [1]}, "lane": ["a"], "category": {}},
        {"step": 1, "rewards": [1, "x", None], "predicted": 10**400, "texts": [None, 7], "failures": "no"},
        {"step": 1, "rewards": [[1]], "screened": {"rewards": 3}, "purpose": ["train"]},
    ]
    page = write_report(make_run(metrics, rollouts)).read_text()
    assert "line 2 could not be read (no whole number as step)" in page
    assert "All 3 groups" in page
    assert not recwarn.list


def test_half_a_character_and_rewards_beyond_all_bounds(make_run: RunMaker) -> None:
    metrics = [{"step": step, "frac_mixed": 0.5} for step in (1, 2)]
    rows = [
        {"step": step, "lane": "cut \ud83d", "category": name, "prompt_id": name, "rewards": [0, 1e308, 1e308]}
        for step in (1, 2)
        for name in ("half \ud83d", "whole")
    ]
    page = write_report(make_run(metrics, rows)).read_text()
    assert "half ?" in page


def test_a_comparison_that_can_not_be_written_is_an_error_in_a_line(make_run: RunMaker, tmp_path: Path) -> None:
    runs = [make_run([{"step": step, "eval/pass@1": 0.1} for step in (0, 1)], name=name) for name in ("a", "b")]
    (tmp_path / "page.html").write_text("a page of before")
    with pytest.raises(StateFileError, match=r"the comparison can't be written to .*page.html.*give `--out` a folder"):
        write_run_comparison(runs, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == "a page of before"


def test_a_page_that_can_not_be_written_is_an_error_in_a_line(make_run: RunMaker, tmp_path: Path) -> None:
    run = make_run([{"step": 1, "frac_mixed": 0.5}])
    blocker = tmp_path / "file"
    blocker.write_text("")
    with pytest.raises(StateFileError, match="the report can't be written to .*give `--out` a file"):
        write_report(run, out=blocker / "page.html")


def test_a_run_that_can_only_be_read_has_a_page_elsewhere(make_run: RunMaker, tmp_path: Path) -> None:
    run = make_run([{"step": 1, "frac_mixed": 0.5}])
    (run / "figures").write_text("in the way, as a folder without permission is")
    with pytest.raises(StateFileError, match="figures"):
        write_report(run)
    page = write_report(run, tmp_path / "page.html").read_text()
    assert "<svg" in page
    assert "figures can&#x27;t be written (File exists): they are in this page alone" in page
