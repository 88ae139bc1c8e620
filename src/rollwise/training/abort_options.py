"""Options of the training-time abort; imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass

from rollwise.checks import check_number, check_whole
from rollwise.errors import ConfigError
from rollwise.inference.roulette import Roulette


@dataclass(frozen=True, kw_only=True)
class AbortOptions:
    """Experimental: doomed rollouts are aborted by a doubly robust roulette, which leaves the gradient unbiased.

    Args:
        head: File of a success head that was fitted on rollouts of this policy (`rollwise head fit`).
        at: The abort point: after so many tokens, V is read of each rollout that has not ended.
        threshold: Rollouts of a lower V are doomed.
        chance: That a doomed one goes on. With 1 nothing is aborted and training is as without, to the bit; whether
            a lower one would pay is measured all the same.
        whole: Share of the prompts of which every rollout is run to its end, whatever V says. By them it is measured
            whether aborting pays; 0 to measure nothing.
        window: Over so many of the last generations it is measured.

    Raises:
        ConfigError: an option is out of its range.
    """

    head: str = ""
    at: int = 16
    threshold: float = 0.35
    chance: float = 0.5
    whole: float = 0.1
    window: int = 50

    def __post_init__(self) -> None:
        if not isinstance(self.head, str) or not self.head:
            raise ConfigError(f"abort needs a head, a file from `rollwise head fit`, got {self.head!r}")
        check_number("whole", self.whole, low=0.0, high=1.0)
        check_whole("window", self.window, least=1)
        _ = self.roulette

    @property
    def roulette(self) -> Roulette:
        """When a rollout is put to the roulette, and how it is loaded."""
        return Roulette(at=self.at, threshold=self.threshold, chance=self.chance)
