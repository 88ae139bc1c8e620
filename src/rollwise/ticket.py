"""A ticket: the right, and the duty, to roll out one prompt and tell what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Purpose = Literal["train", "measure", "screen", "oracle"]


@dataclass(frozen=True, slots=True)
class Ticket:
    """One prompt chosen by `ask`.

    Attributes:
        id: what an `Outcome` names. Unique within the curriculum that issued it.
        prompt_id: the prompt's durable id.
        prompt: the prompt itself (text or chat messages).
        lane: why it was chosen: `priority`, `explore`, `retest-solved`, `retest-unsolved`, `uniform`, ...
        step: the step it was asked for.
        n_rollouts: how many rollouts to make; None leaves that to the caller.
        predicted: the expected mean score in [0, 1] believed at `ask`; None without a belief.
        propensity: the probability with which the draw picked it, given the picks before it in the same `ask`; None
            where the draw is not random.
        purpose: "train": train on its rollouts; "measure": they are only looked at; "screen": they are looked at first,
            and if the curriculum asks for the prompt again, trained on together with those of that ticket; "oracle":
            they are only looked at, and not charged to the run: for measuring what could be had.
        predicted_variance: the variance of the scores, in [0, 1/4], that a judge predicted; None without one.
    """

    id: str
    prompt_id: str
    prompt: Any
    lane: str
    step: int
    n_rollouts: int | None = None
    predicted: float | None = None
    propensity: float | None = None
    purpose: Purpose = "train"
    predicted_variance: float | None = None
