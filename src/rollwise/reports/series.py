"""Preparing a run's columns for drawing: smoothing, thinning, and filling cumulative counts. Pure functions."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# A panel is some 400 pixels wide: more points than this cost file size and show nothing.
MOST_POINTS = 800
# Below this many points a moving mean hides more than it shows.
FEWEST_TO_SMOOTH = 10
WIDEST_WINDOW = 501


def finite_pair(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The entries at which both (S,) arrays are finite."""
    kept = np.isfinite(x) & np.isfinite(y)
    return x[kept], y[kept]


def smoothing_window(points: int) -> int:
    """The moving mean's width for a line of `points`: about a twentieth, odd; 1, so none, for a short line."""
    if points < FEWEST_TO_SMOOTH:
        return 1
    return min(max(3, points // 20 | 1), WIDEST_WINDOW)


def moving_mean(y: FloatArray, window: int) -> FloatArray:
    """Centred mean over `window` (odd) entries along axis 0, (S, ...); at the ends over the entries there are.

    >>> moving_mean(np.array([0.0, 3.0, 0.0, 0.0]), 3).tolist()
    [1.5, 1.0, 1.0, 0.0]
    """
    half = window // 2
    total = np.concatenate([np.zeros_like(y[:1]), np.cumsum(y, axis=0)])
    at = np.arange(len(y))
    low, high = np.maximum(at - half, 0), np.minimum(at + half + 1, len(y))
    count = (high - low).reshape((-1,) + (1,) * (y.ndim - 1))
    return np.asarray((total[high] - total[low]) / count, dtype=np.float64)


def thin_extremes(x: FloatArray, y: FloatArray, most: int = MOST_POINTS) -> tuple[FloatArray, FloatArray]:
    """At most about `most` points of a raw (S,) line: each bin's lowest and highest, so that no spike is lost."""
    if len(x) <= most:
        return x, y
    edges = np.linspace(0, len(x), most // 2 + 1).astype(np.int64)
    picks = [(a + int(np.argmin(y[a:b])), a + int(np.argmax(y[a:b]))) for a, b in pairwise(edges)]
    kept = np.unique(np.array(picks))
    return x[kept], y[kept]


def thin_evenly(x: FloatArray, y: FloatArray, most: int = MOST_POINTS) -> tuple[FloatArray, FloatArray]:
    """At most `most` evenly spaced points of a smoothed line, (S,) and (S, ...); the first and last are kept."""
    if len(x) <= most:
        return x, y
    kept = np.linspace(0, len(x) - 1, most).round().astype(np.int64)
    return x[kept], y[kept]


def time_unit(longest: float) -> tuple[str, int]:
    """The unit for times of up to `longest` seconds, and its seconds."""
    return ("s", 1) if longest < 180 else ("min", 60) if longest < 10800 else ("h", 3600)
