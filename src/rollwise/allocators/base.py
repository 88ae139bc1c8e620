"""An allocator: it says how many rollouts each prompt of a batch gets, of a budget for all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from rollwise.allocators.greedy import most_valuable
from rollwise.errors import ConfigError
from rollwise.options import Count, Declared


@dataclass(frozen=True, slots=True)
class Rates:
    """What is believed of the success rates of K prompts.

    Attributes:
        alpha: (K,) of a Beta distribution with the belief's mean and standard deviation.
        beta: (K,) likewise.
        last: (K,) the share of solved rollouts when each was last visited; NaN where it never was.
        have: (K,) int64, rollouts that each one's group has already, of a screening; None: none has any.
    """

    alpha: np.ndarray
    beta: np.ndarray
    last: np.ndarray
    have: np.ndarray | None = None

    @property
    def mean(self) -> np.ndarray:
        """(K,)."""
        return np.asarray(self.alpha / (self.alpha + self.beta))

    @property
    def unseen(self) -> np.ndarray:
        """(K,) bool."""
        return np.asarray(np.isnan(self.last))

    def least(self, low: int) -> np.ndarray:
        """(K,) int64, the smallest group of each: `low`, and at least one rollout more than it has already."""
        have = np.zeros(len(self.alpha), dtype=np.int64) if self.have is None else self.have
        return np.maximum(low, np.where(have > 0, have + 1, 0))


class Allocator(Declared, ABC):
    """Divides a step's rollouts among its prompts; the sum is always the budget, so steps keep their size.

    An allocator of your own is a subclass with `values`, the worth of each prompt's next rollout. Its options are
    keyword-only arguments of `__init__`: checked, listed, and compared when a state is loaded.

    Args:
        min_rollouts: every prompt gets at least this many.
        max_rollouts: none gets more; None: four times the mean.
        belief: whose success rates: "method", the curriculum's own belief where it has one; "last", each prompt's last
            group, with a uniform prior.
        weight: how groups of different size weigh in the loss: "rollout", by their rollouts; "prompt", each the same;
            None: as its paper has it.
    """

    in_rounds: ClassVar[bool] = False
    """Whether the rollouts of a step are made in rounds, see `InRounds`."""

    predicts: ClassVar[bool] = False
    """Whether the rates are those of a Gaussian process over the pool's column `embedding`, as in `VIP`."""

    weight: Literal["rollout", "prompt"] = "rollout"
    """How groups of different size weigh in the loss; of a class, as its paper has it."""

    def __init__(
        self,
        *,
        min_rollouts: Count = 2,
        max_rollouts: Count | None = None,
        belief: Literal["method", "last"] = "method",
        weight: Literal["rollout", "prompt"] | None = None,
    ) -> None:
        if max_rollouts is not None and max_rollouts < min_rollouts:
            raise ConfigError(f"max_rollouts must be at least min_rollouts={min_rollouts}, got {max_rollouts}")
        self.min_rollouts, self.max_rollouts, self.belief = min_rollouts, max_rollouts, belief
        if weight is not None:
            self.weight = weight

    def saved_options(self) -> dict[str, Any]:
        saved = super().saved_options()
        return {name: value for name, value in saved.items() if name != "weight" or value is not None}

    @abstractmethod
    def values(self, rates: Rates, sizes: np.ndarray) -> np.ndarray:
        """What one more rollout is worth to K prompts, (K, S), where they have `sizes` (S,) already.

        A row may not rise: then taking the greatest of all values is the best division.
        """

    def values_from(self, rates: Rates, first: np.ndarray, high: int) -> np.ndarray:
        """`values` of each prompt's next rollouts, (K, S), if it has `first` (K,) of at most `high` already."""
        low = int(first.min(initial=high))
        values = np.asarray(self.values(rates, np.arange(low, high)))
        wanted = (len(first), high - low)
        if values.dtype.kind not in "fiu" or values.shape != wanted or np.isnan(values).any():
            raise ConfigError(
                f"{type(self).__name__}.values must give numbers of shape {wanted}, one for each prompt and size, none "
                f"of them NaN, got {values.dtype} of shape {values.shape}"
            )
        columns = np.minimum(np.arange(high - low) + (first - low)[:, None], high - low - 1)
        return np.take_along_axis(values, columns, axis=1)

    def most(self, mean: int) -> int:
        """The greatest number of rollouts of a prompt, where `mean` is their mean."""
        return 4 * mean if self.max_rollouts is None else self.max_rollouts

    def bounds(self, mean: int) -> tuple[int, int]:
        """The least and the greatest number of rollouts of a prompt, where `mean` is their mean.

        Raises:
            ConfigError: the mean is outside.
        """
        low, high = self.min_rollouts, self.most(mean)
        if not low <= mean <= high:
            raise ConfigError(
                f"{type(self).__name__} gives each prompt {low} to {high} rollouts, and the mean is to be {mean}; "
                "change min_rollouts, max_rollouts or num_generations"
            )
        return low, high

    def allocate(self, rates: Rates, mean: int) -> np.ndarray:
        """Rollouts of each of K prompts, (K,) int64; their sum is K * `mean`.

        Raises:
            ConfigError: `mean` is outside the bounds.
        """
        low, high = self.bounds(mean)
        sizes, high = rates.least(low), min(high, len(rates.alpha) * mean)  # none gets more than there is
        values, left = self.values_from(rates, sizes, high), len(sizes) * mean - int(sizes.sum())
        return np.asarray(sizes + most_valuable(values, high - sizes, left))
