"""A belief kept as moving averages of a prompt's scores and of their squares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rollwise.estimators.belief import Belief


def ema(old: np.ndarray, new: np.ndarray, weight: float) -> np.ndarray:
    """`weight * new + (1 - weight) * old`; where `old` is NaN (never observed), `new` itself.

    Args:
        old: (K,) averages so far, NaN where there is none.
        new: (K,) new observations.
        weight: of the new observation, in (0, 1]. Prioritized Replay, section 5: alpha = 0.8.

    >>> ema(np.array([np.nan, 0.5]), np.array([1.0, 1.0]), 0.8).tolist()
    [1.0, 0.9]
    """
    return np.where(np.isnan(old), new, weight * new + (1.0 - weight) * old)


class AverageBelief(Belief):
    """First and second moment of a prompt's scores, averaged over visits; nothing is assumed about the rewards.

    A prompt never told is believed to have mean 0.5 and the greatest variance, 0.25, so that it gets its turn.
    """

    @property
    def columns_spec(self) -> Mapping[str, tuple[type, Any]]:
        """Mean and square (NaN: never told), groups seen, and what was told since the last step."""
        zero = (np.float64, 0.0)
        moments = dict.fromkeys(("mean", "square"), (np.float64, np.nan))
        return {**moments, **dict.fromkeys(("groups", "told_count", "told_sum", "told_square"), zero)}

    def use(self, columns: Any) -> None:
        self.columns: dict[str, np.ndarray] = {name: columns[name] for name in self.columns_spec}

    def add(self, slots: np.ndarray, scores: Sequence[np.ndarray]) -> None:
        self.columns["told_count"][slots] += [len(s) for s in scores]
        self.columns["told_sum"][slots] += [s.sum() for s in scores]
        self.columns["told_square"][slots] += [(s * s).sum() for s in scores]

    def forget_and_learn(self, forgetting: float) -> np.ndarray:
        c = self.columns
        told = np.flatnonzero(c["told_count"] != 0.0)
        for name, total in (("mean", "told_sum"), ("square", "told_square")):
            c[name][told] = ema(c[name][told], c[total][told] / c["told_count"][told], forgetting)
        c["groups"][told] += 1.0
        for name in ("told_count", "told_sum", "told_square"):
            c[name][told] = 0.0
        return told

    def mean(self, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        return np.asarray(np.nan_to_num(self.columns["mean"][slots], nan=0.5))

    def reward_variance(self, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        mean, square = self.columns["mean"][slots], self.columns["square"][slots]
        return np.asarray(np.nan_to_num(np.maximum(square - mean * mean, 0.0), nan=0.25))

    def uncertainty(self, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Standard error of the mean, (K,): one group of the greatest variance, 1/4, is taken as seen beforehand."""
        groups = self.columns["groups"][slots]
        variance = (groups * self.reward_variance(slots) + 0.25) / (groups + 1.0)
        return np.asarray(np.sqrt(variance / (groups + 1.0)))

    def sample(self, rng: np.random.Generator, slots: np.ndarray | slice = slice(None)) -> np.ndarray:
        mean = self.mean(slots)
        return np.asarray(mean + self.uncertainty(slots) * rng.standard_normal(len(mean)))

    def effective_size(self) -> np.ndarray:
        return self.columns["groups"]
