"""How long a run's completions were: of the solved rollouts, of the others, and of all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rollwise.runs.group_table import GroupTable

FloatArray = NDArray[np.float64]
UNSOLVED, SOLVED, ALL = 0, 1, 2


def lengths_by_step(groups: GroupTable) -> tuple[NDArray[np.int64], FloatArray]:
    """Mean tokens of the rollouts that were trained on: the steps (S,), and (S, 3) `UNSOLVED`, `SOLVED` and `ALL`.

    NaN where a step has no such rollout. Empty for a run that has no lengths.
    """
    kept = groups.in_training & groups.lengths[:, :, 0].any(axis=1)
    steps, row = np.unique(groups.step[kept], return_inverse=True)
    sums = np.zeros((len(steps), 2, 2))
    np.add.at(sums, row, groups.lengths[kept])
    count, tokens = np.moveaxis(np.concatenate([sums, sums.sum(axis=1, keepdims=True)], axis=1), 2, 0)
    return steps, np.where(count > 0, tokens / np.maximum(count, 1), np.nan)
