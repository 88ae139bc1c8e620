"""Reinforce-Ada (arXiv 2510.04996): rounds of rollouts until a prompt has shown both right and wrong ones."""

from __future__ import annotations

from typing import Literal

import numpy as np

from rollwise.allocators.in_rounds import InRounds, Seen
from rollwise.errors import ConfigError
from rollwise.options import Count, Share


class ReinforceAda(InRounds):
    """Makes rounds of 8 rollouts of each prompt until it has enough right and wrong ones, and trains on a few of them.

    Reinforce-Ada, arXiv 2510.04996, as its Algorithm 1 and its release have it. n = `num_generations` (there 4)
    rollouts of each prompt are trained on, half right and half wrong where there are as many, the first made first.
    Their baseline is that of all rollouts. The paper divides by no standard deviation (GRPO: `scale_rewards="none"`).
    All rounds are charged, so a step costs more than n rollouts a prompt: compare runs at equal rollouts, not at equal
    steps.

    Args:
        rule: a prompt gets no more when it has: "balanced": n/2 right and n/2 wrong ones; "positive": one right one
            (the release's "positive_focused"), which gives hard prompts more.
        round_rollouts: rollouts of a prompt in each round.
        rounds: most rounds.
        right_above: a rollout is right if its score, in [0, 1], is greater.
    """

    def __init__(
        self,
        *,
        rule: Literal["balanced", "positive"] = "balanced",
        round_rollouts: Count = 8,
        rounds: Count = 4,
        right_above: Share = 0.7,
    ) -> None:
        super().__init__()
        self.rule, self.round_rollouts, self.rounds, self.right_above = rule, round_rollouts, rounds, right_above

    def bounds(self, mean: int) -> tuple[int, int]:
        if mean > self.round_rollouts:
            raise ConfigError(
                f"ReinforceAda trains on num_generations={mean} rollouts of a prompt, and a round has "
                f"{self.round_rollouts}; raise round_rollouts, or lower num_generations (the paper: 4)"
            )
        return self.round_rollouts, self.rounds * self.round_rollouts

    def more(self, seen: Seen, mean: int) -> np.ndarray:
        if seen.rounds >= self.rounds:
            return np.zeros(len(seen.scores), dtype=np.int64)
        right = np.array([(own > self.right_above).sum() for own in seen.scores])
        wrong = np.array([(own <= self.right_above).sum() for own in seen.scores])
        enough = right >= 1 if self.rule == "positive" else (right >= mean // 2) & (wrong >= mean - mean // 2)
        return np.where(enough, 0, self.round_rollouts)

    def kept(self, scores: np.ndarray, mean: int) -> np.ndarray:
        right = np.flatnonzero(scores > self.right_above)
        wrong = np.flatnonzero(scores <= self.right_above)
        halves = np.concatenate([right[: mean // 2], wrong[: mean - mean // 2]])
        others = np.setdiff1d(np.arange(len(scores)), halves)
        others = others[np.argsort(np.isnan(scores[others]), kind="stable")]  # what has no reward comes last
        return np.sort(np.concatenate([halves, others[: mean - len(halves)]]))
