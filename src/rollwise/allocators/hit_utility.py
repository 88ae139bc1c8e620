"""HORA's rule (arXiv 2605.07114) without its pilots: each rollout where a prompt's first success is most likely."""

from __future__ import annotations

import numpy as np

from rollwise.allocators.base import Allocator, Rates
from rollwise.allocators.knapsack import beta_moment


class HitUtility(Allocator):
    """Gives each rollout to the prompt most likely to succeed with it first: greatest E[p (1-p)^l] after l rollouts.

    Ours, after HORA (arXiv 2605.07114), which `Hora` has as its paper. There, pilot rollouts come first, and the
    expectation is over Beta(1, 1) with their outcomes. Here it is over the curriculum's belief, and l counts all
    rollouts of this group; with `belief="last"` the last group stands for the pilots.
    """

    def values(self, rates: Rates, sizes: np.ndarray) -> np.ndarray:
        return beta_moment(rates.alpha[:, None], rates.beta[:, None], 1, sizes)
