"""What a ranking sorts the pool by in one round, the least first; computed no further than it is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

LEAST_SCORE = np.finfo(np.float64).tiny
_STRIDE = 64
_MARGIN = 1.0 + 1e-9  # over the rounding of logarithms
_SPARE = 4
"""Where many keys are equal, about this many times as many are looked at as are wanted."""
Chance = Callable[[np.ndarray], np.ndarray]
"""uint32 numbers (K,) of rows (K,), by which equal keys are sorted, the least first."""
ChanceBelow = Callable[[int], np.ndarray]
"""Of a bound, which of the N slots have a chance of at most that, bool (N,); perhaps others too."""


class RoundKeys:
    """Keys of the N prompts of the pool.

    Args:
        keys: (N,) numbers of any kind.

    >>> keys = RoundKeys(np.array([3, 1, 2, 1]))
    >>> keys.of(np.array([0, 2])).tolist(), keys.leading(1, np.array([True, True, True, False])).tolist()
    ([3, 2], [1])
    """

    def __init__(self, keys: np.ndarray) -> None:
        self.keys = keys

    def of(self, slots: np.ndarray) -> np.ndarray:
        """The keys of slots (K,)."""
        return np.asarray(self.keys[slots])

    def leading(self, n: int, can: np.ndarray, below: ChanceBelow | None = None) -> np.ndarray:
        """Of the slots that `can` (N,) be chosen, those with the `n` least keys and with keys equal to one of these.

        Perhaps others too. If `below` is given, not all of the equal keys: those with the least chances, and no fewer
        than `n` slots in all.
        """
        among = n + len(can) - int(np.count_nonzero(can))
        if among >= len(can):
            return np.flatnonzero(can)
        last = reaching(self.keys, among)
        some = (self.keys <= last) & can
        crowd = np.count_nonzero(some)
        if below is not None and crowd > 2 * _SPARE * n:
            found = np.flatnonzero(some & (below(int(2**32 * _SPARE * n / crowd)) | (self.keys < last)))
            if len(found) >= n:
                return found
        return np.flatnonzero(some)

    def up_to(self, last: np.ndarray, slots: np.ndarray, chance: Chance) -> np.ndarray:
        """Which of slots (K,) are sorted no later than the slot `last` (1,), (K,); none if `last` is empty."""
        if not len(last):
            return np.zeros(len(slots), dtype=bool)
        keys, limit = self.of(slots), self.of(last)
        if (even := keys == limit).any():
            even[even] = chance(slots[even]) <= chance(last)
        return np.asarray((keys < limit) | even)

    def put(self, slots: np.ndarray, keys: np.ndarray) -> None:
        """Change the keys of slots (K,)."""
        self.keys[slots] = keys


class GumbelKeys(RoundKeys):
    """Keys of a draw in proportion to scores: -(log score + Gumbel noise), with the noise of `rng.gumbel`.

    The noise is -log(-log U) of a uniform U. Taking logarithms of all N is most of the work, so that they are taken of
    the few that can lead: -log(U) / score has the order of the keys, and is at least (1 - U) / score.

    Args:
        scores: (N,) >= 0.
        rng: of the noise.
    """

    def __init__(self, scores: np.ndarray, rng: np.random.Generator) -> None:
        self.scores, self.short = np.maximum(scores, LEAST_SCORE), rng.random(len(scores))  # 1 - U

    def of(self, slots: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):  # U = 1, for which `rng.gumbel` draws again, comes once in 2^53 draws
            noise = -np.log(-np.log(1.0 - self.short[slots]))
        return np.asarray(-(np.log(self.scores[slots]) + noise))

    def leading(self, n: int, can: np.ndarray, below: ChanceBelow | None = None) -> np.ndarray:
        n += len(can) - int(np.count_nonzero(can))
        if n >= len(can):
            return np.flatnonzero(can)
        bound = self.short / self.scores
        some = np.flatnonzero(bound <= reaching(bound, n))
        rates = -np.log1p(-self.short[some]) / self.scores[some]
        return np.flatnonzero((bound <= kth_least(rates, n) * _MARGIN) & can)


class NearestKeys(RoundKeys):
    """Keys that do not fall with the distance from a point, of prompts sorted along a line.

    Only a window around the point is looked at.

    Args:
        line: (N,) the prompts' places, sorted.
        order: (N,) their slots, in that order.
        point: where.
        keys_of: the keys (K,) of slots (K,).
    """

    def __init__(
        self, line: np.ndarray, order: np.ndarray, point: float, keys_of: Callable[[np.ndarray], np.ndarray]
    ) -> None:
        self.order, self.keys_of = order, keys_of
        self.at = int(np.searchsorted(line, point))

    def of(self, slots: np.ndarray) -> np.ndarray:
        return np.asarray(self.keys_of(slots))

    def leading(self, n: int, can: np.ndarray, below: ChanceBelow | None = None) -> np.ndarray:
        width = n
        while True:
            low, high = max(0, self.at - width), min(len(self.order), self.at + width)
            within = self.order[low:high]
            within = within[can[within]]
            outside = self.order[[i for i in (low - 1, high) if 0 <= i < len(self.order)]]
            if not len(outside) or np.count_nonzero(self.of(within) < self.of(outside).min()) >= n:
                return np.asarray(within)
            width *= 4


def reaching(keys: np.ndarray, n: int) -> Any:
    """A key that at least `n` of the keys do not exceed, and not many more: estimated from a sample, and checked."""
    sample = keys[::_STRIDE]
    place = n // _STRIDE + n // (4 * _STRIDE) + 16
    if place < len(sample):
        found = np.partition(sample, place)[place]
        if np.count_nonzero(keys <= found) >= n:
            return found
    return kth_least(keys, n)


def kth_least(keys: np.ndarray, k: int) -> Any:
    """The k-th least key, k from 1; quick also where very many are equal to the least.

    >>> int(kth_least(np.array([5, 3, 3, 4]), 2)), int(kth_least(np.array([5, 3, 3, 4]), 3))
    (3, 4)
    """
    least = keys.min()
    if np.count_nonzero(keys == least) >= k:
        return least
    return np.partition(keys, k - 1)[k - 1]


def foremost(keys: np.ndarray, n: int, chance: Chance) -> np.ndarray:
    """The rows (n,) of the least of more than `n` keys, in any order.

    Args:
        keys: (K,).
        n: how many.
        chance: of rows (M,) with equal keys, numbers (M,): those with the least are taken, where not all can be.
    """
    last = kth_least(keys, n)
    sure, even = np.flatnonzero(keys < last), np.flatnonzero(keys == last)
    wanted = n - len(sure)
    if len(even) > wanted:
        even = even[np.argpartition(chance(even), wanted - 1)[:wanted]]
    return np.concatenate([sure, even])
