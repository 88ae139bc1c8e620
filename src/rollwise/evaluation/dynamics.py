"""How what a run sampled changed over its steps. Pure functions over M groups in their order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def success_rate_heatmap(steps: NDArray[Any], rates: FloatArray, step_edges: FloatArray, levels: int) -> FloatArray:
    """Of the groups of each span of steps, the share at each success rate; BOTS, appendix F.4 and Figure 7.

    Args:
        steps: (M,), each group's step.
        rates: (M,), its empirical success rate; NaN, for a group without a reward, is left out.
        step_edges: (X + 1,), increasing: where the columns begin and end.
        levels: Y, at least 2: rates are rounded to the nearest of 0, 1/(Y-1), ..., 1. For groups of 16 rollouts the
            paper's 0/16 ... 16/16 are 17 levels.

    Returns:
        (Y, X): every column sums to 1, or is NaN where no group falls into it.

    >>> rates = np.array([0.0, 0.0, 0.5, 1.0])
    >>> success_rate_heatmap(np.array([1, 1, 1, 2]), rates, np.array([0.5, 1.5, 2.5]), levels=3).round(2).tolist()
    [[0.67, 0.0], [0.33, 0.0], [0.0, 1.0]]
    """
    kept = np.isfinite(rates)
    column = np.searchsorted(step_edges, np.asarray(steps)[kept], side="right") - 1
    row = np.floor(rates[kept] * (levels - 1) + 0.5).astype(np.int64)
    inside = (column >= 0) & (column < len(step_edges) - 1)
    counts = np.zeros((levels, len(step_edges) - 1))
    np.add.at(counts, (row[inside], column[inside]), 1)
    total = counts.sum(axis=0)
    return np.where(total > 0, counts / np.maximum(total, 1), np.nan)


def sums_by_step(
    steps: NDArray[Any], kinds: NDArray[Any], n_kinds: int, values: FloatArray | None = None
) -> tuple[IntArray, FloatArray]:
    """The steps that have a group, (S,) increasing, and for each step and kind the sum of the groups' values, (S, K).

    Args:
        steps: (M,), each group's step.
        kinds: (M,), its kind: 0 ... K-1.
        n_kinds: K.
        values: (M,), what is summed; 1 for each, so that groups are counted, unless given.

    >>> steps, counts = sums_by_step(np.array([1, 1, 3]), np.array([0, 1, 1]), 2)
    >>> steps.tolist(), counts.tolist()
    ([1, 3], [[1.0, 1.0], [0.0, 1.0]])
    """
    unique, row = np.unique(np.asarray(steps), return_inverse=True)
    sums = np.zeros((len(unique), n_kinds))
    np.add.at(sums, (row, np.asarray(kinds)), 1.0 if values is None else values)
    return unique.astype(np.int64), sums


def last_outcomes(
    steps: NDArray[Any], prompts: NDArray[Any], kinds: NDArray[Any], n_kinds: int
) -> tuple[IntArray, IntArray]:
    """How many prompts had which outcome when last seen, at the end of each step.

    Args:
        steps: (M,), each group's step; of several groups of a prompt in one step the last one counts.
        prompts: (M,), its prompt.
        kinds: (M,), its outcome: 0 ... K-1.
        n_kinds: K.

    Returns:
        The steps (S,), increasing, and the prompts by last outcome (S, K); a row sums to the prompts seen by then.

    >>> steps, counts = last_outcomes(np.array([1, 1, 2]), np.array([7, 8, 7]), np.array([0, 1, 1]), 2)
    >>> steps.tolist(), counts.tolist()
    ([1, 2], [[1, 1], [0, 2]])
    """
    unique, row = np.unique(np.asarray(steps), return_inverse=True)
    prompts, kinds = np.asarray(prompts), np.asarray(kinds)
    change = np.zeros((len(unique), n_kinds), dtype=np.int64)
    np.add.at(change, (row, kinds), 1)
    order = np.lexsort((row, prompts))  # visits of one prompt side by side, by step and then in their order
    again = np.flatnonzero(prompts[order][1:] == prompts[order][:-1])
    np.add.at(change, (row[order][again + 1], kinds[order][again]), -1)
    return unique.astype(np.int64), np.cumsum(change, axis=0)
