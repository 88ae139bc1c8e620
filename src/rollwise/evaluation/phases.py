"""Where a run's time went: the seconds of each step by phase, as `metrics.jsonl` has them; BOTS, appendix F.1."""

from __future__ import annotations

import math

import numpy as np

from rollwise.evaluation.curves import FloatArray, finite
from rollwise.runs.reading import RunData

# The columns `time/...` in the order in which a step goes through them, and their names in words.
PHASES = {
    "ask": "choosing prompts",
    "judging": "judging",
    "generation": "generation",
    "reward": "reward",
    "logprobs": "log-probabilities",
    "tell": "learning from outcomes",
    "update": "update",
    "evaluation": "evaluation",
}
# Not part of the training time `wall_s`.
EVALUATION = "evaluation"
# What is left of a step's training time: data, logs, checkpoints, and phases that were not told apart.
REST = "rest"


def phase_seconds(run: RunData) -> dict[str, float]:
    """Seconds of the whole run in each of `PHASES`; NaN for one that was not recorded."""
    found = {phase: finite(run.column(f"time/{phase}")) for phase in PHASES}
    return {phase: float(values.sum()) if values.size else math.nan for phase, values in found.items()}


def recorded_phases(run: RunData) -> list[str]:
    """Those of `PHASES` that the run has a column of, without evaluation: they are parts of the training time."""
    return [phase for phase in PHASES if phase != EVALUATION and finite(run.column(f"time/{phase}")).size]


def step_seconds(run: RunData) -> FloatArray:
    """The training time of each step, (S,): from `wall_s`; NaN where it is unknown."""
    steps, wall = run.metrics["step"], run.column("wall_s")
    wall = np.where((steps == 0) & ~np.isfinite(wall), 0.0, wall)  # no time had been spent before training
    before = np.concatenate([[0.0 if steps.size and steps[0] == 1 else np.nan], wall[:-1]])[: len(wall)]
    follows = np.concatenate([[True], np.diff(steps) == 1])[: len(wall)]  # else a line is missing: two steps' time
    return np.where(follows, wall - before, np.nan)


def phase_table(run: RunData) -> tuple[list[str], FloatArray, FloatArray]:
    """The recorded phases and the rest (K,), the steps with a training time (S,), and the seconds of each (S, K).

    A phase that a step has no entry of took no time in it. The rest is what the phases leave of the step's training
    time; it is left out where that was not recorded for any step.
    """
    phases, took = recorded_phases(run), step_seconds(run)
    if not phases:
        return [], np.empty(0), np.empty((0, 0))
    columns = np.stack([run.column(f"time/{phase}") for phase in phases], axis=1)
    timed = np.isfinite(columns).any(axis=1)
    if np.isfinite(took[timed]).any():
        timed &= np.isfinite(took)
    parts = np.nan_to_num(columns[timed])
    left = np.maximum(took[timed] - parts.sum(axis=1), 0.0)
    if np.isfinite(left).all():
        phases, parts = [*phases, REST], np.column_stack([parts, left])
    return phases, run.metrics["step"][timed], parts
