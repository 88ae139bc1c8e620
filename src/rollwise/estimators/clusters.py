"""k-means: prompts grouped by their embeddings, where no categories are given."""

from __future__ import annotations

import numpy as np

_ROUNDING = 1e-12  # distances nearer than this, relative to their size, are equal: the lower centroid has the point
_CELLS = 1 << 22  # distances held at a time, which bounds the memory


def kmeans(points: np.ndarray, k: int, rng: np.random.Generator, *, iterations: int = 25) -> np.ndarray:
    """Up to k centroids (K, d) of points (M, d): k-means++ seeding, then Lloyd's iterations until nothing moves.

    An empty cluster is seeded anew with the point that is farthest from its own centroid. Where there are fewer
    distinct points than k, there are as many centroids as distinct points. The work is O(M k d) an iteration: give it
    a sample of a large pool, and every prompt its `nearest` centroid.

    >>> line = np.array([[0.0], [2.0], [10.0], [12.0]])
    >>> sorted(kmeans(line, 2, np.random.default_rng(0)).ravel().tolist())
    [1.0, 11.0]
    """
    origin = points.mean(axis=0)
    centred = points - origin
    centroids = _seeds(centred, k, rng)
    owner = np.full(len(centred), -1)
    for _ in range(iterations):
        before, owner = owner, nearest(centred, centroids)
        if np.array_equal(before, owner):
            break
        centroids = _means(centred, owner, centroids)
    owned = np.unique(nearest(centred, centroids))
    return np.asarray(centroids[owned] + origin)


def nearest(points: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    """The centroid (K, d) nearest to each of N points (N, d): indices (N,) int64; the lowest of several as near.

    What is equally near is decided with a tolerance: rounding in the products depends on where a row lies, and the
    group of a prompt must not.

    >>> nearest(np.array([[0.0], [5.0], [9.0]]), np.array([[0.0], [10.0]])).tolist()
    [0, 0, 1]
    """
    origin = centroids.mean(axis=0)
    centred = centroids - origin
    half = (centred * centred).sum(axis=1) / 2.0
    out = np.empty(len(points), dtype=np.int64)
    rows = max(1, _CELLS // max(centroids.shape))
    for start in range(0, len(points), rows):
        part = points[start : start + rows] - origin
        gap = half - part @ centred.T  # half the squared distance, less |x|^2 / 2
        size = (part * part).sum(axis=1) + half.max()
        out[start : start + rows] = np.argmax(gap <= (gap.min(axis=1) + _ROUNDING * size)[:, None], axis=1)
    return out


def _seeds(points: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """k-means++: each further seed is a point drawn in proportion to its squared distance from those before it."""
    chosen = [int(rng.integers(len(points)))]
    gap = _squared(points, chosen[0])
    while len(chosen) < k and gap.any():
        ends = np.cumsum(gap)
        at = int(np.searchsorted(ends, rng.random() * ends[-1], side="right"))
        chosen.append(min(at, int(np.flatnonzero(gap)[-1])))
        gap = np.minimum(gap, _squared(points, chosen[-1]))
    return np.asarray(points[chosen])


def _squared(points: np.ndarray, row: int) -> np.ndarray:
    away = points - points[row]
    return np.asarray((away * away).sum(axis=1))


def _means(points: np.ndarray, owner: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    """Each cluster's mean; the empty ones move to the points that lie farthest from their own centroids."""
    order = np.argsort(owner, kind="stable")
    owned, starts, count = np.unique(owner[order], return_index=True, return_counts=True)
    moved = centroids.copy()
    moved[owned] = np.add.reduceat(points[order], starts, axis=0) / count[:, None]
    empty = np.setdiff1d(np.arange(len(centroids)), owned)
    if len(empty):
        away = points - moved[owner]
        moved[empty] = points[np.argsort(-(away * away).sum(axis=1), kind="stable")[: len(empty)]]
    return moved
