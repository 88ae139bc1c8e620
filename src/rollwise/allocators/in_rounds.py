"""The rollouts of a step in several rounds: what the first ones show says which prompts get more."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rollwise.allocators.base import Allocator, Rates


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of K prompts in the rounds of this step so far.

    Attributes:
        rounds: how many rounds were made.
        scores: K arrays (n,) of scores in [0, 1] in the order made; NaN for a rollout without a reward.
        solved_from: the least score of a solved rollout.
    """

    rounds: int
    scores: Sequence[np.ndarray]
    solved_from: float = 1.0

    @property
    def solved(self) -> np.ndarray:
        """(K,) int64, how many rollouts of each are solved."""
        return np.array([np.count_nonzero(own >= self.solved_from) for own in self.scores])

    @property
    def variance(self) -> np.ndarray:
        """(K,) variance of the scores; 0 where none is known."""
        known = [own[~np.isnan(own)] for own in self.scores]
        return np.array([own.var() if len(own) else 0.0 for own in known])


class InRounds(Allocator):
    """Divides the rollouts of a step in rounds; `Rounds` is the loop, which trainers run by themselves.

    One of your own is a subclass with `more`, and perhaps `kept`. Prompts that the rails chose get `n_rollouts` at
    once, and no more.
    """

    in_rounds: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__(min_rollouts=1)

    def values(self, rates: Rates, sizes: np.ndarray) -> np.ndarray:
        """All alike: nothing is divided before the first round has shown something."""
        return np.zeros((len(rates.alpha), len(sizes)))

    @abstractmethod
    def more(self, seen: Seen, mean: int) -> np.ndarray:
        """Rollouts of each of K prompts in the next round, (K,) int64, the first one included; all 0: no round more.

        Args:
            seen: what the rounds before have shown.
            mean: how many rollouts of a prompt are trained on, on the average.
        """

    def kept(self, scores: np.ndarray, mean: int) -> np.ndarray:
        """Which rollouts of a group are trained on, by its scores (n,): indices, in order. All of them."""
        return np.arange(len(scores))
