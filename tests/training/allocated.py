"""An allocator that gives out these sizes, for trainers of toys."""

from typing import Any

import numpy as np

import rollwise as rw
from rollwise.allocators import Rates

SIZES = (2, 1, 8, 5)


class InTurn(rw.Allocator):
    """`SIZES`, one after another, to four prompts."""

    def __init__(self, *, first: int = 0, **bounds: Any) -> None:
        super().__init__(min_rollouts=1, max_rollouts=8, **bounds)
        self.first = first

    def values(self, rates: Rates, sizes: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def allocate(self, rates: Rates, mean: int) -> np.ndarray:
        assert (len(rates.alpha), mean) == (4, 4)
        return np.roll(np.array(SIZES), self.first)


class EachPrompt(InTurn):
    """The same, every prompt of the same weight."""

    weight = "prompt"


class Steep(rw.Allocator):
    """As many as may be to the first prompt, then to the second, ..."""

    def values(self, rates: Rates, sizes: np.ndarray) -> np.ndarray:
        return np.arange(len(rates.alpha), 0, -1)[:, None] * np.ones(len(sizes))
