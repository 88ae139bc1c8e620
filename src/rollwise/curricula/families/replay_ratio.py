"""A replay ratio that follows what replaying is worth.

Ours: Frontier-Curriculum (section 6) asks for "adaptive replay schedules", and gives no rule.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

KEPT = 0.9
"""Share of the past groups' weight that a step keeps: it remembers about 10 steps."""
PRIOR = 8.0
"""This many groups of either lane count as mixed as often as all groups together."""
LEAST = 0.25
"""Of the ratio, what is left of it where replayed groups are never mixed: they go on being measured."""


class AdaptiveRatio:
    """rho_t = rho * (share of replayed groups that are mixed) / (share of uniform ones), in [rho / 4, most].

    Both shares are of the last ten steps or so (weights fall by 0.9 a step), shrunk to the share of all groups by a
    prior of 8. Where replayed prompts have contrast twice as often as uniform ones, twice as many are replayed.

    >>> ratio = AdaptiveRatio()
    >>> ratio.add(np.array([True, True, False, False]), np.array([True, True, False, True]))
    >>> ratio.settle()
    >>> round(ratio(0.1, most=0.3), 4)                       # (2 + 8 * 3/4) / (2 + 8) over (1 + 8 * 3/4) / (2 + 8)
    0.1143
    """

    def __init__(self) -> None:
        self.counts = np.zeros((2, 2))  # groups, and mixed ones; of uniform prompts, and of replayed ones
        self.now = np.zeros((2, 2))  # the same, of the step that is under way

    def add(self, replayed: np.ndarray, mixed: np.ndarray) -> None:
        """Count groups of this step: (M,) bool whether each was replayed, and whether its rollouts differed."""
        lane = replayed.astype(np.int64)
        self.now += [np.bincount(lane, minlength=2), np.bincount(lane, weights=mixed, minlength=2)]

    def settle(self) -> None:
        """End the step."""
        self.counts = KEPT * self.counts + self.now
        self.now = np.zeros((2, 2))

    def __call__(self, ratio: float, *, most: float | None) -> float:
        """The present ratio, where the constant one is `ratio`; that one where `most` is None."""
        groups, mixed = self.counts
        if most is None or not mixed.sum():
            return ratio
        share = (mixed + PRIOR * mixed.sum() / groups.sum()) / (groups + PRIOR)
        return float(np.clip(ratio * share[1] / share[0], LEAST * ratio, max(most, ratio)))

    def state_dict(self) -> dict[str, list[list[float]]]:
        """JSON-safe."""
        return {"counts": self.counts.tolist(), "now": self.now.tolist()}

    def load_state_dict(self, state: Mapping[str, list[list[float]]]) -> None:
        """Take back `state_dict`."""
        self.counts, self.now = np.array(state["counts"], dtype=float), np.array(state["now"], dtype=float)
