"""Which prompts a run asked for, how often, and which it left waiting. Pure functions over tickets in their order.

Prompts are numbered 0 ... P-1; `prompts` (M,) holds the prompt of each of M tickets, oldest first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rollwise.errors import ConfigError

IntArray = NDArray[np.int64]

# As the safety rails count it: a prompt is starved that uniform sampling would have asked for this many times.
STARVED_AFTER = 5.0


def distinct_by_step(steps: NDArray[Any], prompts: NDArray[Any]) -> tuple[IntArray, IntArray]:
    """The steps that have a ticket, (S,) increasing, and how many prompts were asked at least once by each, (S,).

    >>> steps, distinct = distinct_by_step(np.array([1, 1, 2, 4]), np.array([0, 1, 0, 2]))
    >>> steps.tolist(), distinct.tolist()
    ([1, 2, 4], [2, 2, 3])
    """
    order = np.argsort(steps, kind="stable")
    at = np.asarray(steps)[order]
    _, first = np.unique(np.asarray(prompts)[order], return_index=True)
    unique = np.unique(at)
    return unique.astype(np.int64), np.searchsorted(np.sort(at[first]), unique, side="right").astype(np.int64)


def visits(prompts: NDArray[Any], n_prompts: int) -> IntArray:
    """How often each prompt was asked, (P,)."""
    return np.bincount(np.asarray(prompts, dtype=np.int64), minlength=n_prompts).astype(np.int64)


def visits_histogram(counts: NDArray[Any], pool: int) -> IntArray:
    """How many prompts of a pool were asked v times, for v = 0 ... the most, (V + 1,).

    Args:
        counts: (P,) visits of the prompts asked at least once.
        pool: Size of the pool, at least P: the others were asked 0 times.

    Raises:
        ConfigError: More prompts were asked than the pool has.

    >>> visits_histogram(np.array([1, 3, 1]), pool=5).tolist()
    [2, 2, 0, 1]
    """
    asked = np.asarray(counts, dtype=np.int64)
    if pool < asked.size:
        raise ConfigError(f"pool must be at least the {asked.size} prompts asked, got {pool!r}")
    histogram = np.bincount(asked, minlength=1)
    histogram[0] += pool - asked.size
    return histogram.astype(np.int64)


def waiting(prompts: NDArray[Any], n_prompts: int) -> IntArray:
    """Tickets issued since each prompt was last asked, (P,): 0 for the last ticket's prompt, M for one never asked.

    Divided by the pool's size this is how many times uniform sampling would have come to it in the meantime.

    >>> waiting(np.array([0, 1, 0]), 3).tolist()
    [0, 1, 3]
    """
    last = np.full(n_prompts, -1, dtype=np.int64)
    np.maximum.at(last, np.asarray(prompts, dtype=np.int64), np.arange(len(prompts)))
    return len(prompts) - 1 - last


def starved(
    waited: NDArray[Any], solved: NDArray[Any], *, pool: int, after: float = STARVED_AFTER
) -> NDArray[np.bool_]:
    """Which prompts are starved: not solved when last seen, and not asked for in more than `after * pool` tickets.

    Args:
        waited: (P,), as from `waiting`.
        solved: (P,) bool, whether the prompt's last group was all solved.
        pool: Size of the pool.
        after: How many times uniform sampling would have asked for it.

    >>> starved(np.array([11, 11, 2]), np.array([False, True, False]), pool=2).tolist()
    [True, False, False]
    """
    return np.asarray((np.asarray(waited) > after * pool) & ~np.asarray(solved, dtype=bool))
