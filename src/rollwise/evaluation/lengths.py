"""How long a run's completions were: of the solved rollouts, of the others, and of all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rollwise.evaluation.dynamics import sums_by_step
from rollwise.runs.group_table import GroupTable

FloatArray = NDArray[np.float64]
UNSOLVED, SOLVED, ALL = 0, 1, 2


def lengths_by_step(groups: GroupTable) -> tuple[NDArray[np.int64], FloatArray]:
    """Mean tokens of the rollouts that were trained on: the steps (S,), and (S, 3) `UNSOLVED`, `SOLVED` and `ALL`.

    NaN where a step has no such rollout. Empty for a run that has no lengths.
    """
    kept = groups.in_training & groups.lengths[:, :, 0].any(axis=1)
    steps, whole = groups.step[kept], np.zeros(np.count_nonzero(kept), dtype=np.int64)
    found, means = np.unique(steps), []
    parts = groups.lengths[kept]
    for part in (parts[:, UNSOLVED], parts[:, SOLVED], parts.sum(axis=1)):
        count, tokens = (sums_by_step(steps, whole, 1, part[:, i].astype(np.float64))[1][:, 0] for i in (0, 1))
        means.append(np.where(count > 0, tokens / np.maximum(count, 1), np.nan))
    return found, np.stack(means, axis=1)
