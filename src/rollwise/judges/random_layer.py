"""A hidden layer with fixed random weights: what makes a linear fit to vectors that of a small network."""

from __future__ import annotations

import numpy as np

from rollwise.errors import ConfigError
from rollwise.rng import stream_generator


class RandomLayer:
    """Features of vectors: the positive and the negative parts of random projections; of the order of 1 in length.

    Args:
        d: numbers of a vector, standardised.
        hidden: how many features; an even number.
        seed: of the weights.

    Raises:
        ConfigError: `hidden` is odd.

    >>> RandomLayer(d=3, hidden=4, seed=0)(np.ones((2, 3))).shape
    (2, 4)
    """

    def __init__(self, d: int, hidden: int, seed: int) -> None:
        check_hidden(hidden)
        rng = stream_generator(seed, "hidden layer")
        self.directions = rng.standard_normal((d, hidden // 2)) / np.sqrt(d)
        self.offsets = rng.standard_normal(hidden // 2)
        self.scale = np.sqrt(2.0 / hidden)

    def __call__(self, z: np.ndarray) -> np.ndarray:
        """(K, hidden) of vectors z (K, d)."""
        at = z @ self.directions + self.offsets
        return np.asarray(np.concatenate([np.maximum(at, 0.0), np.maximum(-at, 0.0)], axis=1) * self.scale)


def check_hidden(hidden: int) -> None:
    """`ConfigError` for an odd number of features."""
    if hidden % 2:
        raise ConfigError(f"hidden must be even, as its features come in pairs, got {hidden!r}")
