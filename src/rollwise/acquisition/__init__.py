"""Pure functions from belief to score."""

from __future__ import annotations

from collections.abc import Callable

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


def nearness(rates: np.ndarray, target: float) -> np.ndarray:
    """1 - |p - p*|, (K,), the greatest for the rate nearest to the target; BOTS, section 3.4, the right way round.

    The Gaussian belief's samples can lie outside [0, 1]; what is 1 or more away from the target scores 0.

    >>> nearness(np.array([0.25, 0.5, 1.0]), 0.5).tolist()
    [0.75, 1.0, 0.5]
    """
    return np.maximum(1.0 - np.abs(rates - target), 0.0)


def mixed_probability(alpha: np.ndarray, beta: np.ndarray, rollouts: int) -> np.ndarray:
    """V = 1 - B(a+G, b) / B(a, b) - B(a, b+G) / B(a, b), (K,): that G rollouts are mixed, if p ~ Beta(a, b); MaPP.

    The ratios are products, B(a+G, b) / B(a, b) = prod (a+i) / (a+b+i) over i < G, and are summed as logarithms.

    >>> mixed_probability(np.array([1.0, 3.0]), np.array([1.0, 1.0]), 2).round(12).tolist()  # 2 E[p(1-p)]: 1/3, 3/10
    [0.333333333333, 0.3]
    """
    all_right, all_wrong = np.zeros(len(alpha)), np.zeros(len(alpha))
    with np.errstate(divide="ignore"):  # of a rate that is 0 or 1 to the last digit: log 0
        for size in (alpha + beta + i for i in range(rollouts)):  # log (a+i) / (a+b+i) = log1p(-b / (a+b+i))
            all_right += np.log1p(-beta / size)
            all_wrong += np.log1p(-alpha / size)
    likely, unlikely = np.maximum(all_right, all_wrong), np.minimum(all_right, all_wrong)
    return np.asarray(np.maximum(-np.expm1(likely) - np.exp(unlikely), 0.0))


def _target(mean: np.ndarray, uncertainty: np.ndarray, variance: np.ndarray) -> np.ndarray:
    return nearness(mean, 0.5)


def _uncertainty(mean: np.ndarray, uncertainty: np.ndarray, variance: np.ndarray) -> np.ndarray:
    return uncertainty


def _variance(mean: np.ndarray, uncertainty: np.ndarray, variance: np.ndarray) -> np.ndarray:
    return variance


ACQUISITIONS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "target": _target,
    "uncertainty": _uncertainty,
    "variance": _variance,
}
"""Name -> a function of a belief's mean, its uncertainty and the variance expected of a rollout, (N,) each."""

__all__ = ["ACQUISITIONS", "bernoulli_variance", "mixed_probability", "moment_variance", "nearness", "success_bias"]
