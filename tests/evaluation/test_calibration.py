"""Belief against outcome, against numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rollwise.errors import ConfigError
from rollwise.evaluation.calibration import (
    baseline_brier_score,
    brier_score,
    expected_contrast,
    mean_ranks,
    pearson_correlation,
    reliability_curve,
    roc_auc,
    spearman_correlation,
)


def test_reliability_curve_by_hand() -> None:
    """Bins [0, .25), [.25, .5), [.5, .75), [.75, 1]: .1 and .2 in the first, .5 in the third, 1 in the last.

    First: mean belief (.1 + .2) / 2 = .15, mean outcome (0 + .5) / 2 = .25.
    """
    curve = reliability_curve([0.1, 0.2, 0.5, 1.0], [0.0, 0.5, 0.25, 1.0], bins=4)
    assert curve.edges.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert curve.count.tolist() == [2, 0, 1, 1]
    np.testing.assert_allclose(curve.predicted, [0.15, np.nan, 0.5, 1.0])
    np.testing.assert_allclose(curve.outcome, [0.25, np.nan, 0.25, 1.0])


def test_brier_score_and_its_baseline_by_hand() -> None:
    """(.2-0)^2 + (.6-1)^2 + (.5-.5)^2 = .04 + .16 + 0 = .2, over 3; the mean is .5: (.25 + .25 + 0) / 3."""
    predicted, outcome = [0.2, 0.6, 0.5], [0.0, 1.0, 0.5]
    assert brier_score(predicted, outcome) == pytest.approx(0.2 / 3)
    assert baseline_brier_score(outcome) == pytest.approx(0.5 / 3)
    assert brier_score([0.5, 0.5, 0.5], outcome) == pytest.approx(baseline_brier_score(outcome))


def test_pearson_by_hand() -> None:
    """x - 2 = (-1, 0, 1), y - 2 = (-1, 1, 0): product 1, sizes sqrt 2 each, so 1/2."""
    assert pearson_correlation([1, 2, 3], [1, 3, 2]) == pytest.approx(0.5)
    assert pearson_correlation([1, 2, 3], [-1, -2, -3]) == pytest.approx(-1)
    assert math.isnan(pearson_correlation([1, 1], [1, 2]))
    assert math.isnan(pearson_correlation([1], [1]))
    assert math.isnan(pearson_correlation([], []))


def test_ranks_and_spearman_with_ties_by_hand() -> None:
    """Ranks of (10, 20, 20, 40) are (1, 2.5, 2.5, 4), less 2.5: (-1.5, 0, 0, 1.5); of (1, 2, 3, 4): (-1.5 ... 1.5).

    Product 2.25 + 2.25 = 4.5; sizes sqrt 4.5 and sqrt 5: 4.5 / sqrt 22.5 = sqrt .9.
    """
    assert mean_ranks([10, 20, 20, 40]).tolist() == [1, 2.5, 2.5, 4]
    assert spearman_correlation([10, 20, 20, 40], [1, 2, 3, 4]) == pytest.approx(math.sqrt(0.9))
    assert spearman_correlation([1, 2, 3], [1, 100, 101]) == pytest.approx(1)


def test_roc_auc_by_hand() -> None:
    """Positives .8 and .4, negatives .4 and .1: .8 beats both, .4 ties one (a half) and beats one: 3.5 of 4 pairs."""
    assert roc_auc([0.8, 0.4, 0.4, 0.1], [True, True, False, False]) == 3.5 / 4
    assert roc_auc([1, 2], [True, False]) == 0
    assert roc_auc([1, 1, 1], [True, False, True]) == 0.5
    assert math.isnan(roc_auc([1, 2], [True, True]))
    assert math.isnan(roc_auc([], []))


def test_roc_auc_counts_pairs() -> None:
    rng = np.random.default_rng(0)
    score, label = rng.integers(0, 5, 60).astype(float), rng.random(60) < 0.4
    pairs = [(a > b) + 0.5 * (a == b) for a in score[label] for b in score[~label]]
    assert roc_auc(score, label) == pytest.approx(sum(pairs) / len(pairs))


@pytest.mark.parametrize("rollouts", [2, 5, 16])
def test_expected_contrast_ranks_as_the_chance_of_a_mixed_group(rollouts: int) -> None:
    p = np.linspace(0.01, 0.99, 37)
    chance = 1 - p**rollouts - (1 - p) ** rollouts
    assert spearman_correlation(expected_contrast(p).round(9), chance.round(9)) == pytest.approx(1)


def test_beliefs_as_near_to_one_half_tie() -> None:
    """As after 8 rollouts with a prior of (1, 1): 0.2 (1 - 0.2) and 0.8 (1 - 0.8) differ by their rounding."""
    assert 0.2 * (1 - 0.2) != 0.8 * (1 - 0.8)
    p = np.arange(1, 10) / 10
    assert expected_contrast(p).tolist() == expected_contrast(p[::-1]).tolist()
    assert roc_auc(expected_contrast([0.2, 0.8]), [True, False]) == 0.5


@pytest.mark.parametrize(
    ("predicted", "outcome", "said"),
    [([1.5], [0.5], "predicted"), ([0.5], [-0.1], "outcome"), ([math.nan], [0.5], "predicted"), ([0.5], [], r"\(M,\)")],
)
def test_what_is_no_score_is_refused(predicted: list[float], outcome: list[float], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        brier_score(predicted, outcome)


def test_nothing_to_judge() -> None:
    assert math.isnan(brier_score([], []))
    assert math.isnan(baseline_brier_score([]))
    assert reliability_curve([], [], bins=2).count.tolist() == [0, 0]
    with pytest.raises(ConfigError, match="bins"):
        reliability_curve([0.5], [0.5], bins=0)
