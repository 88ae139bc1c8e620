"""Read a head along rollouts that are there already: offline, teacher-forced, the same numbers as live."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rollwise.inference.files import Arrays, KeptBatches, RolloutSet, pass_facts
from rollwise.inference.head.head import SuccessHead
from rollwise.inference.head.hidden import BATCH_TOKENS, Progress, each_rollout
from rollwise.inference.policies import END_WINDOW, FloatArray

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Score:
    """The reads of a head along one rollout of T tokens.

    Attributes:
        index: Which of the set's rollouts.
        chances: (T, R) of the reward states at the positions that produce its tokens; the first is the prompt's.
        values: (T,) expected rewards.
        remaining: (T,) expected remaining tokens.
        entropy: (T,) -log p of the true pair of remaining length and reward.
        at_prompt: (R, L) the joint distribution at the prompt.
        verdict: Expected reward by the head's verdict; None without one.
        believed: (R,) chances of the reward states by the verdict; empty without one, and for two states.
    """

    index: int
    chances: FloatArray = field(repr=False)
    values: FloatArray = field(repr=False)
    remaining: FloatArray = field(repr=False)
    entropy: FloatArray = field(repr=False)
    at_prompt: FloatArray = field(repr=False)
    verdict: float | None = None
    believed: FloatArray = field(default_factory=lambda: np.zeros(0), repr=False)

    @property
    def value_end(self) -> float:
        """The verdict; without one the mean value of the last 16 positions (section 3.2)."""
        if self.verdict is not None:
            return self.verdict
        return float(self.values[-END_WINDOW:].mean())

    @property
    def belief(self) -> FloatArray:
        """(R,) chances of more than two reward states in the end; `value_end` is their mean."""
        return self.believed if len(self.believed) else np.asarray(self.chances[-END_WINDOW:].mean(axis=0))


def score_rollouts(
    model: Any,
    head: SuccessHead,
    rollouts: RolloutSet,
    *,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
    kept: str | Path | None = None,
) -> Iterator[Score]:
    """Score N rollouts, the longest first.

    Args:
        model: The model that made them, or another of the same tokenizer and width.
        head: What to read.
        rollouts: N rollouts.
        batch_tokens: Most tokens in a forward pass.
        progress: Called after each batch.
        kept: A folder that keeps the scores batch by batch, so that the same pass goes on where it was killed, and once
            done need not be made again.

    Raises:
        ConfigError: the head is of another width.
    """
    spec = head.spec
    believing = head.verdict is not None and spec.num_rewards > 2  # the verdict of two states tells their chances

    def make(i: int, states: torch.Tensor) -> Arrays:
        head.check_width(int(states.shape[1]))
        joint = head.joint(states).double().numpy()
        labels = spec.rollout_labels(len(states), float(rollouts.rewards[i]))
        own = joint.reshape(len(joint), -1)[np.arange(len(joint)), labels]
        arrays = {
            "chances": joint.sum(-1),
            "values": spec.value(joint),
            "remaining": spec.expected_length(joint),
            "entropy": -np.log(np.maximum(own, np.finfo(np.float32).tiny)),
            "at_prompt": joint[0],
        }
        if head.verdict is not None:
            chances = head.verdict.chances(head.verdict.read(states).numpy())
            arrays["verdict"] = np.asarray(chances @ np.asarray(spec.rewards))
            if believing:
                arrays["believed"] = chances
        return arrays

    batches = None
    if kept is not None:
        more = {"believed": True} if believing else {}  # an earlier version kept none: such a pass is made again
        facts = pass_facts(model, rollouts, head=head.digest, batch_tokens=batch_tokens, **more)
        batches = KeptBatches(kept, facts)
    made = each_rollout(model, rollouts, make, kept=batches, batch_tokens=batch_tokens, progress=progress)
    for i, arrays in made:
        verdict = arrays.pop("verdict", None)
        yield Score(i, **arrays, verdict=None if verdict is None else float(verdict))
