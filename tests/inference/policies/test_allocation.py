"""Adaptive K."""

import itertools

import numpy as np
import pytest

from rollwise.errors import ConfigError
from rollwise.inference.policies.allocation import allocate


def test_by_hand() -> None:
    """Three prompts, 2 each, between 1 and 3: hardness 5/6, 1/2, 1/6 of V = .1, .5, .9.

    With a = 1 the shares are 1 + 2h = 2.667, 2, 1.333, which sum to 6: the budget. Floors 2, 2, 1; the one that is left
    goes to the largest fraction, .667: 3, 2, 1.
    """
    assert allocate([0.5, 0.1, 0.9], 2, 1, 3).tolist() == [2, 3, 1]


def test_sums_to_the_budget_within_bounds_and_never_less_for_harder() -> None:
    rng = np.random.default_rng(0)
    for n, mean, low, high in [
        (1, 4, 1, 16),
        (7, 3, 1, 12),
        (50, 8, 2, 16),
        (50, 2.5, 1, 8),
        (9, 8, 8, 8),
        (9, 16, 2, 16),
    ]:
        values = rng.random(n).round(1)  # with ties
        shares = allocate(values, mean, low=low, high=high)
        assert shares.sum() == n * mean
        assert shares.min() >= low
        assert shares.max() <= high
        order = np.argsort(values, kind="stable")
        for a, b in itertools.pairwise(order):
            assert values[a] == values[b] or shares[a] >= shares[b]


def test_only_ranks_count() -> None:
    values = np.array([0.52, 0.521, 0.54, 0.533])
    assert allocate(values, 4, 1, 8).tolist() == allocate(100 * values**3, 4, 1, 8).tolist()


def test_equal_prompts_are_told_apart_by_id_not_by_order() -> None:
    """Four equal prompts, 6 candidates: 1.5 each, so two get 2; which two is a matter of their ids and the seed."""
    ids = ["a", "b", "c", "d"]
    by_id = dict(zip(ids, allocate([0.5] * 4, 1.5, 1, 4, ids=ids).tolist(), strict=True))
    assert sorted(by_id.values()) == [1, 1, 2, 2]
    back = ids[::-1]
    assert dict(zip(back, allocate([0.5] * 4, 1.5, 1, 4, ids=back).tolist(), strict=True)) == by_id
    given = {tuple(allocate([0.5] * 4, 1.5, 1, 4, ids=ids, seed=s).tolist()) for s in range(20)}
    assert len(given) > 1


@pytest.mark.parametrize(
    ("values", "mean", "low", "high", "message"),
    [
        ([0.1, 0.2], 9, 1, 8, "mean_k"),
        ([0.1, 0.2], 1.25, 1, 8, "not a whole number"),
        ([0.1, float("nan")], 2, 1, 8, "finite"),
        ([], 2, 1, 8, "at least one prompt"),
        ([0.1], 2, 3, 2, "high"),
        ([0.1], 2, 0, 2, "low"),
    ],
)
def test_bad_input(values: list[float], mean: float, low: int, high: int, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        allocate(values, mean, low=low, high=high)
