"""Categories that a method makes itself: clusters of embeddings, quantiles of difficulty, alone or within columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rollwise.curricula.families.strata import sample_of
from rollwise.estimators.clusters import kmeans, nearest
from rollwise.pool import PromptPool


def cluster_limits(pool: PromptPool, k: int, ties: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """K centroids (K, d) of a sample of the column `embedding`, drawn by the prompts' tie-breakers (N,)."""
    points = pool.require("embedding", "SEC with clusters", "add it, or give category=... or quantiles=...")
    return kmeans(points[sample_of(ties, pool.ids)], k, rng)


def quantile_limits(difficulty: np.ndarray, k: int) -> np.ndarray:
    """The least difficulties (K - 1,) of all of K quantiles but the first; fewer where values repeat.

    >>> quantile_limits(np.array([0.4, 0.1, 0.3, 0.2]), 2).tolist()
    [0.3]
    """
    level = np.sort(difficulty)
    first = level[np.arange(1, k) * len(level) // k]
    return np.unique(first[first > level[0]])


def divide_by_limits(pool: PromptPool, limits: np.ndarray) -> tuple[list[str], np.ndarray]:
    """The categories that limits make, centroids (K, d) or difficulties (K,), and each prompt's (N,)."""
    if limits.ndim == 2:
        return [f"cluster {i}" for i in range(len(limits))], nearest(pool.columns["embedding"], limits)
    of = np.searchsorted(limits, pool.columns["difficulty"], side="right")
    return [f"difficulty {i}" for i in range(len(limits) + 1)], of


def crossed(
    outer: tuple[Sequence[str], np.ndarray], inner: tuple[Sequence[str], np.ndarray]
) -> tuple[list[str], np.ndarray]:
    """The combinations of two divisions that some prompt has, as names, and each prompt's (N,).

    >>> names, of = crossed((["x", "y"], np.array([0, 1, 0])), (["low", "high"], np.array([0, 1, 0])))
    >>> names, of.tolist()
    (['x | low', 'y | high'], [0, 1, 0])
    """
    pairs, of = np.unique(outer[1] * len(inner[0]) + inner[1], return_inverse=True)
    names = [f"{outer[0][pair // len(inner[0])]} | {inner[0][pair % len(inner[0])]}" for pair in pairs.tolist()]
    return names, of.reshape(-1)
