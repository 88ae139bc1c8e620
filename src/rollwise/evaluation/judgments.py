"""How well predictions of a group's variance came true, whether choosing by them helped, and what they cost.

One definition for all methods, so that they can be compared: a method that predicts variances is taken at its word, and
of one that predicts a pass rate p the variance is p(1-p). What came is METIS's equation 3, the variance of the ticket's
own scores divided by n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rollwise.evaluation.calibration import expected_contrast, pearson_correlation, roc_auc
from rollwise.evaluation.curves import FloatArray, finite, last_known
from rollwise.runs.group_table import NO_NAME, GroupTable
from rollwise.runs.reading import RunData

BoolArray = NDArray[np.bool_]

# The greatest variance of scores in [0, 1].
MAX_VARIANCE = 0.25
# Fewer groups than this say nothing about predictions.
FEWEST_PREDICTIONS = 10
# Last parts of lanes' names: chosen by a judgment, chosen though there was none, and chosen whatever it may be.
JUDGED_LANE, UNJUDGED_LANE = "judged", "unjudged"
BLIND_LANES = ("uniform", "explore", "rail-explore")

UNREAD, SATURATED, CLUSTERED = "unread", "saturated", "clustered"
_MOSTLY = 0.5
# As shares of the greatest prediction: how near the ceiling, how little spread.
_NEAR_CEILING, _LITTLE_SPREAD, _NO_SPREAD = 0.9, 0.1, 0.04


@dataclass(frozen=True)
class Predictions:
    """The J groups that were trained on with a prediction, and what came.

    Attributes:
        step: (J,).
        predicted: (J,) the variance predicted at ask, in [0, 1/4].
        realised: (J,) that of the ticket's own scores.
        mixed: (J,) whether the group's rewards differ.
    """

    step: NDArray[np.int64]
    predicted: FloatArray
    realised: FloatArray
    mixed: BoolArray

    def __len__(self) -> int:
        return len(self.step)


@dataclass(frozen=True)
class PredictionScores:
    """How well variances were predicted; NaN where it can't be said.

    Attributes:
        n: Groups.
        correlation: Pearson's, of predicted and realised variance; NaN where either does not vary.
        auc: ROC AUC of telling mixed groups from the others; NaN where all are mixed, or none.
        error: Mean absolute error.
        constant_error: That of the best constant, the realised variances' median.
    """

    n: int
    correlation: float
    auc: float
    error: float
    constant_error: float


@dataclass(frozen=True)
class SelectionGain:
    """Mean realised variance of the groups chosen by a judgment, and of those chosen without asking for one.

    Attributes:
        judged: Mean of the former.
        blind: Mean of the latter.
        n_judged: How many the former are.
        n_blind: How many the latter are.
        standard_error: Of the difference of the two means.
    """

    judged: float
    blind: float
    n_judged: int
    n_blind: int
    standard_error: float

    @property
    def difference(self) -> float:
        """Above 0 where choosing pays."""
        return self.judged - self.blind


@dataclass(frozen=True)
class JudgmentCosts:
    """What judgments cost a run in all; shares are NaN where the total was not recorded.

    Attributes:
        questions: That were answered.
        tokens: Generated as answers.
        context_tokens: Read to answer.
        seconds: Of their generation.
        token_share: Of all generated tokens.
        time_share: Of the training time.
    """

    questions: float
    tokens: float
    context_tokens: float
    seconds: float
    token_share: float
    time_share: float


def variance_predictions(groups: GroupTable) -> FloatArray:
    """What each group's variance was predicted to be, (M,), in [0, 1/4]; NaN where nothing usable was predicted."""
    rate = np.where((groups.predicted >= 0) & (groups.predicted <= 1), groups.predicted, np.nan)
    own = groups.predicted_variance
    own = np.where((own >= 0) & (own <= MAX_VARIANCE), own, np.nan)
    return np.where(np.isfinite(own), own, expected_contrast(rate))


def predictions_of(groups: GroupTable, *, lanes: Sequence[str] | None = None) -> Predictions | None:
    """The groups to judge predictions by: asked for to train on, with two own rewards or more; of some lanes, or all.

    None if they are too few, or if rewards are out of their range: variances of scores in [0, 1] can't exceed 1/4.
    """
    predicted = variance_predictions(groups)
    kept = groups.train & np.isfinite(predicted) & np.isfinite(groups.own_variance)
    if lanes is not None:
        kept &= in_lanes(groups, lanes)
    if not groups.has_scores or np.count_nonzero(kept) < FEWEST_PREDICTIONS:
        return None
    realised = np.minimum(groups.own_variance[kept], MAX_VARIANCE)  # rounding
    return Predictions(groups.step[kept], predicted[kept], realised, groups.mixed[kept])


def prediction_scores(predictions: Predictions) -> PredictionScores:
    """All measures over all groups together."""
    predicted, realised = predictions.predicted, predictions.realised
    known = len(predictions) > 0
    return PredictionScores(
        n=len(predictions),
        correlation=pearson_correlation(predicted, realised),
        auc=roc_auc(predicted, predictions.mixed),
        error=float(np.abs(predicted - realised).mean()) if known else math.nan,
        constant_error=float(np.abs(realised - np.median(realised)).mean()) if known else math.nan,
    )


def unjudged_share(groups: GroupTable) -> float:
    """Share of the groups chosen among candidates whose judgment could not be had; NaN without such lanes."""
    judged, unjudged = (int(np.count_nonzero(in_lanes(groups, (name,)))) for name in (JUDGED_LANE, UNJUDGED_LANE))
    return unjudged / (judged + unjudged) if judged + unjudged else math.nan


def selection_gain(groups: GroupTable) -> SelectionGain | None:
    """Whether choosing by judgments paid, by the groups chosen without; None where either are too few.

    Retests are left out: they choose what was all solved or all failed, so that anything beats them.
    """
    known = np.isfinite(groups.own_variance)
    judged = groups.own_variance[known & in_lanes(groups, (JUDGED_LANE,))]
    blind = groups.own_variance[known & in_lanes(groups, BLIND_LANES)]
    if min(judged.size, blind.size) < FEWEST_PREDICTIONS or not groups.has_scores:
        return None
    return SelectionGain(
        judged=float(judged.mean()),
        blind=float(blind.mean()),
        n_judged=judged.size,
        n_blind=blind.size,
        standard_error=math.sqrt(judged.var(ddof=1) / judged.size + blind.var(ddof=1) / blind.size),
    )


def in_lanes(groups: GroupTable, lanes: Sequence[str]) -> BoolArray:
    """Which groups to train on are in one of these lanes, also where they are a lane within another, (M,)."""
    codes = [code for code, name in enumerate(groups.lanes) if name.rsplit("/", 1)[-1] in lanes]
    return np.asarray(groups.train & (groups.lane != NO_NAME) & np.isin(groups.lane, codes))


def has_judgments(run: RunData, groups: GroupTable) -> bool:
    """Whether a judge chose in this run: other methods' beliefs are no judgments."""
    logged = any(np.isfinite(curriculum_column(run, name)).any() for name in ("judge_reward", "prediction_mean"))
    return logged or bool(in_lanes(groups, (JUDGED_LANE, UNJUDGED_LANE)).any())


def predicts_variances(run: RunData, groups: GroupTable) -> bool:
    """Whether its judge predicts variances, and not pass rates."""
    return bool(
        np.isfinite(groups.predicted_variance).any() or np.isfinite(curriculum_column(run, "judge_reward")).any()
    )


def curriculum_column(run: RunData, name: str) -> FloatArray:
    """A curriculum's column, (S,), also of one within another; all NaN where there is none."""
    found = [key for key in run.metrics if key.startswith("curriculum/") and key.rsplit("/", 1)[-1] == name]
    return run.column(min(found, key=len, default=f"curriculum/{name}"))


def judgment_costs(run: RunData) -> JudgmentCosts | None:
    """What the policy's answers cost; None where it was asked nothing. They are part of the run's tokens and time."""
    questions = _sum(run, "judge_questions")
    if not questions:
        return None
    tokens, seconds = _sum(run, "judge_tokens"), _sum(run, "judge_s")
    return JudgmentCosts(
        questions=questions,
        tokens=tokens,
        context_tokens=_sum(run, "judge_context_tokens"),
        seconds=seconds,
        token_share=_share(tokens, run.column("tokens")),
        time_share=_share(seconds, run.column("wall_s")),
    )


def late_mean(values: FloatArray) -> tuple[float, int]:
    """The mean over the last quarter of a column's finite entries, and over how many; NaN and 0 without any.

    >>> late_mean(np.array([0.0, 0.0, 0.0, np.nan, 0.5]))
    (0.5, 1)
    """
    known = finite(values)
    late = known[len(known) - math.ceil(len(known) / 4) :]
    return (float(late.mean()), len(late)) if late.size else (math.nan, 0)


def failure_modes(failure_rate: float, mean: float, spread: float, *, variances: bool = True) -> list[str]:
    """Which of the known ways to fail can be seen (METIS, section 5.3 and appendix B.2); NaN shows nothing.

    - `unread`: most answers hold no prediction, as without exemplars (K = 0).
    - `saturated`: predictions gather at the ceiling of 1/4, as where the judge loss dominates (lambda = 1).
    - `clustered`: predictions don't tell candidates apart, as where judgments are not trained (lambda = 0).

    Args:
        failure_rate: Share of the answers that could not be read.
        mean: Of the predictions over candidates.
        spread: Their standard deviation.
        variances: They are variances, at most 1/4; else pass rates, which have no ceiling to gather at.

    >>> failure_modes(0.02, 0.247, 0.006), failure_modes(0.9, 0.1, 0.05)
    (['saturated'], ['unread'])
    """
    found = [UNREAD] if failure_rate > _MOSTLY else []
    ceiling = MAX_VARIANCE if variances else 1.0
    if variances and mean >= _NEAR_CEILING * ceiling and spread <= _LITTLE_SPREAD * ceiling:
        return [*found, SATURATED]
    return [*found, CLUSTERED] if spread <= _NO_SPREAD * ceiling else found


def _sum(run: RunData, name: str) -> float:
    return float(np.nansum(run.column(name)))


def _share(part: float, total: FloatArray) -> float:
    whole = last_known(total)
    return part / whole if whole > 0 else math.nan
