"""The interface of a belief about prompts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rollwise.options import Declared


class Belief(Declared, ABC):
    """A belief about every prompt's score, kept in columns that its owner allocates as `columns_spec` says.

    Outcomes are added as they come, and update the belief once a step. Slots are an array (K,) or all of them.
    """

    @property
    @abstractmethod
    def columns_spec(self) -> Mapping[str, tuple[type, Any]]:
        """Name -> (dtype, default) of what is remembered of each prompt."""

    @abstractmethod
    def use(self, columns: Any) -> None:
        """Keep the belief in these columns from now on."""

    needs_scores: bool = True
    """Whether it learns from each score; if not, a group's count and mean are enough."""

    @abstractmethod
    def add(self, slots: np.ndarray, scores: Sequence[np.ndarray]) -> None:
        """Note the scores, M arrays (k,) with k > 0, of M distinct prompts (M,)."""

    @abstractmethod
    def forget_and_learn(self, forgetting: float) -> np.ndarray | None:
        """End the step: update the belief with the noted scores. Returns the slots that changed; None: perhaps all."""

    @abstractmethod
    def mean(self, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Expected mean score of the slots, (K,)."""

    @abstractmethod
    def uncertainty(self, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Standard deviation of the belief about the mean score, (K,)."""

    @abstractmethod
    def reward_variance(self, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Expected variance of one rollout's score, (K,): how much a group is expected to teach."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        """A mean score of each slot drawn from the belief, (K,): step 1 of Thompson sampling."""

    @abstractmethod
    def effective_size(self) -> np.ndarray:
        """How much evidence each belief rests on, (N,)."""
