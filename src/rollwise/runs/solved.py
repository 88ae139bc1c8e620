"""From which reward on a rollout counts as solved: as the run's folder says, or guessed where it does not."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rollwise.tickets.outcome import RewardSpec

# Rewards closer than this are the same reward: well above float32's rounding of a reward near 1 (6e-8), well below
# any difference that a verifier means.
SAME_REWARD = 1e-6


@dataclass(frozen=True, slots=True)
class SolvedRule:
    """What "solved" and "mixed" mean for the raw rewards of one run.

    Attributes:
        at: The reward from which a rollout counts as solved.
        threshold: That, less a little for rounding: a reward of at least this is solved.
        spec: The range of rewards, by which they have scores; 0 to 1 where the run's folder does not say.
        guessed: Whether the run's folder does not say, as those of older runs do not.
    """

    at: float
    threshold: float
    spec: RewardSpec
    guessed: bool = False

    @classmethod
    def of(cls, spec: RewardSpec) -> SolvedRule:
        """The rule that the run's curriculum used.

        >>> rule = SolvedRule.of(RewardSpec(low=0, high=10, solved_at=8))
        >>> rule.at, round(rule.same, 9), rule.guessed
        (8.0, 1e-05, False)
        """
        at = float(spec.high if spec.solved_at is None else spec.solved_at)
        return cls(at=at, threshold=spec.threshold, spec=spec)

    @classmethod
    def guess(cls, greatest: float) -> SolvedRule:
        """For a run that does not say: 1, rollwise's default; the greatest reward, where one of more than 1 was given.

        >>> SolvedRule.guess(0.8).at, SolvedRule.guess(10.0).at, SolvedRule.guess(math.nan).at
        (1.0, 10.0, 1.0)
        """
        at = greatest if math.isfinite(greatest) and greatest > 1 + SAME_REWARD else 1.0
        return cls(at=at, threshold=at - SAME_REWARD, spec=RewardSpec(), guessed=True)

    @property
    def same(self) -> float:
        """Rewards that differ by no more than this agree."""
        return self.spec.slack

    @property
    def range(self) -> str:
        """The range of rewards in words: `[0, 1]`."""
        return f"[{self.spec.low:g}, {self.spec.high:g}]"

    @property
    def words(self) -> str:
        """The mark in words: `reward 1`, or `reward 1 (guessed)`."""
        return f"reward {self.at:g}" + (" (guessed)" if self.guessed else "")
