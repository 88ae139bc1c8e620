"""Numbers as the page says them."""

from __future__ import annotations

import math
from collections.abc import Sequence

# More rewards than this are counted instead of listed.
MOST_REWARDS = 16


def count(number: int, noun: str) -> str:
    """A number with its noun, in the plural where it should be.

    >>> count(1, "seed"), count(1200, "seed")
    ('1 seed', '1,200 seeds')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def percent(share: float) -> str:
    """A share as percent.

    >>> percent(0.625)
    '62.5 %'
    """
    return f"{100 * float(share):.1f} %"


def format_rewards(rewards: Sequence[float | None]) -> str:
    """The rewards as a short line; many of them as mean and count.

    >>> format_rewards([1.0, 0.0, None, 0.25])
    '1, 0, failed, 0.25'
    """
    if not rewards:
        return "none"
    if len(rewards) <= MOST_REWARDS:
        return ", ".join("failed" if reward is None else f"{reward:.3g}" for reward in rewards)
    valid = [reward for reward in rewards if reward is not None and math.isfinite(reward)]
    mean = f"mean {sum(valid) / len(valid):.3g} of {len(valid)}" if valid else "no valid reward"
    return f"{mean} ({len(rewards) - len(valid)} failed)" if len(valid) < len(rewards) else mean
