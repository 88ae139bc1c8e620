"""Divides a budget by the worth of each prompt's next rollout: the best division, where that never rises."""

from __future__ import annotations

import numpy as np


def most_valuable(values: np.ndarray, room: np.ndarray, budget: int) -> np.ndarray:
    """How many of each row's first values are among the `budget` greatest of all, (K,) int64.

    Where no row rises, this is the division of greatest sum. Of equal values those of a smaller column come first,
    then those of an earlier row. If `room` is less than the budget, all of it is given.

    Args:
        values: (K, S) the worth of each row's first, second, ... rollout.
        room: (K,) int64, the most that each row takes, at most S.
        budget: how many to give.

    >>> most_valuable(np.array([[0.5, 0.2, 0.1], [0.4, 0.3, 0.3]]), np.array([3, 3]), 4).tolist()
    [1, 3]
    """
    rows, columns = np.nonzero(np.arange(values.shape[1]) < room[:, None])
    order = np.lexsort((rows, columns, -values[rows, columns]))[:budget]
    return np.bincount(rows[order], minlength=len(values)).astype(np.int64)


def equally(room: np.ndarray, budget: int) -> np.ndarray:
    """The budget over rows as equally as their `room` (K,) allows, (K,) int64; earlier rows get the odd ones.

    >>> equally(np.array([1, 5, 5]), 8).tolist()
    [1, 4, 3]
    """
    return most_valuable(np.zeros((len(room), int(room.max(initial=0)))), room, budget)


def in_proportion(shares: np.ndarray, low: np.ndarray | int, high: int, total: int) -> np.ndarray:
    """Whole numbers in [low, high] in proportion to shares (K,) > 0, (K,) int64, whose sum is `total`.

    `low` may be one number for all, or (K,).

    What the bounds cut off is divided among the others, in proportion; then the greatest remainders are rounded up.

    >>> in_proportion(np.array([8.0, 1.0, 1.0]), 2, 8, 12).tolist()
    [8, 2, 2]
    """
    logs = np.log(shares)
    lowest, highest = -float(logs.max()), np.log(high) - float(logs.min())
    for _ in range(100):  # the log of the factor by which the clipped shares have this sum
        factor = (lowest + highest) / 2.0
        enough = np.exp(np.clip(logs + factor, np.log(low), np.log(high))).sum() >= total
        lowest, highest = (lowest, factor) if enough else (factor, highest)
    exact = np.exp(np.clip(logs + highest, np.log(low), np.log(high)))
    sizes = np.floor(exact + 1e-9).astype(np.int64)
    left = total - int(sizes.sum())
    remainder = np.where(sizes < high, exact - sizes, -1.0)
    sizes[np.argsort(-remainder, kind="stable")[:left]] += 1
    return np.asarray(sizes)
