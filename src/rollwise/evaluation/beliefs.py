"""Belief against outcome: which groups are compared, and the numbers of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rollwise.evaluation.calibration import (
    baseline_brier_score,
    brier_score,
    expected_contrast,
    pearson_correlation,
    roc_auc,
    spearman_correlation,
)
from rollwise.evaluation.curves import FloatArray
from rollwise.runs.group_table import GroupTable

# Fewer groups than this say nothing about a belief.
FEWEST_BELIEFS = 10


@dataclass(frozen=True)
class Beliefs:
    """The B groups that were asked for with a belief and have a reward.

    Attributes:
        step: (B,).
        predicted: (B,) the mean score expected when the ticket was issued, in [0, 1].
        outcome: (B,) the mean score of the ticket's own rollouts.
        mixed: (B,) bool, whether the group's rewards differ: whether the prompt was effective.
    """

    step: NDArray[np.int64]
    predicted: FloatArray
    outcome: FloatArray
    mixed: NDArray[np.bool_]


def beliefs_of(groups: GroupTable) -> Beliefs | None:
    """The groups to judge the beliefs by, of any purpose; None if too few, or if rewards are out of their range."""
    kept = np.isfinite(groups.predicted) & np.isfinite(groups.own_mean)
    kept &= (groups.predicted >= 0) & (groups.predicted <= 1)
    if not groups.has_scores or np.count_nonzero(kept) < FEWEST_BELIEFS:
        return None
    outcome = np.clip(groups.own_mean[kept], 0, 1)  # rounding
    return Beliefs(groups.step[kept], groups.predicted[kept], outcome, groups.mixed[kept])


@dataclass(frozen=True)
class BeliefScores:
    """How well beliefs foretold outcomes; NaN where it can't be said. See `rollwise.evaluation.calibration`."""

    n: int
    brier: float
    baseline: float
    base_rate: float
    pearson: float
    spearman: float
    auc: float


def belief_scores(beliefs: Beliefs) -> BeliefScores:
    """All measures over all groups together."""
    predicted, outcome = beliefs.predicted, beliefs.outcome
    return BeliefScores(
        n=len(predicted),
        brier=brier_score(predicted, outcome),
        baseline=baseline_brier_score(outcome),
        base_rate=float(outcome.mean()),
        pearson=pearson_correlation(predicted, outcome),
        spearman=spearman_correlation(predicted, outcome),
        auc=roc_auc(expected_contrast(predicted), beliefs.mixed),
    )
