"""The measures, against numbers worked out by hand or by counting."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.errors import ConfigError, RewardError
from rollwise.evaluation import (
    GroupOutcomes,
    baseline_target,
    best_so_far,
    effective_task_ratio,
    group_outcomes,
    pass_at_k,
    relative_best_so_far,
    relative_time_to_baseline,
    time_to_baseline,
)


def test_effective_task_ratio_of_binary_groups() -> None:
    assert effective_task_ratio([[0, 1, 0], [1, 1, 1], [0, 0, 0], [1, 0, 1]]) == 0.5


def test_equal_graded_rewards_have_no_spread_even_where_their_deviation_is_not_zero() -> None:
    group = [0.1, 0.1, 0.1]
    assert np.std(group) > 0  # why the deviation can't be compared with zero
    assert effective_task_ratio([group]) == 0.0
    assert effective_task_ratio([np.array(group, dtype=np.float32).astype(np.float64)]) == 0.0


def test_tolerance_separates_rounding_from_a_difference() -> None:
    assert effective_task_ratio([[0.3, 0.1 + 0.2], [0.3, 0.301]]) == 0.5
    assert effective_task_ratio([[0.3, 0.301]], tolerance=0.01) == 0.0
    assert effective_task_ratio([[0.0, 1e-12]], tolerance=0.0) == 1.0


def test_failed_rollouts_and_groups_without_any_reward_are_left_out() -> None:
    assert effective_task_ratio([[None, 1.0, 1.0], [float("nan"), 0.0, 1.0], [], [None]]) == 0.5
    assert math.isnan(effective_task_ratio([]))
    assert group_outcomes([[None]]).groups == 0


def test_group_outcomes_of_graded_groups() -> None:
    groups = [[0.1, 0.1, 0.1], [1.0, 1.0], [0.5, 0.5], [0.9, 1.0]]
    assert group_outcomes(groups) == GroupOutcomes(mixed=0.25, all_good=0.25, all_bad=0.5, groups=4)
    assert group_outcomes(groups, solved_at=0.5) == GroupOutcomes(mixed=0.25, all_good=0.5, all_bad=0.25, groups=4)


@pytest.mark.parametrize(("option", "value"), [("tolerance", -1.0), ("tolerance", math.nan), ("solved_at", math.inf)])
def test_group_outcomes_refuses_senseless_options(option: str, value: float) -> None:
    with pytest.raises(ConfigError, match=option):
        group_outcomes([[0, 1]], **{option: value})


def test_infinite_reward_raises() -> None:
    with pytest.raises(RewardError, match="group 1 has an infinite reward"):
        effective_task_ratio([[0, 1], [math.inf, 0]])


@given(st.lists(st.lists(st.floats(-2, 2), max_size=5), min_size=1, max_size=8))
def test_shares_sum_to_one(groups: list[list[float]]) -> None:
    out = group_outcomes(groups)
    if out.groups:
        assert out.mixed + out.all_good + out.all_bad == pytest.approx(1.0)
    else:
        assert math.isnan(out.mixed)


def test_pass_at_k_equals_counting_all_subsets() -> None:
    for n, c in itertools.product(range(1, 7), range(7)):
        if c > n:
            continue
        for k in range(1, n + 1):
            draws = list(itertools.combinations([1] * c + [0] * (n - c), k))
            counted = sum(any(draw) for draw in draws) / len(draws)
            assert float(pass_at_k(n, c, k)) == pytest.approx(counted, abs=1e-12)


def test_pass_at_k_broadcasts_and_does_not_overflow() -> None:
    np.testing.assert_allclose(pass_at_k([10, 4], [5, 1], 1), [0.5, 0.25])
    np.testing.assert_allclose(pass_at_k(4, [[0], [1]], [1, 4]), [[0, 0], [0.25, 1]])
    assert 0.09 < float(pass_at_k(100_000, 10, 1_000)) < 0.1
    assert pass_at_k([], [], 1).shape == (0,)


@pytest.mark.parametrize(
    ("n", "c", "k", "said"),
    [
        (4, 2, 5, "k=5 is more than n=4; draw more completions"),
        ([8, 2], [1, 1], 3, "k=3 is more than n=2"),
        (4, 5, 1, r"c must be in \[0, n\], got c=5"),
        (4, -1, 1, "got c=-1"),
        (4, 1, 0, "k must be >= 1, got 0"),
        (4, 1.5, 1, "c must be whole numbers"),
        (4, math.nan, 1, "c must be whole numbers"),
    ],
)
def test_pass_at_k_refuses(n: object, c: object, k: object, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        pass_at_k(n, c, k)  # type: ignore[arg-type]


def test_time_to_baseline_interpolates_and_skips_nan() -> None:
    assert time_to_baseline([0, 10, 20], [0.0, math.nan, 0.4], 0.1) == pytest.approx(5.0)
    assert time_to_baseline([0, 10, 20], [0.5, 0.1, 0.9], 0.5) == 0.0
    assert time_to_baseline([0, 10, 20], [0.1, 0.3, 0.2], 0.3) == 10.0
    assert time_to_baseline([0, 10], [0.1, 0.2], 0.3) == math.inf
    assert time_to_baseline([], [], 0.3) == math.inf


@pytest.mark.parametrize(
    ("steps", "scores", "target", "said"),
    [
        ([0, 0], [0.1, 0.2], 0.1, "increase strictly"),
        ([1, 0], [0.1, 0.2], 0.1, "increase strictly"),
        ([0, 1], [0.1], 0.1, r"must both be \(S,\)"),
        ([0, 1], [0.1, 0.2], math.nan, "target must be finite"),
    ],
)
def test_time_to_baseline_refuses(steps: list[float], scores: list[float], target: float, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        time_to_baseline(steps, scores, target)


def test_best_so_far_is_a_running_maximum() -> None:
    np.testing.assert_array_equal(best_so_far([math.nan, 0.2, 0.1, math.nan, 0.3]), [math.nan, 0.2, 0.2, 0.2, 0.3])
    assert best_so_far([]).shape == (0,)


def test_the_baseline_always_reaches_its_own_best() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        scores = rng.random(6)
        assert time_to_baseline(range(6), scores, baseline_target(scores)) <= np.argmax(scores)


def test_ttb_paper_example() -> None:
    # BOTS B.4: the baseline goes from 0.1 to 0.3 by step 100 and passes 0.2 at step 40; the method does at step 30.
    baseline = ([0, 40, 100], [0.1, 0.2, 0.3])
    assert relative_time_to_baseline([0, 30, 100], [0.1, 0.2, 0.25], *baseline, fraction=0.5) == 0.75
    assert relative_time_to_baseline([0, 30, 100], [0.1, 0.2, 0.25], *baseline) == math.inf
    assert relative_time_to_baseline(*baseline, *baseline, fraction=0.75) == 1.0


def test_ttb_against_a_baseline_that_never_rises_is_nan() -> None:
    assert math.isnan(relative_time_to_baseline([0, 1], [0.1, 0.2], [0, 1], [0.3, 0.2]))
    assert math.isnan(relative_time_to_baseline([20, 40], [0.1, 0.4], [20, 40], [0.3, 0.2]))  # first evaluated late


def test_bsf_paper_example() -> None:
    # BOTS B.4: at step 50 of 100 the baseline's best is 0.4 and the method's 0.6.
    baseline = ([0, 25, 50, 100], [0.1, 0.4, 0.3, 0.5])
    own = ([0, 50, 100], [0.1, 0.6, 0.55])
    assert relative_best_so_far(*own, *baseline, budget=0.5) == pytest.approx(1.5)
    assert relative_best_so_far(*own, *baseline) == pytest.approx(1.2)
    assert relative_best_so_far(*baseline, *baseline, budget=0.25) == 1.0
    assert math.isnan(relative_best_so_far([80], [0.6], *baseline, budget=0.5))
    assert math.isnan(relative_best_so_far([80], [0.6], [], []))


def test_fractions_outside_their_range_raise() -> None:
    with pytest.raises(ConfigError, match="fraction"):
        baseline_target([0.1], 0.0)
    with pytest.raises(ConfigError, match="budget"):
        relative_best_so_far([0], [0.1], [0], [0.1], budget=1.5)
    with pytest.raises(ConfigError, match="no finite score"):
        baseline_target([math.nan])


def test_bsf_of_hours_and_of_rounded_shares() -> None:
    """Hours are not floored; and .29 of 100 steps is step 29, whatever the product is in floating point."""
    hours = ([0, 0.5, 1, 1.5], [0.1, 0.2, 0.4, 0.6]), ([0, 0.5, 1, 1.5], [0.1, 0.2, 0.3, 0.5])
    assert relative_best_so_far(*hours[0], *hours[1]) == pytest.approx(1.2)
    own, baseline = ([0, 29, 100], [0.1, 0.4, 0.4]), ([0, 29, 100], [0.1, 0.2, 0.4])
    assert relative_best_so_far(*own, *baseline, budget=0.29) == pytest.approx(2.0)
