"""What came of a ticket's rollouts, and the range in which its rewards lie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rollwise.errors import ConfigError, RewardError


@dataclass(frozen=True, slots=True)
class Outcome:
    """The rewards of one ticket's rollouts.

    Attributes:
        ticket_id: the ticket's id.
        rewards: (k,) raw rewards, 0 <= k <= the ticket's `n_rollouts`. Fewer is fine: a group may be partial.
        advantages: (k,) the advantages that the trainer used, where it tells them.
        failed: how many rollouts gave no reward at all (crashed, unscorable). They are no evidence of difficulty.
        step: the step of the policy that generated them, where it is not the ticket's.
        labels: (k,) what kind of rollout each was, such as the category of its failure (a task's `failure` names it);
            None or "" for a solved one.
    """

    ticket_id: str
    rewards: Sequence[float] | np.ndarray
    advantages: Sequence[float] | np.ndarray | None = None
    failed: int = 0
    step: int | None = None
    labels: Sequence[str | None] | None = None


@dataclass(frozen=True, slots=True)
class RewardSpec:
    """The range of raw rewards, and from where on a rollout counts as solved.

    Attributes:
        low: the least reward.
        high: the greatest; a score is `(reward - low) / (high - low)`, in [0, 1].
        solved_at: a rollout whose raw reward is at least this is solved. Defaults to `high`.

    >>> RewardSpec(low=-1, high=1).scores(np.array([-1.0, 0.0, 1.0])).tolist()
    [0.0, 0.5, 1.0]
    """

    low: float = 0.0
    high: float = 1.0
    solved_at: float | None = None

    def __post_init__(self) -> None:
        given = (self.low, self.high) if self.solved_at is None else (self.low, self.high, self.solved_at)
        if any(isinstance(value, bool) or not isinstance(value, int | float | np.number) for value in given):
            raise ConfigError(f"RewardSpec takes numbers, got {self!r}")
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ConfigError(f"RewardSpec needs finite low < high, got low={self.low!r}, high={self.high!r}")
        if self.solved_at is not None and not self.low < self.solved_at <= self.high:
            raise ConfigError(f"solved_at must be in (low, high] = ({self.low}, {self.high}], got {self.solved_at!r}")

    @property
    def threshold(self) -> float:
        """The raw reward from which on a rollout counts as solved, less a little for rounding in float32.

        Always above `low`: of a range of a million with `solved_at` 1, a rollout of reward 0 is not solved.
        """
        at = self.high if self.solved_at is None else self.solved_at
        return at - min(self._slack, (at - self.low) / 2.0)

    @property
    def _slack(self) -> float:
        return 1e-6 * (self.high - self.low)

    def check(self, rewards: Any, ticket_id: str) -> np.ndarray:
        """`rewards` as a fresh float64 array (k,).

        Raises:
            RewardError: not a flat list of numbers, NaN, infinite, or outside [low, high].
        """
        try:
            rewards_K = np.array(rewards, dtype=np.float64)
        except (TypeError, ValueError):
            raise RewardError(f"rewards of ticket {ticket_id!r} must be a list of numbers, got {rewards!r}") from None
        if rewards_K.ndim != 1:
            raise RewardError(f"rewards of ticket {ticket_id!r} must be flat, got shape {rewards_K.shape}")
        if not np.isfinite(rewards_K).all():
            raise RewardError(
                f"rewards of ticket {ticket_id!r} hold NaN or infinity: {rewards_K.tolist()}; report a rollout that "
                "can't be scored in Outcome.failed instead"
            )
        if rewards_K.size and (rewards_K.min() < self.low - self._slack or rewards_K.max() > self.high + self._slack):
            raise RewardError(
                f"rewards of ticket {ticket_id!r} lie outside [{self.low:g}, {self.high:g}]: {rewards_K.tolist()}; "
                "declare their range, for example reward_spec=RewardSpec(low=-1, high=1)"
            )
        return np.clip(rewards_K, self.low, self.high)

    def scores(self, rewards: np.ndarray) -> np.ndarray:
        """Rewards mapped to [0, 1], same shape."""
        return (rewards - self.low) / (self.high - self.low)
