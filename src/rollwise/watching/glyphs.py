"""Characters that a terminal can show, and the small pictures made of them.

Sparklines are the few lines below and not a plotting library: a chart of one line's height is all that fits beside
its numbers at 80 x 24, and nothing has to be installed for it on the machine that trains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Glyphs:
    """What to draw with.

    Attributes:
        ramp: eight heights, low to high.
        done: one column of a bar that is done.
        open: one that is not.
        dot: stands between two facts.
        to: stands between a prompt and its completion.
        more: for text that was cut.
    """

    ramp: str
    done: str
    open: str
    dot: str
    to: str
    more: str

    @property
    def ascii(self) -> bool:
        """Whether they are all ASCII."""
        return self.ramp.isascii()


BLOCKS = Glyphs(ramp="▁▂▃▄▅▆▇█", done="━", open="─", dot="·", to="→", more="…")
ASCII = Glyphs(ramp="_.,:-=+#", done="#", open=".", dot="|", to="->", more="~")


def sparkline(
    values: Sequence[float], width: int, glyphs: Glyphs, *, low: float | None = None, high: float | None = None
) -> str:
    """N values in at most `width` columns, each the mean of as many values; NaN is a blank.

    Args:
        values: (N,), oldest first.
        width: the columns there are.
        glyphs: what to draw with.
        low: the value at the foot; the lowest column by default.
        high: the value at the top; the highest column by default. If all are the same, they are drawn half high.

    >>> sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8, BLOCKS), sparkline([1, 1, 5, 7], 2, BLOCKS), sparkline([3, 3], 9, ASCII)
    ('▁▂▃▄▅▆▇█', '▁█', '--')
    """
    columns = _means(values, width)
    known = [value for value in columns if not math.isnan(value)]
    if not known:
        return " " * len(columns)
    foot = min(known) if low is None else low
    span = (max(known) if high is None else high) - foot
    top = len(glyphs.ramp) - 1
    heights = [math.nan if math.isnan(value) else (value - foot) / span if span > 0 else 0.5 for value in columns]
    return "".join(" " if math.isnan(h) else glyphs.ramp[round(min(max(h, 0.0), 1.0) * top)] for h in heights)


def _means(values: Sequence[float], width: int) -> list[float]:
    """`values` in at most `width` parts, as even as can be, and each part's mean over those that are known."""
    n = min(width, len(values))
    columns = []
    for i in range(n):
        part = [v for v in values[i * len(values) // n : (i + 1) * len(values) // n] if not math.isnan(v)]
        columns.append(sum(part) / len(part) if part else math.nan)
    return columns
