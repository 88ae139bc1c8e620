"""Pure functions from belief to score."""

from collections.abc import Callable

import numpy as np

from rollwise.acquisition.target import nearness
from rollwise.acquisition.variance import bernoulli_variance, moment_variance, success_bias

ACQUISITIONS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "target": lambda mean, uncertainty, variance: nearness(mean, 0.5),
    "uncertainty": lambda mean, uncertainty, variance: uncertainty,
    "variance": lambda mean, uncertainty, variance: variance,
}
"""Name -> a function of a belief's mean, its uncertainty and the variance expected of a rollout, (N,) each."""

__all__ = ["ACQUISITIONS", "bernoulli_variance", "moment_variance", "nearness", "success_bias"]
