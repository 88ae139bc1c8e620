"""Priority of a prompt by the variance of its rewards: the mean squared advantage of a group.

Prioritized Replay, section 2: with binary rewards the mean squared advantage is p(1-p). With any other rewards in
[0, 1] it is the variance, of which p(1-p) is only the upper bound: a group that always earns 0.1 has p(1-p) = 0.09 but
teaches nothing.
"""

from __future__ import annotations

import numpy as np


def bernoulli_variance(p: np.ndarray) -> np.ndarray:
    """Omega = p(1-p), (K,); Prioritized Replay, section 2.

    >>> bernoulli_variance(np.array([0.75, 0.25])).tolist()
    [0.1875, 0.1875]
    """
    return np.asarray(p * (1.0 - p))


def moment_variance(mean: np.ndarray, square: np.ndarray) -> np.ndarray:
    """E[r^2] - E[r]^2, (K,), from first and second moments of scores; equals p(1-p) when scores are 0 or 1.

    >>> moment_variance(np.array([0.75, 0.1]), np.array([0.75, 0.01])).round(12).tolist()
    [0.1875, 0.0]
    """
    return np.asarray(np.maximum(square - mean * mean, 0.0))


def success_bias(mean: np.ndarray, bias: float) -> np.ndarray:
    """`bias` where the mean score is at least a half, else 0, (K,); Prioritized Replay, section 4.4."""
    return np.where(mean >= 0.5, bias, 0.0)
