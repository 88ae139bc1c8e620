"""How much greater the squared advantages of chosen prompts are than those of prompts drawn at random."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rollwise.tickets.evidence import Evidence

RANDOM_LANES = frozenset({"uniform", "explore", "rail-explore"})
"""Lanes whose prompts are not chosen by what is believed of them."""
_MEMORY = 256.0
"""Groups that are remembered: after as many of a kind, 1/e of what was known of the kind is left."""
_LEAST = 8.0
"""Groups of either kind, as many as these are remembered, before there is a ratio."""


class Contrast:
    """Running means of A^2 = the variance of the scores: of all groups that are trained on, and of those at random.

    >>> contrast = Contrast()
    >>> contrast.note_squares(np.array([0.25] * 24 + [0.0625] * 8), np.array([False] * 24 + [True] * 8))
    >>> round(contrast.ratio, 3), round(contrast.scale, 3)  # (24 / 4 + 8 / 16) / 32 = 0.203125 of all, 0.0625 at random
    (3.25, 0.555)
    """

    def __init__(self) -> None:
        self.sums = np.zeros(4)  # of A^2, and of groups: all, and at random

    def note(self, evidence: Evidence) -> None:
        """Take groups in; those to measure or screen, and those whose variance is unknown, do not count."""
        known = evidence.judged & evidence.known & ~evidence.probe & (evidence.count > 1)
        self.note_squares(evidence.variance[known], evidence.at_random[known])

    def note_squares(self, squares: np.ndarray, at_random: np.ndarray) -> None:
        """Mean A^2 of groups (M,), and which of them were drawn at random (M,)."""
        for i, of in ((0, squares), (2, squares[at_random])):
            fade = math.exp(-len(of) / _MEMORY)
            self.sums[i : i + 2] = fade * self.sums[i : i + 2] + (of.sum(), len(of))

    @property
    def ratio(self) -> float | None:
        """Mean A^2 of all over that of the groups at random; None while too few are known, or none has contrast."""
        total, n, random, n_random = self.sums.tolist()
        if min(n, n_random) < _LEAST or random <= 0.0 or total <= 0.0:
            return None
        return (total / n) / (random / n_random)

    @property
    def scale(self) -> float:
        """What advantages are multiplied by so that their mean square is that of random prompts; 1 while unknown."""
        return 1.0 if self.ratio is None else 1.0 / math.sqrt(self.ratio)

    def metrics(self) -> dict[str, float]:
        """`contrast_ratio`, once it is known."""
        return {} if self.ratio is None else {"contrast_ratio": self.ratio}

    def state(self) -> list[float]:
        """The four sums."""
        return [float(x) for x in self.sums]

    def load(self, state: Sequence[float]) -> None:
        """Take back `state`."""
        self.sums = np.array([float(x) for x in state])
