"""A judge at the last step, and whether it fails."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from rollwise.evaluation.judgments import CLUSTERED, SATURATED, UNREAD, failure_modes


@dataclass(frozen=True, slots=True)
class JudgeState:
    """A judge at the last step; None where it was not logged.

    Attributes:
        reward: mean judge reward.
        baseline: what it is compared with.
        failure_rate: share of the answers that could not be read.
        mean: of the predictions over the candidates.
        spread: their standard deviation.
    """

    reward: float | None = None
    baseline: float | None = None
    failure_rate: float | None = None
    mean: float | None = None
    spread: float | None = None


def by_last_part(latest: Mapping[str, float]) -> dict[str, float]:
    """A curriculum's numbers, also of one within another, by the last parts of their names."""
    return {name.rsplit("/", 1)[-1]: value for name, value in latest.items() if name.startswith("curriculum/")}


def judge_state(latest: Mapping[str, float]) -> JudgeState | None:
    """What the last step's line says of a judge, also of one in a curriculum within another."""
    by_name = by_last_part(latest)
    names = ("judge_reward", "judge_baseline", "judge_failure_rate", "prediction_mean", "prediction_std")
    found = JudgeState(*(by_name.get(name) for name in names))
    return None if found == JudgeState() else found


def judge_alarms(judge: JudgeState | None) -> list[str]:
    """A line for each known way to fail that the last step shows."""
    if judge is None or judge.baseline is None:  # else what is predicted may be pass rates
        return []
    said = {
        UNREAD: "most judgments can't be read: chance chooses (exemplars=0 makes models solve the prompt instead)",
        SATURATED: "predictions are saturated at 0.25: lower judge_weight",
        CLUSTERED: "predictions do not tell candidates apart: chance chooses",
    }
    numbers = [math.nan if n is None else n for n in (judge.failure_rate, judge.mean, judge.spread)]
    return [said[mode] for mode in failure_modes(*numbers)]
