"""What a run spends, as x axes, and words that captions share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rollwise.evaluation import RunData
from rollwise.evaluation.curves import cumulative
from rollwise.reports.series import MOST_POINTS, FloatArray, smoothing_window, time_unit
from rollwise.runs.lines import enumeration

_PASS_AT = re.compile(r"eval/pass@(\d{1,9})")


@dataclass(frozen=True)
class Budget:
    """What a run spends, as an x axis: its label, its value at each of the run's lines (S,), and its name in words."""

    label: str
    spent: FloatArray
    short: str


def budgets(run: RunData) -> list[Budget]:
    """Training steps, and where they were recorded rollouts, generated tokens, FLOPs and training time."""
    steps = run.metrics["step"]
    axes = [Budget("training step", steps, "training steps")]
    for key, label in [("rollouts", "rollouts"), ("tokens", "generated tokens"), ("flops", "FLOPs")]:
        counted = cumulative(steps, run.column(key))
        if counted is not None:
            axes.append(Budget(label, counted, label))
    wall = cumulative(steps, run.column("wall_s"))
    if wall is not None:
        unit, seconds = time_unit(float(wall.max(initial=0.0)))
        axes.append(Budget(f"training time ({unit})", wall / seconds, "wall-clock"))
    return axes


def budget_names(axes: Sequence[Budget]) -> str:
    """The axes in words, for a caption."""
    return enumeration([budget.short for budget in axes])


def budget_tabs(axes: Sequence[Budget]) -> tuple[str, ...]:
    """Names of the buttons, where there is anything to choose."""
    names = {"training steps": "steps", "generated tokens": "tokens"}
    return tuple(names.get(budget.short, budget.short) for budget in axes) if len(axes) > 1 else ()


def evaluation_columns(run: RunData) -> list[str]:
    """The evaluations' score columns, pass@1 first, then by k; the evaluation reward where there is no pass@k."""
    found = [(int(match[1]), key) for key in run.metrics if (match := _PASS_AT.fullmatch(key))]
    keys = [key for _, key in sorted(found) if any_finite(run.column(key))]
    return keys or [key for key in ["eval/reward"] if any_finite(run.column(key))]


def smoothing(*columns: FloatArray) -> str:
    """The end of a caption: how a trend's lines were smoothed; empty where they were not."""
    points = max(int(np.isfinite(column).sum()) for column in columns)
    window = smoothing_window(points)
    faint = "each step" if points <= MOST_POINTS else "the range of neighbouring steps"
    return f"; faint is {faint}, strong the centred moving mean over {window} steps" if window > 1 else ""


def stack_smoothing(steps: FloatArray) -> str:
    """The end of a caption: how a stack was smoothed; empty where it was not."""
    window = smoothing_window(len(steps))
    return f", as the centred moving mean over {window} steps" if window > 1 else ""


def any_finite(values: FloatArray) -> bool:
    """Whether there is anything to draw."""
    return bool(np.isfinite(values).any())


def complete(run: RunData, keys: Sequence[str]) -> tuple[FloatArray, FloatArray]:
    """The steps at which all the columns are finite, (S,), and the columns there, (S, K)."""
    parts = np.stack([run.column(key) for key in keys], axis=1)
    kept = np.isfinite(parts).all(axis=1)
    return run.metrics["step"][kept], parts[kept]
