"""Scores by distance from a success rate sought."""

from __future__ import annotations

import numpy as np


def nearness(rates: np.ndarray, target: float) -> np.ndarray:
    """1 - |p - p*|, (K,), the greatest for the rate nearest to the target; BOTS, section 3.4, the right way round.

    The Gaussian belief's samples can lie outside [0, 1]; what is 1 or more away from the target scores 0.

    >>> nearness(np.array([0.25, 0.5, 1.0]), 0.5).tolist()
    [0.75, 1.0, 0.5]
    """
    return np.maximum(1.0 - np.abs(rates - target), 0.0)
