"""Whether unequal groups would pay, by hand."""

import numpy as np
import pytest

from rollwise.profiling.analysis import GRID
from rollwise.profiling.unequal_groups import best_sizes, objective, unequal_groups


def weights(**shares: float) -> np.ndarray:
    found = np.zeros(len(GRID))
    for rate, share in shares.items():
        found[np.argmin(np.abs(GRID - float(rate.removeprefix("p")) / 100))] = share
    return found


def test_prompts_that_are_all_alike_gain_nothing_and_earlier_luck_loses() -> None:
    found = unequal_groups(weights(p50=1.0), 8, 0.99)
    assert found is not None
    assert found.known == pytest.approx(1.0)
    assert found.last < found.posterior <= 1.0
    assert not found.pays
    assert found.words.startswith("keep groups of one size: 99% of them have contrast already")


def test_most_hopeless_a_few_hard() -> None:
    """One in ten has a rate of about 0.05, the others none: the knapsack moves rollouts where a success was seen."""
    found = unequal_groups(weights(p0=0.9, p5=0.1), 8, 0.03)
    assert found is not None
    assert found.known > 2.0
    assert found.known > max(found.last, found.posterior)
    assert found.pays == (max(found.last, found.posterior) >= 1.05)
    assert found == unequal_groups(weights(p0=0.9, p5=0.1), 8, 0.03)  # the seed's


def test_best_sizes_by_brute_force() -> None:
    """Two prompts, 8 rollouts: (2, 6) to (6, 2), the best of all."""
    p = np.array([0.5, 0.1])
    every = [np.array([n, 8 - n]) for n in range(2, 7)]
    best = max(every, key=lambda sizes: objective(p, sizes).sum())
    assert best_sizes(p, 4).tolist() == best.tolist()


def test_nothing_can_be_gained_without_a_learnable_prompt() -> None:
    assert unequal_groups(weights(p0=0.5, p100=0.5), 8, 0.0) is None
    assert unequal_groups(weights(p50=1.0), 1, 0.0) is None
