"""The numbers of a profile, worked out by hand."""

import numpy as np
import pytest

from rollwise.profiling.analysis import (
    bootstrap_shares,
    contrast,
    effective_share,
    fit_pass_rates,
    histogram,
    mean_interval,
    outcomes_of,
    pass_rates,
    share_of,
    true_shares,
    wilson,
)


def test_wilson() -> None:
    """p = 1/4, n = 4, z = 1: centre (1/4 + 1/8) / (5/4) = 0.3; half 4/5 sqrt(3/64 + 1/64) = 4/5 * 1/4 = 0.2."""
    assert wilson(1, 4, z=1.0) == pytest.approx((0.1, 0.5))


def test_wilson_of_a_finite_population() -> None:
    """4 of 5: as if 4 * 4 / 1 = 16 were drawn. z = 4, so z^2 / 16 = 1: centre (1/4 + 1/2) / 2 = 3/8;
    half 4/2 sqrt(3/256 + 1/64) = 2 sqrt(7/256) = sqrt(7) / 8 = 0.33072."""
    assert wilson(1, 4, population=5, z=4.0) == pytest.approx((0.375 - 0.330719, 0.375 + 0.330719), abs=1e-6)
    assert wilson(1, 4, population=4) == (0.25, 0.25)
    assert wilson(0, 4, population=10**9) == pytest.approx(wilson(0, 4))
    with pytest.raises(ValueError, match="n=0"):
        wilson(0, 0)


def test_wilson_covers() -> None:
    """300 of 400 prompts, half of them learnable: the true share is within the interval about 95 times of 100."""
    truth = np.arange(400) < 200
    rng = np.random.default_rng(0)
    shares = [share_of(rng.choice(truth, 100, replace=False), 400) for _ in range(400)]
    assert 0.92 < np.mean([s.low <= 0.5 <= s.high for s in shares]) <= 1.0
    assert np.mean([s.high - s.low for s in shares]) < 0.18  # without the population's factor it would be 0.19


def test_mean_interval() -> None:
    """0, 0, 1, 1 of 8 prompts, z = 1: s^2 = 4 * (1/4) / 3 = 1/3; half sqrt(1/3 * (1 - 4/8) / 4) = sqrt(1/24)."""
    low, high = mean_interval(np.array([0.0, 0.0, 1.0, 1.0]), 8, z=1.0)
    assert (low, high) == pytest.approx((0.5 - 24**-0.5, 0.5 + 24**-0.5))
    assert mean_interval(np.array([0.0, 1.0]), 2) == (0.5, 0.5)


def test_the_interval_of_a_mean_is_neither_below_0_nor_without_width() -> None:
    """One of 10 at 1/8: mean 1/80, half 1.96 * 0.0395 / sqrt(10) = 0.0245. Ten at 0 are what Wilson's is for."""
    low, high = mean_interval(np.array([0.125, *[0.0] * 9]), 10**9)
    assert (low, high) == pytest.approx((0.0, 0.037), abs=1e-4)
    assert mean_interval(np.zeros(10), 500) == wilson(0, 10, population=500)
    assert mean_interval(np.ones(10), 500) == wilson(10, 10, population=500)
    assert mean_interval(np.zeros(10), 10) == (0.0, 0.0)
    assert mean_interval(np.array([0.5]), 500) == wilson(0.5, 1, population=500)  # one prompt of 500 is not all of them


def test_rates_and_their_histogram() -> None:
    rates = pass_rates([[True, True, False, False], [False] * 4, [None, True, None, True], [None] * 4])
    assert rates[:3].tolist() == [0.5, 0.0, 1.0]
    assert np.isnan(rates[3])
    assert histogram(rates[:3], 4).tolist() == [1, 0, 1, 0, 1]


def test_contrast() -> None:
    """0, 0, 0.1, 1: of the 6 pairs one is alike, and none of the 4 triples; 0, 0, 0, 1: one triple of 4."""
    assert contrast([0.0, 1.0, 0.1, 0.0], 2) == pytest.approx(5 / 6)
    assert contrast([0.0, 1.0, 0.1, 0.0], 3) == 1.0
    assert contrast([0.0, 0.0, 0.0, 1.0], 3) == pytest.approx(3 / 4)
    assert contrast([0.1 + 0.2, 0.3], 2) == 0.0
    with pytest.raises(ValueError, match="group of 8"):
        contrast([0.0, 1.0], 8)


def test_contrast_has_no_bias() -> None:
    """Over all 2^4 outcomes of four rollouts at p = 1/2, its mean is 1 - p^2 - (1-p)^2 = 1/2 for pairs."""
    outcomes = [[float(i >> bit & 1) for bit in range(4)] for i in range(16)]
    assert np.mean([contrast(o, 2) for o in outcomes]) == pytest.approx(effective_share(0.5, 2)) == 0.5


def test_the_fit_step_by_step() -> None:
    """Grid 0, 1/2, 1; two rollouts; one prompt with none right, one with both.

    B(0 right) = 1, 1/4, 0 and B(2 right) = 0, 1/4, 1. From thirds: m_0 = m_2 = 5/12, so w = 1/3 (1/2)(12/5) = 0.4,
    1/3 (1/4 + 1/4)(1/2)(12/5) = 0.2, 0.4. Next: m = 0.4 + 0.05 = 0.45, w = 0.4 / 0.9, 0.2 * 0.25 / 0.45, 0.4 / 0.9.
    """
    grid, counts = np.array([0.0, 0.5, 1.0]), np.array([1, 0, 1])
    assert fit_pass_rates(counts, grid, steps=1) == pytest.approx([0.4, 0.2, 0.4])
    assert fit_pass_rates(counts, grid, steps=2) == pytest.approx([4 / 9, 1 / 9, 4 / 9])


def test_true_shares() -> None:
    """Groups of 3: at p = 1/2, 1 - 2/8 = 3/4; at 0.005, 1 - 0.995^3 - 0.005^3 = 0.014925."""
    shares = true_shares(np.array([0.2, 0.1, 0.5, 0.2]), 3, np.array([0.0, 0.005, 0.5, 1.0]))
    assert shares.hopeless == pytest.approx(0.3)
    assert shares.solved == pytest.approx(0.2)
    assert shares.effective == pytest.approx(0.1 * 0.014925 + 0.5 * 0.75)


def test_several_samples_are_fitted_at_once() -> None:
    counts = np.array([[3, 0], [1, 2], [0, 5]])
    together = fit_pass_rates(counts, steps=50)
    for b in (0, 1):
        assert together[:, b] == pytest.approx(fit_pass_rates(counts[:, b], steps=50))


def test_the_fit_finds_what_eight_rollouts_hide() -> None:
    """40 % at p = 0, 60 % at p = 0.2, of which 0.8^8 = 0.17 look hopeless too: 0.50 are never solved, 0.40 can't be."""
    rng = np.random.default_rng(1)
    rates = np.where(np.arange(2000) < 800, 0.0, 0.2)
    counts = np.bincount(rng.binomial(8, rates), minlength=9)
    fitted = true_shares(fit_pass_rates(counts), 8)
    assert counts[0] / 2000 == pytest.approx(0.50, abs=0.02)
    assert fitted.hopeless == pytest.approx(0.40, abs=0.08)
    assert fitted.effective == pytest.approx(0.6 * effective_share(0.2, 8), abs=0.02)
    low, high = bootstrap_shares(counts, 8, seed=0, times=100)
    assert low[0] < fitted.hopeless < high[0] < counts[0] / 2000
    assert low[2] < fitted.effective < high[2]
    assert np.array_equal(bootstrap_shares(counts, 8, seed=0, times=100), [low, high])


def test_rollouts_without_a_score_are_no_failures() -> None:
    """p = 0.3 for all, 8 rollouts, three in ten without a score: 1 - .3^8 - .7^8 = 0.942 of groups of 8 differ."""
    rng = np.random.default_rng(2)
    drawn = [[bool(hit) if kept else None for hit, kept in zip(rng.random(8) < 0.3, rng.random(8) < 0.7, strict=True)]
             for _ in range(600)]  # fmt: skip
    outcomes, counts = outcomes_of(drawn)
    assert counts.sum() == 600
    assert set(outcomes[:, 1].tolist()) > {4, 5, 6, 7}
    fitted = true_shares(fit_pass_rates(counts, outcomes=outcomes), 8)
    assert fitted.effective == pytest.approx(effective_share(0.3, 8), abs=0.03)
    low, high = bootstrap_shares(counts, 8, seed=0, times=50, outcomes=outcomes)
    assert low[2] <= fitted.effective <= high[2]
    raw = [effective_share(k / n, 8) if n else 0.0 for k, n in outcomes.tolist()]
    naive = np.average(raw, weights=counts)
    assert naive < 0.85  # what the raw rates would say
    whole, of_eight = outcomes_of([[True] * k + [False] * (8 - k) for k in (0, 3, 3, 8)])
    plain = fit_pass_rates(np.bincount([0, 3, 3, 8], minlength=9))
    np.testing.assert_allclose(fit_pass_rates(of_eight, outcomes=whole), plain, atol=1e-12)
