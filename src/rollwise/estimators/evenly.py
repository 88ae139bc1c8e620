"""A part of many, taken evenly."""

from __future__ import annotations

import numpy as np


def evenly(n: int, most: int) -> np.ndarray:
    """At most `most` of the numbers 0 to n - 1, evenly spaced from 0 on, int64; all of them if there are no more.

    >>> evenly(10, 4).tolist(), evenly(3, 4).tolist()
    ([0, 2, 5, 7], [0, 1, 2])
    """
    count = min(n, most)
    return (np.arange(count) * n) // max(count, 1)
