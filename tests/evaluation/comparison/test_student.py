"""Student's t, Holm's correction and power: numbers by hand, and from printed tables."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rollwise.evaluation.bootstrap import Interval
from rollwise.evaluation.comparison.student import (
    effect_found,
    holm,
    paired_p,
    paired_power,
    seeds_needed,
    t_interval,
    t_quantile,
    t_within,
)


@pytest.mark.parametrize(
    ("level", "df", "printed"),
    [(0.95, 1, 12.706), (0.95, 2, 4.303), (0.95, 4, 2.776), (0.95, 7, 2.365), (0.99, 10, 3.169), (0.95, 120, 1.980)],
)
def test_quantiles_are_those_of_the_tables(level: float, df: int, printed: float) -> None:
    assert t_quantile(level, df) == pytest.approx(printed, abs=5e-4)
    assert float(t_within(t_quantile(level, df), df)) == pytest.approx(level)


def test_a_t_interval_and_its_p_by_hand() -> None:
    """Differences .1, .2, .3: mean .2, deviation .1, half width 4.303 x .1 / sqrt(3) = .2484.

    t is .2 sqrt(3) / .1 = sqrt(12), and with 2 degrees of freedom P(|T| < t) = t / sqrt(t^2 + 2) = sqrt(12 / 14).
    """
    interval = t_interval(0.2, 0.1, 3)
    assert interval == Interval(pytest.approx(-0.0484, abs=1e-4), pytest.approx(0.4484, abs=1e-4))
    assert float(paired_p(0.2, 0.1, 3)) == pytest.approx(1 - math.sqrt(12 / 14))
    assert t_interval(0.2, math.nan, 1) is None
    assert math.isnan(float(paired_p(0.2, math.nan, 1)))


def test_differences_without_spread() -> None:
    assert float(paired_p(-0.1, 0.0, 8)) == pytest.approx(0.0)
    assert math.isnan(float(paired_p(0.0, 0.0, 8)))


def test_holm_by_hand() -> None:
    """Sorted .01, .02, .04 times 3, 2, 1: .03, .04, .04; in a family of 5 times 5, 4, 3. They never fall."""
    assert holm([0.04, 0.01, 0.02], 3) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.04, 0.01, 0.02], 5) == pytest.approx([0.12, 0.05, 0.08])
    assert holm([0.03, 0.02, 0.6], 3) == pytest.approx([0.06, 0.06, 0.6])
    some = holm([math.nan, 0.01, 0.9], 3)
    assert math.isnan(some[0])
    assert some[1:] == pytest.approx([0.03, 1.0])
    assert holm([], 4).size == 0


def test_power_of_a_difference_of_one_deviation() -> None:
    """0.40 at 5 seeds, 0.80 at 10. At 0 it is the level; 34 seeds for half a deviation (Cohen)."""
    assert [round(paired_power(1.0, n), 3) for n in (5, 10)] == [0.401, 0.803]
    assert paired_power(0.0, 6) == pytest.approx(0.05, abs=1e-4)
    assert paired_power(0.5, 33) < 0.8 <= paired_power(0.5, 34)
    assert (seeds_needed(1.0), seeds_needed(0.5), seeds_needed(0.01), seeds_needed(0.0)) == (10, 34, None, None)
    assert effect_found(10) == pytest.approx(0.996, abs=1e-3)
    assert seeds_needed(1.0, 0.05 / 5) == 16


def test_power_is_what_simulated_tests_find() -> None:
    """2,000 samples of 8 with a true difference of .9 deviations: within 4 standard errors."""
    draws = np.random.default_rng(0).normal(0.9, 1.0, (2000, 8))
    found = (paired_p(draws.mean(axis=1), draws.std(axis=1, ddof=1), 8) < 0.05).mean()
    assert found == pytest.approx(paired_power(0.9, 8), abs=4 * math.sqrt(0.24 / 2000))
