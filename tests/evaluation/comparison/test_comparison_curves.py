"""Curves on a common grid, the measures on them, and the bootstrap over seeds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rollwise.evaluation import relative_best_so_far, relative_time_to_baseline
from rollwise.evaluation.bootstrap import Interval, bootstrap_interval, percentile_interval, resample_weights
from rollwise.evaluation.comparison.data import relatives, resampled_relatives
from rollwise.evaluation.curves import (
    Curve,
    best_by,
    first_reaching,
    mean_height,
    on_common_grid,
    relative_bests,
    relative_times,
)


def as_curve(x: list[float], y: list[float]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(x, dtype=float), np.array([y], dtype=float)


def test_the_papers_example_of_ttb() -> None:
    """BOTS, appendix B.4: from .1 to .3, half of the rise is .2, at step 40 for the baseline and 30 for the method."""
    baseline = as_curve([0, 40, 100], [0.1, 0.2, 0.3])
    method = as_curve([0, 30, 100], [0.1, 0.2, 0.25])
    assert relative_times(*method, *baseline, 0.5).tolist() == pytest.approx([0.75])
    assert relative_times(*method, *baseline, 1.0).tolist() == [math.inf]


def test_averages_that_differ_by_their_rounding_are_equal() -> None:
    x, best = np.array([0.0, 5.0, 10.0]), np.array([[0.25, 0.75, 0.75]])
    below = np.nextafter(0.75, 0)  # as a matrix product may give the same average elsewhere
    assert relative_times(x, np.array([[0.25, 0.75, below]]), x, best, 1.0).tolist() == [1.0]
    assert relative_times(x, np.array([[0.25, 0.5, below]]), x, best, 1.0).tolist() == [2.0]
    flat = np.array([[below, 0.75, below]])
    assert np.isnan(relative_times(x, best, x, flat, 1.0)).all()


def test_the_papers_example_of_bsf() -> None:
    """BOTS, appendix B.4: best .6 against .4 at step 50 of 100."""
    baseline = as_curve([0, 50, 100], [0.1, 0.4, 0.5])
    method = as_curve([0, 50, 100], [0.1, 0.6, 0.6])
    assert relative_bests(*method, *baseline, 50, between=False).tolist() == pytest.approx([1.5])


def test_many_curves_at_once_agree_with_one_by_one() -> None:
    rng = np.random.default_rng(0)
    x = np.arange(0.0, 110, 10)
    own, baseline = rng.random((30, 11)), rng.random((30, 11))
    for fraction in (0.5, 0.75, 1.0):
        want = [relative_time_to_baseline(x, a, x, b, fraction=fraction) for a, b in zip(own, baseline, strict=True)]
        np.testing.assert_allclose(relative_times(x, own, x, baseline, fraction), want)
    for budget in (0.25, 0.5, 1.0):
        want = [relative_best_so_far(x, a, x, b, budget=budget) for a, b in zip(own, baseline, strict=True)]
        got = relative_bests(x, own, x, baseline, math.floor(budget * 100), between=False)
        np.testing.assert_allclose(got, want)


def test_resamples_made_in_parts_are_those_made_at_once() -> None:
    rng = np.random.default_rng(0)
    weights = resample_weights(6, resamples=1203, seed=0)  # two parts and a bit
    x = np.arange(10.0)
    own, base = rng.random((2, 6, 10)).cumsum(axis=2)
    found = resampled_relatives("tokens", weights, (x, own), (x, base), 8.5)
    whole = relatives("tokens", (x, weights @ own), (x, weights @ base), 8.5)
    assert found.keys() == whole.keys()
    for key, values in whole.items():
        np.testing.assert_allclose(found[key], values)
    assert resampled_relatives("tokens", weights, (np.empty(0), np.empty((6, 0))), (x, base), 8.5) == {}


def test_a_grid_changes_no_curve() -> None:
    """The second curve is at 1 in the middle of the first's only stretch; cut at 8, both are interpolated there."""
    first, second = Curve(np.array([0.0, 10]), np.array([0.0, 1])), Curve(np.array([2.0, 5, 12]), np.array([0.0, 1, 8]))
    x, y = on_common_grid([first, second], until=8)
    assert x.tolist() == [2, 5, 8]
    np.testing.assert_allclose(y, [[0.2, 0.5, 0.8], [0, 1, 4]])
    x, y = on_common_grid([first, second])
    assert x.tolist() == [2, 5, 10]  # as far as both go
    x, y = on_common_grid([first, second], until=1)
    assert (x.size, y.shape) == (0, (2, 0))
    assert first_reaching(x, y, np.array([0.1, 0.1])).tolist() == [math.inf, math.inf]


def test_best_between_evaluations() -> None:
    """At 5 of 10 a falling curve's best is its first, a rising one's is interpolated, or is its first."""
    x, y = np.array([0.0, 10]), np.array([[0.4, 0.2], [0.2, 0.4]])
    np.testing.assert_allclose(best_by(x, y, 5, between=True), [0.4, 0.3])
    np.testing.assert_allclose(best_by(x, y, 5, between=False), [0.4, 0.2])
    assert np.isnan(best_by(x, y, -1, between=True)).all()


def test_mean_height_needs_two_points() -> None:
    assert np.isnan(mean_height(np.array([1.0]), np.array([[0.5]]))).all()


def test_all_resamples_of_three_seeds() -> None:
    """27 rows, each sum 1; one is of the first alone, 3! = 6 hold each seed once."""
    weights = resample_weights(3, resamples=10, seed=0)
    assert weights.shape == (27, 3)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    assert (weights == [1, 0, 0]).all(axis=1).sum() == 1
    assert np.isclose(weights, 1 / 3).all(axis=1).sum() == 6


def test_interval_of_four_seeds_by_hand() -> None:
    """0, .1, .2, .3: of 256 resamples the sum is 0 in 1, .1 in 4, .2 in 4 + 6.

    The 7th smallest, as .025 * 255 = 6.4, is .2. So the lower end is .2 / 4; the values lie symmetrically about
    .15, so the upper one is .3 - .05.
    """
    found = bootstrap_interval(np.array([0.0, 0.1, 0.2, 0.3]), resamples=1, seed=0)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.05, 0.25))


def test_interval_of_many_seeds_is_about_the_normal_one() -> None:
    """200 normal values: 1.96 standard errors of 1 / sqrt(200) = .0707 to either side."""
    values = np.random.default_rng(0).normal(size=200)
    found = bootstrap_interval(values, resamples=4000, seed=0)
    assert found is not None
    assert found.high - found.low == pytest.approx(2 * 1.96 * values.std() / math.sqrt(200), rel=0.08)
    assert found == bootstrap_interval(values, resamples=4000, seed=0)


def test_intervals_hold_the_truth_as_seldom_as_is_said() -> None:
    """Normal differences with mean 0: 75 % for 3 seeds, 84 % for 5, within 4 standard errors of 600 draws."""
    rng = np.random.default_rng(1)
    for n, said in ((3, 0.75), (5, 0.84)):
        intervals = [bootstrap_interval(rng.normal(size=n), resamples=1, seed=0) for _ in range(600)]
        held = np.mean([found.low <= 0.0 <= found.high for found in intervals if found is not None])
        assert held == pytest.approx(said, abs=4 * math.sqrt(said * (1 - said) / 600))


def test_fewer_than_three_seeds_have_no_interval() -> None:
    assert bootstrap_interval(np.array([0.1, 0.2]), resamples=100, seed=0) is None


def test_infinite_and_undefined_resamples() -> None:
    """Of 100 values the 3rd is the lower end, .025 * 99 = 2.5, and the 98th, rounded up, the upper one."""
    values = np.arange(100.0)
    values[95:] = np.inf
    assert percentile_interval(values) == Interval(2.0, math.inf)
    values[:2] = np.nan  # 2 % are fewer than a tail
    assert percentile_interval(values) == Interval(4.0, math.inf)
    values[:3] = np.nan
    assert percentile_interval(values) is None
    assert percentile_interval(np.full(5, np.nan)) is None
