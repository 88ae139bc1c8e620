"""Belief against outcome: how good the newest predictions were."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rollwise.evaluation.calibration import baseline_brier_score, brier_score, pearson_correlation
from rollwise.runs.solved import SolvedRule
from rollwise.watching.history import GroupLine

# Predictions that are judged.
JUDGED_GROUPS = 512
FEWEST_JUDGED = 8


@dataclass(frozen=True, slots=True)
class Calibration:
    """Predictions of groups' mean scores against what came.

    Attributes:
        groups: how many were judged.
        brier: mean squared difference of prediction and mean score.
        constant: what always predicting the mean of all would have had.
        correlation: of predictions and mean scores; NaN where either never changes.
    """

    groups: int
    brier: float
    constant: float
    correlation: float


def calibrate(groups: Sequence[GroupLine], rule: SolvedRule, most: int = JUDGED_GROUPS) -> Calibration | None:
    """Judge the last `most` predictions of groups for training; None where rewards are out of their range.

    As in the report, one such reward among the groups is enough, and a prediction outside [0, 1] is not judged.
    The Brier score (Brier 1950) of group means, beside that of the constant that would have been best in hindsight,
    which is the means' variance; and Pearson's correlation (BOTS, appendix F.2).
    """
    known = [(g.predicted, g.scored) for g in groups if g.purpose == "train" and g.predicted is not None and g.scored]
    judged = [(belief, own) for belief, own in known if 0.0 <= belief <= 1.0][-most:]
    rewards = [reward for group in groups for reward in group.scored]
    if len(judged) < FEWEST_JUDGED or not rule.spec.fits(min(rewards), max(rewards)):
        return None
    predicted = [belief for belief, _ in judged]
    outcomes = np.clip(rule.spec.scores(np.array([statistics.fmean(own) for _, own in judged])), 0.0, 1.0)
    return Calibration(
        groups=len(judged),
        brier=brier_score(predicted, outcomes),
        constant=baseline_brier_score(outcomes),
        correlation=pearson_correlation(predicted, outcomes),
    )
