"""How well beliefs predicted outcomes: reliability curve, Brier score, correlations, ROC AUC. Pure functions.

A belief is what a curriculum expected of a prompt when it asked for it: a mean score in [0, 1]. The outcome is the mean
score of that ticket's rollouts. BOTS (appendix F.2, Figure 5) judges its estimator by Pearson's correlation of the two
and by how well the beliefs tell effective prompts (rewards that differ) from ineffective ones, as ROC AUC.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollwise.errors import ConfigError

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ReliabilityCurve:
    """Beliefs in B bins of equal width over [0, 1], and what came of them; NaN where a bin is empty.

    Attributes:
        edges: (B + 1,), from 0 to 1.
        count: (B,) beliefs in the bin; its right edge belongs to the next one, but for the last.
        predicted: (B,) their mean.
        outcome: (B,) the mean outcome. Calibrated beliefs have outcome = predicted.
    """

    edges: FloatArray
    count: NDArray[np.int64]
    predicted: FloatArray
    outcome: FloatArray


def reliability_curve(predicted: ArrayLike, outcome: ArrayLike, *, bins: int = 10) -> ReliabilityCurve:
    """Mean outcome by belief.

    Args:
        predicted: (M,) beliefs in [0, 1].
        outcome: (M,) mean scores in [0, 1].
        bins: How many, at least 1.

    Raises:
        ConfigError: Shapes differ, a value is outside [0, 1], or `bins` is below 1.

    >>> curve = reliability_curve([0.1, 0.2, 0.9], [0.0, 1.0, 1.0], bins=2)
    >>> curve.count.tolist(), curve.outcome.tolist()
    ([2, 1], [0.5, 1.0])
    """
    if bins < 1:
        raise ConfigError(f"bins must be >= 1, got {bins!r}")
    beliefs, outcomes = _pairs(predicted, outcome)
    place = np.minimum((beliefs * bins).astype(np.int64), bins - 1)
    count = np.bincount(place, minlength=bins)
    sums = [np.bincount(place, weights=values, minlength=bins) for values in (beliefs, outcomes)]
    means = [np.where(count > 0, total / np.maximum(count, 1), np.nan) for total in sums]
    return ReliabilityCurve(np.linspace(0, 1, bins + 1), count.astype(np.int64), means[0], means[1])


def brier_score(predicted: ArrayLike, outcome: ArrayLike) -> float:
    """Mean squared difference of belief and outcome, (M,) each; 0 is perfect; NaN without any.

    For outcomes of one rollout this is Brier's score (1950). For means of G rollouts even true pass rates p score
    p(1-p)/G on average, so compare with `baseline_brier_score` on the same groups, not with 0.

    Raises:
        ConfigError: As for `reliability_curve`.

    >>> brier_score([0.5, 1.0], [0.0, 1.0])
    0.125
    """
    beliefs, outcomes = _pairs(predicted, outcome)
    return float(np.mean((beliefs - outcomes) ** 2)) if beliefs.size else math.nan


def baseline_brier_score(outcome: ArrayLike) -> float:
    """The Brier score of always believing the outcomes' own mean: their variance; NaN without any.

    No constant does better, so beliefs that score above it tell prompts apart less well than no belief at all.

    >>> baseline_brier_score([0.0, 1.0])
    0.25
    """
    _, outcomes = _pairs(outcome, outcome)
    return float(np.var(outcomes)) if outcomes.size else math.nan


def pearson_correlation(x: ArrayLike, y: ArrayLike) -> float:
    """Pearson's linear correlation of two (M,) arrays, in [-1, 1]; NaN where either does not vary (BOTS, F.2).

    >>> round(pearson_correlation([1, 2, 3], [2, 4, 6]), 6)
    1.0
    """
    a, b = _same_length(x, y)
    if a.size < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return math.nan
    a, b = a - a.mean(), b - b.mean()
    size = math.sqrt(float(a @ a)) * math.sqrt(float(b @ b))
    return float(np.clip(a @ b / size, -1, 1)) if size > 0 else math.nan


def spearman_correlation(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rank correlation of two (M,) arrays: Pearson's of their ranks, ties sharing their mean rank.

    >>> round(spearman_correlation([1, 2, 3], [1, 10, 100]), 6)
    1.0
    """
    a, b = _same_length(x, y)
    return pearson_correlation(mean_ranks(a), mean_ranks(b))


def roc_auc(score: ArrayLike, positive: ArrayLike) -> float:
    """Area under the ROC curve: the chance that a positive scores above a negative, ties counting half.

    By ranks (Mann and Whitney): (R - P(P+1)/2) / (P N), R the sum of the P positives' ranks among P + N.

    Args:
        score: (M,), higher means more likely positive.
        positive: (M,) bool.

    Returns:
        A number in [0, 1], 0.5 for no better than chance; NaN where all are positive, or none.

    >>> roc_auc([0.9, 0.8, 0.3], [True, False, False])
    1.0
    """
    scores, labels = _same_length(score, positive)
    is_positive = labels != 0
    positives = int(np.count_nonzero(is_positive))
    negatives = scores.size - positives
    if not positives or not negatives:
        return math.nan
    ranks = mean_ranks(scores)[is_positive].sum()
    return float((ranks - positives * (positives + 1) / 2) / (positives * negatives))


def expected_contrast(predicted: ArrayLike) -> FloatArray:
    """How likely a group is to be mixed, up to its order: p(1-p), the same shape.

    BOTS's F.2 ranks prompts by their estimate without saying how p becomes a score for "effective". The chance of
    contrast among G rollouts, 1 - p^G - (1-p)^G, grows with p(1-p) for every G, so that this ranks as it does.

    >>> expected_contrast([0.0, 0.5, 1.0]).tolist()
    [0.0, 0.25, 0.0]
    """
    p = np.asarray(predicted, dtype=np.float64)
    return np.asarray((p * (1 - p)).round(12), dtype=np.float64)  # p and 1 - p tie, which by rounding they may not


def mean_ranks(values: ArrayLike) -> FloatArray:
    """Ranks from 1 of (M,) values, equal values sharing the mean of their ranks.

    >>> mean_ranks([10, 30, 10]).tolist()
    [1.5, 3.0, 1.5]
    """
    _, inverse, counts = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse], dtype=np.float64)


def _pairs(predicted: ArrayLike, outcome: ArrayLike) -> tuple[FloatArray, FloatArray]:
    beliefs, outcomes = _same_length(predicted, outcome)
    for name, values in (("predicted", beliefs), ("outcome", outcomes)):
        bad = ~((values >= 0) & (values <= 1))
        if bad.any():
            raise ConfigError(f"{name} must lie in [0, 1], got {values[bad][0]!r}; map rewards to scores first")
    return beliefs, outcomes


def _same_length(x: ArrayLike, y: ArrayLike) -> tuple[FloatArray, FloatArray]:
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ConfigError(f"both must be (M,), got {a.shape} and {b.shape}")
    return a, b
