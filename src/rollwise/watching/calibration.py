"""Belief against outcome: how good the newest predictions were."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from rollwise.evaluation.calibration import baseline_brier_score, brier_score, pearson_correlation
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


def calibrate(groups: Sequence[GroupLine], most: int = JUDGED_GROUPS) -> Calibration | None:
    """Judge the last `most` predictions, of groups for training whose rewards are scores in [0, 1].

    The Brier score (Brier 1950) of group means, beside that of the constant that would have been best in hindsight,
    which is the means' variance; and Pearson's correlation (BOTS, appendix F.2).
    """
    judged = [
        group
        for group in groups
        if group.purpose == "train" and group.predicted is not None and group.scored and _in_unit(group.scored)
    ][-most:]
    if len(judged) < FEWEST_JUDGED:
        return None
    predicted = [group.predicted or 0.0 for group in judged]
    outcomes = [statistics.fmean(group.scored) for group in judged]
    return Calibration(
        groups=len(judged),
        brier=brier_score(predicted, outcomes),
        constant=baseline_brier_score(outcomes),
        correlation=pearson_correlation(predicted, outcomes),
    )


def _in_unit(scores: Sequence[float]) -> bool:
    return min(scores) >= 0.0 and max(scores) <= 1.0
