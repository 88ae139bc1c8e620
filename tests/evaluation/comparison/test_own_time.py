"""METIS's own measure of time, speed and time by phase beside the baseline: every number is worked out by hand."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import pytest
from made_runs import lines, write_runs

from rollwise.evaluation.bootstrap import Interval
from rollwise.evaluation.comparison.compare import compare_runs
from rollwise.reports.comparison.measure_tables import measure_tables
from rollwise.reports.comparison.tables import OWN_BEST, relative_table


def test_the_time_of_ones_own_best(tmp_path: Path) -> None:
    """Uniform's best is at step 4 of 4, the method's at step 2 (seeds 0 and 1), and at step 0 where it never rises.

    Averaged, the method is .1, .7/3, 1.1/3, .9/3, .7/3: its best is at step 2, so half of uniform's time on every axis.
    Of the 27 resamples those of the third seed alone have their best at the start: the interval's lower end is 0.
    """
    up, flat = (0.1, 0.3, 0.5, 0.4, 0.3), (0.1, 0.1, 0.1, 0.1, 0.1)
    uniform = (0.1, 0.2, 0.3, 0.4, 0.5)
    runs = write_runs(tmp_path, {"uniform": [lines(uniform)] * 3, "early": [lines(up), lines(up), lines(flat)]})
    found = compare_runs(runs, baseline="uniform")
    early, base = found.method("early"), found.method("uniform")
    times = {"steps": (2, 4), "rollouts": (20, 40), "tokens": (200, 400), "wall_s": (4, 8)}
    for axis, (own, other) in times.items():
        assert (early.axes[axis].time_of_best, base.axes[axis].time_of_best) == (own, other)
        ratio = early.axes[axis].time_of_best_ratio
        assert (ratio.value, ratio.median, ratio.reached, ratio.n) == (0.5, 0.5, 3, 3)
        assert ratio.interval == Interval(0.0, 0.5)
        assert base.axes[axis].time_of_best_ratio.value == 1
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [float(row["time_of_best/tokens"]) for row in rows] == [400, 400, 400, 200, 200, 0]
    assert [float(row["time_of_best_ratio/wall_s"]) for row in rows] == [1, 1, 1, 0.5, 0.5, 0]
    plain = found.to_dict()["methods"]
    assert {m["name"]: m["axes"]["steps"]["time_of_best_ratio"]["value"] for m in plain} == {"uniform": 1, "early": 0.5}


def test_the_table_says_that_it_is_optimistic(tmp_path: Path) -> None:
    runs = write_runs(tmp_path, {"uniform": [lines((0.1, 0.2, 0.3))], "early": [lines((0.1, 0.3, 0.2))]})
    found = compare_runs(runs, baseline="uniform")
    table = relative_table(found, "tokens")
    cells = {row[0].text: row[table.head.index(OWN_BEST)] for row in table.rows}
    assert (cells["early"].text, cells["early"].below) == ("0.50", "at 100, seeds: 0.50")
    assert "It is optimistic" in table.note


def test_a_baseline_that_never_rises_has_no_time_of_best(tmp_path: Path) -> None:
    """Its best is at the start, and nothing can be put over no time; nor does its average rise by a rounding."""
    flat = [lines([start] * 4) for start in (0.1, 0.7, 0.2, 0.6, 0.45, 0.3)]
    runs = write_runs(tmp_path, {"uniform": flat, "up": [lines((0.1, 0.2, 0.3, 0.4))] * 6})
    found = compare_runs(runs, baseline="uniform")
    ratio = found.method("up").axes["tokens"].time_of_best_ratio
    assert math.isnan(ratio.value)
    assert (ratio.interval, ratio.n) == (None, 0)
    assert (found.method("uniform").axes["tokens"].time_of_best, found.method("up").axes["tokens"].time_of_best) == (
        0, 300,
    )  # fmt: skip


def test_ones_own_best_is_within_the_budget(tmp_path: Path) -> None:
    """Half as many tokens: uniform's best is at 200 by then, and the method's .9 at 400 is not seen."""
    runs = write_runs(
        tmp_path, {"uniform": [lines((0.1, 0.2, 0.3, 0.4, 0.5))], "late": [lines((0.1, 0.4, 0.2, 0.2, 0.9))]}
    )
    late = compare_runs(runs, baseline="uniform", budget=200).method("late").axes["tokens"]
    assert (late.time_of_best, late.time_of_best_ratio.value) == (100, 0.5)


def test_speed_beside_the_baseline(tmp_path: Path) -> None:
    """Uniform takes 2 s and 100 tokens a step; the method 3 s and 120, seed for seed: 1.5, and 40/50 of the speed."""
    slow = lines((0.1, 0.2, 0.3), tokens=120)
    for row in slow:
        row["wall_s"] *= 1.5
    runs = write_runs(tmp_path, {"uniform": [lines((0.1, 0.2, 0.3))] * 3, "slow": [slow] * 3})
    found = compare_runs(runs, baseline="uniform")
    measures = found.method("slow").measures
    want = {"step_time": 3, "step_time_ratio": 1.5, "throughput": 40, "throughput_ratio": 0.8}
    assert {key: measures[key].mean for key in want} == pytest.approx(want)
    assert found.method("uniform").measures["step_time_ratio"].mean == 1
    difference = measures["throughput_ratio"].difference
    assert difference is not None
    assert difference.mean == pytest.approx(-0.2)
    speed = next(table for table in measure_tables(found) if table.title == "Speed")
    row = next(row for row in speed.rows if row[0].text == "slow")
    assert [cell.text for cell in row[1:]] == ["3 s", "1.50 ± 0.00", "40 ± 0", "0.80 ± 0.00"]
    assert "machine to themselves" in speed.note


def test_time_by_phase(tmp_path: Path) -> None:
    """Each step 1.2 s to generate and .5 s to update; an evaluation of 6 s after the second of two: 3 s a step."""
    rows = lines((0.1, 0.2, 0.3), **{"time/generation": 1.2, "time/update": 0.5})
    rows[2]["time/evaluation"] = 6.0
    found = compare_runs(write_runs(tmp_path, {"uniform": [rows]}), baseline="uniform")
    measures = found.method("uniform").measures
    want = {"time/generation": 1.2, "time/update": 0.5, "time/evaluation": 3.0}
    assert {key: measures[key].mean for key in want} == pytest.approx(want)
    assert math.isnan(measures["time/reward"].mean)
    table = next(table for table in measure_tables(found) if table.title == "Time by phase")
    assert table.head == ("method", "generation, a step", "update, a step", "evaluation, a step")


def test_runs_without_phases_have_no_table_of_them(tmp_path: Path) -> None:
    found = compare_runs(write_runs(tmp_path, {"uniform": [lines((0.1, 0.2, 0.3))]}), baseline="uniform")
    assert "Time by phase" not in [table.title for table in measure_tables(found)]
