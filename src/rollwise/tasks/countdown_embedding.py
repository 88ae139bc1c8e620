"""The arithmetic shape of a Countdown puzzle as a vector (Frontier-Curriculum RLOO, appendix B.2)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rollwise.errors import TaskError

_PADDED = 4


def countdown_embedding(nums: Sequence[int], target: int) -> list[float]:
    """The 14-dimensional e(x) of appendix B.2, of length 1: puzzles of like shape have a dot product near 1.

    phi(x) = [t/100, n/4, min/100, max/100, mean/100, std/100, S/300, (S - t)/300, |S - t|/300, share of odd numbers,
    the four numbers in rising order/100], padded with zeros, over its length. The paper does not say which standard
    deviation; it is the population's. Its puzzles have at most four numbers; of more, the four least are listed.

    Raises:
        TaskError: no numbers.

    >>> [round(x, 3) for x in countdown_embedding([3, 1], 4)[:3]]
    [0.036, 0.446, 0.009]
    """
    n = len(nums)
    if not n:
        raise TaskError("a puzzle without numbers has no embedding")
    total = sum(nums)
    mean = total / n
    std = math.sqrt(sum((a - mean) ** 2 for a in nums) / n)
    padded = [*sorted(nums), *[0] * _PADDED][:_PADDED]
    phi = [target / 100, n / 4, min(nums) / 100, max(nums) / 100, mean / 100, std / 100]
    phi += [total / 300, (total - target) / 300, abs(total - target) / 300, sum(a % 2 for a in nums) / n]
    phi += [a / 100 for a in padded]
    length = math.sqrt(sum(x * x for x in phi))
    return [x / length for x in phi]
