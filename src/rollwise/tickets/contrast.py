"""How much greater the squared advantages of chosen prompts are than those of prompts drawn at random."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rollwise.tickets.evidence import Evidence

RANDOM_LANES = frozenset({"uniform", "explore", "rail-explore"})
"""Lanes whose prompts are not chosen by what is believed of them."""
_MEMORY = 256.0
"""Groups that are remembered: after as many of a kind, 1/e of what was known of the kind is left."""
_UNIT = 2.0**-32
_LEAST = 8.0
"""Groups of either kind, as many as these are remembered, before there is a ratio."""


class Contrast:
    """Means of A^2 = the variance of the scores: of all groups that are trained on, and of those drawn at random.

    The groups of a step count when it ends, so their order plays no part.

    >>> contrast = Contrast()
    >>> contrast.note_squares(np.array([0.25] * 24 + [0.0625] * 8), np.array([False] * 24 + [True] * 8))
    >>> contrast.end_step()
    >>> round(contrast.ratio, 3), round(contrast.scale, 3)  # (24 / 4 + 8 / 16) / 32 = 0.203125 of all, 0.0625 at random
    (3.25, 0.555)
    """

    def __init__(self) -> None:
        self.sums = np.zeros(4)  # of A^2, and of groups: all, and at random
        self.new = np.zeros(4, dtype=np.int64)  # the same of this step; A^2 in units of `_UNIT`, so that sums are exact

    def note(self, evidence: Evidence) -> None:
        """Take groups in; those to measure or screen, and those whose variance is unknown, do not count."""
        known = evidence.judged & evidence.known & ~evidence.probe & (evidence.count > 1)
        self.note_squares(evidence.variance[known], evidence.at_random[known])

    def note_squares(self, squares: np.ndarray, at_random: np.ndarray) -> None:
        """Mean A^2 of groups (M,), and which of them were drawn at random (M,)."""
        units = np.round(squares / _UNIT).astype(np.int64)
        of_random = units[at_random]
        self.new += np.array([units.sum(), len(units), of_random.sum(), len(of_random)], dtype=np.int64)

    def end_step(self) -> None:
        """Let the groups of this step count, and the older ones less."""
        total, n, random, n_random = self.new.tolist()
        fade = np.exp(-np.array([n, n, n_random, n_random]) / _MEMORY)
        self.sums = fade * self.sums + (total * _UNIT, n, random * _UNIT, n_random)
        self.new[:] = 0

    @property
    def ratio(self) -> float | None:
        """Mean A^2 of all over that of the groups at random; None while too few are known, or none has contrast."""
        total, n, random, n_random = self.sums.tolist()
        if min(n, n_random) < _LEAST or random <= 0.0 or total <= 0.0:
            return None
        return float((total / n) / (random / n_random))

    @property
    def scale(self) -> float:
        """What advantages are multiplied by so that their mean square is that of random prompts; 1 while unknown."""
        return 1.0 if self.ratio is None else 1.0 / math.sqrt(self.ratio)

    def metrics(self) -> dict[str, float]:
        """`contrast_ratio`, once it is known."""
        return {} if self.ratio is None else {"contrast_ratio": self.ratio}

    def state(self) -> dict[str, list[Any]]:
        """The sums, JSON-safe; empty before any group."""
        return {"sums": self.sums.tolist(), "new": self.new.tolist()} if self.sums.any() or self.new.any() else {}

    def load(self, state: Mapping[str, Any]) -> None:
        """Take back `state`."""
        self.sums = np.array(state.get("sums", [0.0] * 4), dtype=np.float64)
        self.new = np.array(state.get("new", [0] * 4), dtype=np.int64)
