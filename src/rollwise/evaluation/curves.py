"""A run's scores against what it spent, as piecewise linear curves, and what is read off several of them at once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollwise.errors import StateFileError
from rollwise.runs.group_table import GroupTable
from rollwise.runs.reading import RunData

FloatArray = NDArray[np.float64]

# An average of equal scores may differ by this much from one place to the next.
ROUNDING = 1e-12

RATIO = "frac_mixed"
"""The column of each step's share of groups whose rewards differ."""
GROUPS = "groups"
"""The column that `with_groups` adds."""

# What a run spends: the column of its metrics, and its name in words.
AXES = {
    "steps": "training steps",
    "rollouts": "rollouts",
    "tokens": "generated tokens",
    "flops": "FLOPs",
    "wall_s": "seconds of training",
}


@dataclass(frozen=True)
class Curve:
    """Scores `y` (E,) at `x` (E,), which increases strictly; between two of them it is a straight line."""

    x: FloatArray
    y: FloatArray


def spending(run: RunData, axis: str) -> FloatArray | None:
    """What the run had spent by each of its lines, (S,): gaps filled linearly, 0 at step 0.

    None where it was never recorded.
    """
    steps = run.metrics["step"]
    return steps if axis == "steps" else cumulative(steps, run.column(axis))


def finite(values: FloatArray) -> FloatArray:
    """The entries of a column that are known."""
    return values[np.isfinite(values)]


def last_known(values: FloatArray) -> float:
    """The last entry of a column that is known; NaN without any."""
    known = finite(values)
    return float(known[-1]) if known.size else math.nan


def cumulative(steps: FloatArray, counts: FloatArray) -> FloatArray | None:
    """A cumulative column at every step, (S,): gaps filled linearly, 0 at step 0; None where it was never recorded."""
    known = np.isfinite(counts)
    if not known.any():
        return None
    at, count = steps[known], counts[known]
    if at[0] > 0:
        at, count = np.concatenate([[0.0], at]), np.concatenate([[0.0], count])
    return np.asarray(np.interp(steps, at, count), dtype=np.float64)


def run_curve(run: RunData, column: str, axis: str) -> Curve | None:
    """A column's finite entries against what the run had spent by then; None where either was never recorded.

    Raises:
        StateFileError: What was spent falls from one line to a later one.
    """
    x, y = spending(run, axis), run.column(column)
    if x is None or not np.isfinite(y).any():
        return None
    falls = np.diff(x) < 0
    if falls.any():
        step = int(run.metrics["step"][1:][falls][0])
        raise StateFileError(f"{run.path}: {axis!r} falls before step {step}, but it is a running total; mend the line")
    x, y = x[np.isfinite(y)], y[np.isfinite(y)]
    last = np.append(np.diff(x) > 0, True)  # nothing spent between two evaluations: the later one counts
    return Curve(x[last], y[last])


def with_groups(run: RunData, groups: GroupTable) -> RunData:
    """The run with a column `GROUPS`, (S,): how many of each step's groups have a reward.

    As it is where `rollouts.jsonl` lacks the groups of some step.
    """
    counts = Counter(groups.step[groups.in_training & groups.judged].tolist())
    column, ratio = np.array([counts[step] for step in run.steps.tolist()], dtype=np.float64), run.column(RATIO)
    if not column[np.isfinite(ratio)].any() or ((column == 0) & (ratio > 0)).any():
        return run
    return replace(run, metrics=run.metrics | {GROUPS: column})


def ratio_in(run: RunData, counted: NDArray[Any]) -> float:
    """The share of the groups whose rewards differ, of the steps where `counted`, (S,), is true; NaN without a group.

    Of a run without the column `GROUPS` it is the mean over these steps.
    """
    ratio, groups = run.column(RATIO), run.metrics.get(GROUPS, np.ones(counted.shape))
    kept = counted & np.isfinite(ratio) & (groups > 0)
    return float(np.average(ratio[kept], weights=groups[kept])) if kept.any() else math.nan


def ratio_until(run: RunData, axis: str, end: float) -> float:
    """`ratio_in` of the steps that began before `end` was spent; NaN where what was spent is not known.

    So a run that ended because its budget was spent has all of its steps in it.
    """
    spent = spending(run, axis)
    return math.nan if spent is None else ratio_in(run, np.concatenate([[0.0], spent[:-1]]) < end)


def on_common_grid(
    curves: Sequence[Curve], until: float = math.inf, since: float = -math.inf
) -> tuple[FloatArray, FloatArray]:
    """Several curves on one grid, exactly: the grid holds every point at which any of them bends.

    Args:
        curves: C >= 1 curves.
        until: Where to cut them; each curve's value there is interpolated.
        since: Where to begin, likewise.

    Returns:
        The grid, (G,), from `since` or the latest first point to `until` or the earliest last point, and the values,
        (C, G). Both are empty where the curves have no stretch in common.

    >>> grid, values = on_common_grid([Curve(np.array([0.0, 10]), np.array([0.0, 1])),
    ...                                Curve(np.array([0.0, 4, 10]), np.array([0.0, 1, 1]))], until=8)
    >>> grid.tolist(), values.tolist()
    ([0.0, 4.0, 8.0], [[0.0, 0.4, 0.8], [0.0, 1.0, 1.0]])
    """
    start = max(since, *(float(curve.x[0]) for curve in curves))
    stop = min(until, *(float(curve.x[-1]) for curve in curves))
    if stop < start:
        return np.empty(0), np.empty((len(curves), 0))
    bends = np.concatenate([curve.x for curve in curves])
    grid = np.unique(np.concatenate([bends[(bends > start) & (bends < stop)], [start, stop]]))
    return grid, np.stack([np.interp(grid, curve.x, curve.y) for curve in curves])


def first_reaching(x: FloatArray, y: FloatArray, targets: FloatArray) -> FloatArray:
    """Where each of R curves first reaches its target, interpolated linearly; infinity where it never does.

    tau_M of BOTS, appendix B.4, for R curves on one grid.

    Args:
        x: (G,), increasing.
        y: (R, G), finite.
        targets: (R,).

    >>> first_reaching(np.array([0.0, 40]), np.array([[0.0, 1.0], [0.0, 0.1]]), np.array([0.5, 0.5])).tolist()
    [20.0, inf]
    """
    if x.size == 0:
        return np.full(len(y), np.inf)
    reached = y >= targets[:, None] - ROUNDING
    here = np.argmax(reached, axis=1)
    before, rows = np.maximum(here - 1, 0), np.arange(len(y))
    low, high = y[rows, before], y[rows, here]
    share = np.divide(targets - low, high - low, out=np.zeros(len(y)), where=high > low)
    at = x[before] + np.minimum(share, 1.0) * (x[here] - x[before])
    return np.asarray(np.where(reached.any(axis=1), at, np.inf), dtype=np.float64)


def targets_of(y: FloatArray, fraction: float) -> FloatArray:
    """The score `fraction` of the way from each curve's first score to its best, (R,): P_tau of BOTS, appendix B.4."""
    # A blend, so that fraction 1 is the best score exactly, which the curve itself then reaches.
    return np.asarray((1 - fraction) * y[:, 0] + fraction * y.max(axis=1), dtype=np.float64)


def relative_times(
    x: FloatArray, y: FloatArray, baseline_x: FloatArray, baseline_y: FloatArray, fraction: float
) -> FloatArray:
    """TTB of R pairs of curves, (R,): below 1 is faster, infinity never, NaN where the baseline of a pair never rises.

    BOTS, section 4.1 and appendix B.4. Row r of `y` (R, G) is compared with row r of `baseline_y` (R, H).
    """
    targets = targets_of(baseline_y, fraction)
    own, baseline = first_reaching(x, y, targets), first_reaching(baseline_x, baseline_y, targets)
    rises = baseline_y.max(axis=1) > baseline_y[:, 0] + ROUNDING
    found = np.divide(own, baseline, out=np.full(len(y), np.nan), where=rises & (baseline > 0))
    return np.asarray(found, dtype=np.float64)


def time_of_best(x: FloatArray, y: FloatArray) -> FloatArray:
    """Where each of R curves first has its own greatest score, (R,). METIS, Table 1 and appendix A.4.

    Args:
        x: (G,), increasing, G >= 1.
        y: (R, G), finite.

    >>> time_of_best(np.array([0.0, 10, 20]), np.array([[0.1, 0.5, 0.5], [0.3, 0.2, 0.1]])).tolist()
    [10.0, 0.0]
    """
    best = y.max(axis=1, keepdims=True) - ROUNDING
    return np.asarray(x[np.argmax(y >= best, axis=1)], dtype=np.float64)


def relative_times_of_best(x: FloatArray, y: FloatArray, baseline_x: FloatArray, baseline_y: FloatArray) -> FloatArray:
    """`time_of_best` of R pairs of curves, a curve's over its baseline's, (R,); NaN where the latter is 0.

    Optimistic: a maximum of noisy scores comes early or late by chance, and a curve that never rises has its best at
    the start.
    """
    own, baseline = time_of_best(x, y), time_of_best(baseline_x, baseline_y)
    return np.asarray(np.divide(own, baseline, out=np.full(len(y), np.nan), where=baseline > 0), dtype=np.float64)


def best_by(x: FloatArray, y: FloatArray, until: float, *, between: bool) -> FloatArray:
    """The best score of each of R curves up to `until`, (R,); NaN where they begin later.

    Args:
        x: (G,), increasing.
        y: (R, G).
        until: The last place that counts.
        between: Count the interpolated score at `until` too. Without it a method that is evaluated just after `until`
            looks worse than one evaluated just before.

    >>> best_by(np.array([0.0, 10]), np.array([[0.0, 1.0]]), 5, between=True).tolist()
    [0.5]
    """
    inside = x <= until
    if not inside.any():
        return np.full(len(y), np.nan)
    best = y[:, inside].max(axis=1)
    last = int(np.count_nonzero(inside)) - 1
    if between and last + 1 < len(x):
        share = (until - x[last]) / (x[last + 1] - x[last])
        best = np.maximum(best, (1 - share) * y[:, last] + share * y[:, last + 1])
    return np.asarray(best, dtype=np.float64)


def counts_evaluations_alone(axis: str, until: float) -> bool:
    """Whether BSF up to `until` counts evaluations alone, as the papers' does: in steps, up to a whole one.

    Runs that are as long as one another in steps are evaluated at the same ones. Cut between two steps, at some number
    of tokens, that would drop the last evaluation of all, so there the score is interpolated, as on the other axes.
    """
    return axis == "steps" and math.isclose(until, round(until), abs_tol=1e-9)


def relative_bests(
    x: FloatArray, y: FloatArray, baseline_x: FloatArray, baseline_y: FloatArray, until: float, *, between: bool
) -> FloatArray:
    """BSF of R pairs of curves at `until`, (R,): above 1 is better; NaN where the baseline's best is not above 0.

    BOTS, section 4.1 and appendix B.4.
    """
    own, baseline = (best_by(a, b, until, between=between) for a, b in ((x, y), (baseline_x, baseline_y)))
    return np.asarray(np.divide(own, baseline, out=np.full(len(y), np.nan), where=baseline > 0), dtype=np.float64)


def mean_height(x: FloatArray, y: FloatArray) -> FloatArray:
    """The mean of each of R curves over x, (R,): the area under it divided by its length; NaN for a single point.

    >>> mean_height(np.array([0.0, 1, 4]), np.array([[0.0, 1, 1]])).tolist()
    [0.875]
    """
    if len(x) < 2:
        return np.full(len(y), np.nan)
    widths = np.diff(x)
    return np.asarray((y[:, 1:] + y[:, :-1]) @ widths / (2 * widths.sum()), dtype=np.float64)
