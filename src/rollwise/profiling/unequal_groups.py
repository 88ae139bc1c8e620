"""Whether groups of different size would pay on this data: the knapsack's objective over that of equal groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rollwise.allocators import Knapsack, Rates
from rollwise.allocators.greedy import most_valuable
from rollwise.profiling.analysis import GRID
from rollwise.profiling.recommendation import ENOUGH_CONTRAST

PAYS_FROM = 1.05
"""Below this factor unequal groups are not suggested."""
BATCH, BATCHES = 64, 32
"""Prompts that share a budget, and how many such batches are averaged."""


@dataclass(frozen=True)
class UnequalGroups:
    """The sum of (1 - p^N - (1-p)^N) p (1-p)^2 over a batch, divided by that of equal groups, at equal rollouts.

    Attributes:
        group: Rollouts of a prompt on the average.
        last: With the allocator `knapsack`, which knows one earlier group of each prompt.
        posterior: The same with `estimate: posterior`.
        known: With the best sizes there are, if pass rates were known: no allocator can do better.
        pays: Whether to try it.
        words: The verdict, for the reader.
    """

    group: int
    last: float
    posterior: float
    known: float
    pays: bool
    words: str


def unequal_groups(weights: np.ndarray, group: int, effective: float, *, seed: int = 0) -> UnequalGroups | None:
    """The gain by unequal groups for a distribution (len(GRID),) of true pass rates; None where nothing can be gained.

    Args:
        weights: Of the pass rates in `GRID`; see `fit_pass_rates`.
        group: Rollouts of a prompt on the average.
        effective: The effective task ratio with equal groups.
        seed: Of the prompts and of their earlier groups, which are drawn.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    rates = rng.choice(GRID, size=(BATCHES, BATCH), p=weights / weights.sum())
    equal = objective(rates, np.full(rates.shape, group)).sum()
    if group < 2 or equal <= 0.0:
        return None
    believed = [Rates(1.0 + k, 1.0 + group - k, k / group) for k in rng.binomial(group, rates)]
    plans = [
        [Knapsack().allocate(belief, group) for belief in believed],
        [Knapsack(estimate="posterior").allocate(belief, group) for belief in believed],
        [best_sizes(p, group) for p in rates],
    ]
    last, posterior, known = (float(objective(rates, np.array(plan)).sum() / equal) for plan in plans)
    pays = max(last, posterior) >= PAYS_FROM and effective < ENOUGH_CONTRAST
    found = (
        f"at equal rollouts the knapsack's objective would be {last:.2f} times that of groups of {group} when one "
        f"earlier group of each prompt is known, {posterior:.2f} with estimate: posterior, and {known:.2f} if the pass "
        "rates were known"
    )
    return UnequalGroups(group, last, posterior, known, pays, _words(found, pays, effective))


def objective(p: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """(1 - p^N - (1-p)^N) p (1-p)^2 of each prompt (Knapsack RL, arXiv 2509.25849); the shapes are the same.

    >>> objective(np.array([0.5, 0.0]), np.array([2, 8])).tolist()  # (1 - 1/4 - 1/4) / 8
    [0.0625, 0.0]
    """
    return np.asarray((1.0 - p**sizes - (1.0 - p) ** sizes) * p * (1.0 - p) ** 2)


def best_sizes(p: np.ndarray, group: int) -> np.ndarray:
    """The sizes (K,) of greatest objective for known pass rates (K,), from 2 to 4 times the mean `group`."""
    sizes = np.arange(2, 4 * group)
    q = p[:, None]
    values = (q**sizes * (1.0 - q) + (1.0 - q) ** sizes * q) * q * (1.0 - q) ** 2
    return 2 + most_valuable(values, np.full(len(p), len(sizes)), len(p) * (group - 2))


def _words(found: str, pays: bool, effective: float) -> str:
    if pays:
        return (
            f"unequal groups could pay: {found}. That is an objective, not a score: compare with groups of one size. "
            "Not where long completions keep a step waiting, in small pools, or on top of a curriculum that finds "
            "contrast already (docs/howto/rollouts.md)"
        )
    if effective >= ENOUGH_CONTRAST:
        return f"keep groups of one size: {effective:.0%} of them have contrast already. {found[0].upper()}{found[1:]}"
    return f"keep groups of one size: {found}"
