"""Damaged or missing files of a run, and what the run warned of, as sentences for the page."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rollwise.evaluation import RunData
from rollwise.reports.run.digest import pool_size
from rollwise.runs.group_table import NO_STEP, GroupTable
from rollwise.runs.lines import Faults, enumeration
from rollwise.runs.names import METRICS_FILE, ROLLOUTS_FILE

MOST_SPANS = 8


def find_problems(run: RunData, groups: GroupTable, faults: Faults) -> list[str]:
    """A sentence for each thing that could not be read, or that should be there and is not."""
    said = faults.sentences()
    steps = run.steps
    if len(steps) > 1:
        gaps = np.setdiff1d(np.arange(steps[0], steps[-1] + 1), steps) if steps[-1] < 10**7 else np.arange(0)
        if gaps.size:
            said.append(f"{METRICS_FILE} has no line for {_named(gaps)}.")
    generated = steps[np.isfinite(run.column("frac_mixed"))]
    lost = np.setdiff1d(generated, groups.step)
    if len(groups) and lost.size and np.any(groups.step != NO_STEP):
        said.append(f"{ROLLOUTS_FILE} has no group for {_named(lost)}.")
    return said


def find_alarms(run: RunData, groups: GroupTable) -> list[str]:
    """A sentence for each thing that the run warned of and that was still so at its end."""
    known = np.flatnonzero(np.isfinite(run.column("curriculum/coverage")))
    unseen = float(run.column("curriculum/unseen_long")[known[-1]]) if len(known) else math.nan
    size = pool_size(run, groups)
    if not math.isfinite(unseen) or size is None:
        return []
    asked = int(np.count_nonzero(groups.train))
    return [
        f"{unseen:,.0f} of the pool's {size:,} prompts were never asked for to train on, in {asked:,} draws; drawing "
        f"at random would have left about {size * math.exp(-asked / size):,.0f}. Whether the policy could learn from "
        "them is unknown: let the method explore more, or turn on the rails."
    ]


def _named(steps: NDArray[np.int64]) -> str:
    """`step 4`, or `2 steps: 4 and 9`, runs of steps as `4-7`."""
    if steps.size == 1:
        return f"step {steps[0]}"
    parts = np.split(steps, np.flatnonzero(np.diff(steps) > 1) + 1)
    spans = [str(part[0]) if part.size == 1 else f"{part[0]}-{part[-1]}" for part in parts]
    more = len(spans) - MOST_SPANS
    words = spans[:MOST_SPANS] + ([f"{more:,} more stretches"] if more > 0 else [])
    return f"{steps.size:,} steps: {enumeration(words)}"
