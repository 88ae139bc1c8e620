"""Knapsack RL (arXiv 2509.25849): rollouts where a mixed group is likely to come of them, and worth the most."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from rollwise.allocators.base import Allocator, Rates
from rollwise.allocators.greedy import equally, most_valuable
from rollwise.options import InnerShare


class Knapsack(Allocator):
    """Maximises the sum of (1 - p^N - (1-p)^N) p (1-p)^2: the chance that a group of N is mixed, times its value.

    Li et al. 2025, *Knapsack RL* (arXiv 2509.25849). A rollout more adds (p^N (1-p) + (1-p)^N p) p (1-p)^2, which falls
    in N, so that the greatest increments are the paper's best division, which it finds by dynamic programming.

    - Prompts never visited get the mean, those with p = 0 or p = 1 `min_rollouts`.
    - The prompts with 0 < p < 1 can use ln(1 - `sureness`) / ln max(p, 1-p) rollouts each beside their `min_rollouts`.
      If that is less than what is left, all together, the rest goes to the prompts with p = 0, equally; without any, to
      those never visited or with p = 1. What does not fit below `max_rollouts` there goes to the first, then to all.
    - A batch without any 0 <= p < 1 gets the mean.

    The release (github.com/liziniu/KnapsackRL) departs from this: those never visited share the rest with those with
    p = 0, and a prompt that gets no more than the least counts as worth nothing, which moves single rollouts.

    Args:
        sureness: how sure a mixed group must be for a prompt to use no more rollouts (the paper's alpha, 0.9).
        estimate: "last": p is the share solved when the prompt was last visited, as in the paper (the release: of its
            last 16 rollouts, if there were fewer then; until it has 8 it counts as never visited), whatever `belief`
            says; "posterior": the expectation of each increment over the belief, by Beta functions, for which nobody
            has p = 0 or p = 1. Ours.
        **bounds: see `Allocator`; the paper's `max_rollouts` is 128.
    """

    def __init__(
        self, *, sureness: InnerShare = 0.9, estimate: Literal["last", "posterior"] = "last", **bounds: Any
    ) -> None:
        super().__init__(**bounds)
        self.sureness, self.estimate = sureness, estimate

    def values(self, rates: Rates, sizes: np.ndarray) -> np.ndarray:
        if self.estimate == "posterior":
            a, b = rates.alpha[:, None], rates.beta[:, None]
            return np.asarray(beta_moment(a, b, sizes + 1, 3) + beta_moment(a, b, 2, sizes + 2))
        p = np.nan_to_num(rates.last, nan=0.0)[:, None]
        return np.asarray((p**sizes * (1.0 - p) + (1.0 - p) ** sizes * p) * p * (1.0 - p) ** 2)

    def allocate(self, rates: Rates, mean: int) -> np.ndarray:
        if self.estimate == "posterior":
            return super().allocate(rates, mean)
        low, high = self.bounds(mean)
        last, total = rates.last, len(rates.last) * mean
        high = min(high, total)  # none gets more than there is
        mixed, solved_by_none = (last > 0.0) & (last < 1.0), last == 0.0
        if not (mixed | solved_by_none).any():
            return np.full(len(last), mean, dtype=np.int64)
        sizes = np.where(rates.unseen, mean, rates.least(low))
        left = total - int(sizes.sum())
        surplus = max(0, left - int(np.minimum(usable(last[mixed], self.sureness), high).sum()))
        others = solved_by_none if solved_by_none.any() else ~mixed
        sizes += equally(np.where(others, high - sizes, 0), surplus)
        room, left = np.where(mixed, high - sizes, 0), total - int(sizes.sum())
        sizes += most_valuable(self.values_from(rates, sizes, high), room, left)
        return np.asarray(sizes + equally(high - sizes, total - int(sizes.sum())))


def usable(p: np.ndarray, sureness: float) -> np.ndarray:
    """ln(1 - sureness) / ln max(p, 1-p), rounded down, (K,) int64: about when a mixed group is that sure.

    >>> usable(np.array([0.5, 0.9]), 0.9).tolist()  # 2^-3 > 0.1 > 2^-4; 0.9^21 > 0.1 > 0.9^22
    [3, 21]
    """
    alike = np.minimum(np.maximum(p, 1.0 - p), 1.0 - 1e-12)
    return np.asarray((np.log(1.0 - sureness) / np.log(alike)).astype(np.int64))


def beta_moment(alpha: np.ndarray, beta: np.ndarray, i: np.ndarray | int, j: np.ndarray | int) -> np.ndarray:
    """E[p^i (1-p)^j] = B(a+i, b+j) / B(a, b) of p ~ Beta(a, b), for whole i and j; the shapes are broadcast.

    >>> beta_moment(np.array([1.0]), np.array([1.0]), 1, 1).round(12).tolist()  # of the uniform distribution, 1/6
    [0.166666666667]
    """
    return np.asarray(np.exp(_log_rising(alpha, i) + _log_rising(beta, j) - _log_rising(alpha + beta, np.add(i, j))))


def _log_rising(x: np.ndarray, n: np.ndarray | int) -> np.ndarray:
    """The sum of log (x + i) over i < n, for whole n; the shapes are broadcast."""
    shape, most = np.broadcast_shapes(x.shape, np.shape(n)), int(np.max(n, initial=0))
    sums = np.cumsum(np.log(x[..., None] + np.arange(most)), axis=-1)
    sums = np.concatenate([np.zeros((*x.shape, 1)), sums], axis=-1)
    at = np.broadcast_to(n, shape)[..., None]
    return np.asarray(np.take_along_axis(np.broadcast_to(sums, (*shape, most + 1)), at, axis=-1)[..., 0])
