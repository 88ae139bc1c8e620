"""What a log says of a prompt at a step: counts of rewards about that time, and a number of pseudo-rollouts.

Both bandwidth and pseudo-rollouts are fitted, with up to 4,096 of the log's groups. The bandwidth of the kernel is the
one under which groups that are left out in turn are most likely, given the others. Under a Dirichlet with parameters a
(L,) a group of n rollouts that earned c (L,) has the likelihood, but for a factor that does not depend on a,

    prod over l of a_l (a_l + 1) ... (a_l + c_l - 1)  /  (A (A + 1) ... (A + n - 1)),      A = sum of a.

The number of pseudo-rollouts is the one under which the log's groups, rolled out again, have the log's contrast; of
those that come within 0.01 of the nearest it is the most likely one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache

import numpy as np

from rollwise.simulation.run_log import RunLog

BANDWIDTHS = (0.25, 0.5, 1.0, 2.0)
"""Bandwidths tried, in mean gaps between two visits to a prompt."""
POOLINGS = tuple(2.0**power for power in range(-3, 9))
"""Numbers of pseudo-rollouts tried."""
NEAR = 0.01
"""Shares of groups with contrast that differ by this much are as good as equal."""
MOST_GROUPS = 4096
"""Most groups that a fit looks at."""
MOST_PAIRS = 2**22
"""Pairs of steps, or of groups, whose distance is held at once."""


def kernel(apart: np.ndarray, bandwidth: float) -> np.ndarray:
    """exp(-(apart / bandwidth)^2 / 2), any shape: how much a group this many steps away counts.

    >>> kernel(np.array([0.0, 2.0, -4.0]), 2.0).round(4).tolist()
    [1.0, 0.6065, 0.1353]
    """
    return np.asarray(np.exp(-0.5 * np.square(apart / bandwidth)))


def log_likelihood(counts: np.ndarray, parameters: np.ndarray) -> float:
    """The mean log-likelihood of J groups' rewards, counts (J, L), under Dirichlets with these parameters (J, L).

    >>> round(log_likelihood(np.array([[2, 1]]), np.array([[1.0, 1.0]])), 4)  # log of 1 2 / (2 3 4) * 1
    -2.4849
    """
    n, total = counts.sum(axis=1), parameters.sum(axis=1)
    sum_ = sum(float(np.log(parameters[counts > j] + j).sum()) for j in range(int(counts.max())))
    sum_ -= sum(float(np.log(total[n > j] + j).sum()) for j in range(int(n.max())))
    return sum_ / len(counts)


def contrast(parameters: np.ndarray, sizes: np.ndarray) -> float:
    """The share of J groups, of `sizes` (J,) rollouts, that earn two rewards or more under Dirichlets (J, L).

    All n rollouts earn the reward l with the probability a_l (a_l + 1) ... (a_l + n - 1) / (A (A + 1) ... (A + n - 1)).

    >>> round(contrast(np.array([[1.0, 1.0]]), np.array([2])), 4)  # 1 - 2 * 1 2 / (2 3)
    0.3333
    """
    same, total = np.ones(parameters.shape), parameters.sum(axis=1, keepdims=True)
    for j in range(int(sizes.max())):
        same *= np.where(sizes[:, None] > j, (parameters + j) / (total + j), 1.0)
    return float(1.0 - same.sum(axis=1).mean())


class Smoothing:
    """A log's counts of each level of reward, of prompts and of categories, weighted by a kernel over steps.

    Args:
        log: J groups of N prompts, L levels of reward, T steps.
        bandwidth: of the kernel, in steps.
    """

    def __init__(self, log: RunLog, bandwidth: float) -> None:
        self.log, self.bandwidth = log, bandwidth
        self.categories = tuple(sorted(set(log.category)))
        number = {name: i for i, name in enumerate(self.categories)}
        self.category = np.array([number[name] for name in log.category], dtype=np.int64)
        self._order = np.argsort(log.slot, kind="stable")
        self._starts = np.searchsorted(log.slot[self._order], np.arange(len(log.ids) + 1))

    @cached_property
    def sample(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Of the groups that a fit looks at, evenly spaced: slots, steps, counts (K, L), and their prompts' (K, L)."""
        log, n = self.log, len(self.log.slot)
        most = min(n, MOST_GROUPS, max(64, MOST_PAIRS * len(log.ids) // n))  # each is paired with its prompt's
        groups = np.unique(np.linspace(0, n - 1, most).astype(np.int64))
        slots, steps = log.slot[groups], log.step[groups]
        return slots, steps, log.counts[groups], self.of_prompts(slots, steps)

    @cached_property
    def of_categories(self) -> np.ndarray:
        """The counts of each category at each step, (T + 1, C, L)."""
        log, shape = self.log, (self.log.steps + 1, len(self.categories), len(self.log.levels))
        counts = np.zeros(shape)
        np.add.at(counts, (log.step, self.category[log.slot]), log.counts)
        steps = np.arange(shape[0])
        parts = np.array_split(steps, -(-(shape[0] ** 2) // MOST_PAIRS))  # of 100,000 steps all pairs are 80 GB
        near = (kernel(part[:, None] - steps, self.bandwidth) for part in parts)
        return np.concatenate([np.tensordot(part, counts, axes=1) for part in near])

    def of_prompts(self, slots: np.ndarray, step: np.ndarray | int) -> np.ndarray:
        """The counts of K prompts at a step, or at one for each (K,); (K, L)."""
        lengths = self._starts[slots + 1] - self._starts[slots]
        of = np.repeat(np.arange(len(slots)), lengths)
        within = np.arange(len(of)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        groups = self._order[np.repeat(self._starts[slots], lengths) + within]
        counts = np.zeros((len(slots), len(self.log.levels)))
        weights = kernel(self.log.step[groups] - np.broadcast_to(step, len(slots))[of], self.bandwidth)
        np.add.at(counts, of, weights[:, None] * self.log.counts[groups])
        return counts

    def shares(self, slots: np.ndarray, step: np.ndarray | int, less: np.ndarray | float = 0.0) -> np.ndarray:
        """The share of each level in K prompts' categories at a step, (K, L); without the counts `less` (K, L)."""
        counts = np.maximum(self.of_categories[step, self.category[slots]] - less, 0.0) + 1e-9
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))

    def likelihoods(self, poolings: Sequence[float]) -> list[float]:
        """For each number of pseudo-rollouts the mean log-likelihood of groups that are left out in turn."""
        slots, steps, counts, own = self.sample
        others, shares = np.maximum(own - counts, 0.0), self.shares(slots, steps, less=counts)
        return [log_likelihood(counts, others + pooling * shares) for pooling in poolings]

    def contrast_errors(self, poolings: Sequence[float]) -> np.ndarray:
        """For each number of pseudo-rollouts how far the contrast of the replayed groups is from the log's, (A,)."""
        slots, steps, counts, own = self.sample
        shares, sizes = self.shares(slots, steps), counts.sum(axis=1)
        found = float(((counts > 0).sum(axis=1) > 1).mean())
        return np.array([abs(contrast(own + a * shares, sizes) - found) for a in poolings])


@lru_cache(maxsize=1)  # the worlds of a log differ by their seeds alone
def fitted(log: RunLog, bandwidth: float | None, pooling: float | None) -> tuple[Smoothing, float]:
    """The smoothing of a log and its pseudo-rollouts; what is given stays."""
    gap = log.steps * len(log.ids) / len(log.slot)  # from a visit to the next
    widths = [gap * width for width in BANDWIDTHS] if bandwidth is None else [bandwidth]
    poolings = POOLINGS if pooling is None else (pooling,)
    made = [Smoothing(log, width) for width in widths]
    if len(made) == len(poolings) == 1:
        return made[0], poolings[0]
    likely = [smoothing.likelihoods(poolings) for smoothing in made]
    best = max(range(len(made)), key=lambda i: max(likely[i]))
    off = made[best].contrast_errors(poolings)
    near = np.flatnonzero(off <= off.min() + NEAR)
    return made[best], poolings[max(near, key=lambda i: likely[best][i])]
