"""Exponential moving averages of a prompt's scores."""

from __future__ import annotations

import numpy as np


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
