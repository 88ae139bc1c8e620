"""Damaged or missing files of a run, and what the run warned of, as sentences for the page."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rollwise.evaluation import RunData
from rollwise.reports.run.digest import RolloutDigest, pool_size
from rollwise.runs.group_table import NO_STEP, GroupTable
from rollwise.runs.lines import Faults, enumeration
from rollwise.runs.names import METRICS_FILE, ROLLOUTS_FILE

MOST_SPANS = 8
SEEN, LEARNABLE = 0.9, 0.05
"""A pool is used up when this share of it was seen, and less than this share is learnable."""


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


def find_alarms(run: RunData, digest: RolloutDigest) -> list[str]:
    """A sentence for each thing that is worth a look at the run's end."""
    return [*_stay_unseen(run, digest.table), *_used_up(run, digest)]


def _stay_unseen(run: RunData, groups: GroupTable) -> list[str]:
    """What the run warned of, if that was still so at its end."""
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


def _used_up(run: RunData, digest: RolloutDigest) -> list[str]:
    """That the pool has little left to teach: nearly all of it was seen, and few latest groups were mixed."""
    groups, (steps, last) = digest.table, digest.last_outcomes
    size = pool_size(run, groups)
    if not len(steps) or size is None:
        return []
    mixed, solved, failed = last[-1].tolist()
    a_step = np.count_nonzero(groups.in_training) / len(steps)
    if mixed + solved + failed < SEEN * size or mixed >= min(a_step, LEARNABLE * size):
        return []
    return [
        f"The pool has little left to teach: of its {size:,} prompts {mixed:,} had rewards that differ in their latest "
        f"group, fewer than a step trains on; {solved:,} were all solved, {failed:,} all failed. End the run, or add "
        "prompts that the policy solves sometimes (rollwise profile finds them)."
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
