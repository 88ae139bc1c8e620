"""How a comparison's numbers are written."""

from __future__ import annotations

import math

from rollwise.evaluation.bootstrap import Interval
from rollwise.evaluation.comparison.estimates import Difference, Relative, Share
from rollwise.evaluation.curves import AXES
from rollwise.runs.lines import scientific

NOTHING, NEVER = "-", "never"


def signed(value: float) -> str:
    """`+0.013`; a dash for NaN.

    >>> signed(0.0126), signed(-0.2)
    ('+0.013', '-0.200')
    """
    return NOTHING if math.isnan(value) else f"{value:+.3f}"


def beside_text(gain: float) -> str:
    """`0.013 above`, before what it is a gain over.

    >>> beside_text(0.0126), beside_text(-0.2), beside_text(0.0001)
    ('0.013 above', '0.200 below', 'equal to')
    """
    text = f"{abs(gain):.3f}"
    return "equal to" if text == "0.000" else f"{text} {'above' if gain > 0 else 'below'}"


def plain(value: float) -> str:
    """`0.363`; a dash for NaN."""
    return NOTHING if math.isnan(value) else f"{value:.3f}"


def with_spread(mean: float, sd: float, digits: int = 3) -> str:
    """`0.363 ± 0.012`; no spread for one seed.

    >>> with_spread(0.3634, 0.0117), with_spread(0.5, float("nan"))
    ('0.363 ± 0.012', '0.500')
    """
    if math.isnan(mean):
        return NOTHING
    return f"{mean:,.{digits}f}" if math.isnan(sd) else f"{mean:,.{digits}f} ± {sd:,.{digits}f}"


def ratio(value: float) -> str:
    """`0.72`; `never` where a score is not reached (the papers' "-"), and `n/a` where there is none to reach.

    >>> ratio(0.718), ratio(float("inf")), ratio(float("nan"))
    ('0.72', 'never', 'n/a')
    """
    return "n/a" if math.isnan(value) else NEVER if math.isinf(value) else f"{value:.2f}"


def difference_text(found: Difference | None, write: str = "+.3f") -> str:
    """`+0.013 [+0.003, +0.019]`; without brackets where there are too few seeds."""
    if found is None or math.isnan(found.mean):
        return NOTHING
    return f"{found.mean:{write}}" + interval_text(found.interval, write)


def interval_text(interval: Interval | None, write: str) -> str:
    """` [+0.003, +0.019]`, or nothing."""
    if interval is None or math.isinf(interval.low):  # never in any resample
        return ""
    ends = (NEVER if math.isinf(end) else f"{end:{write}}" for end in (interval.low, interval.high))
    return f" [{', '.join(ends)}]"


def both_text(found: Difference) -> str:
    """`t [+0.003, +0.019], bootstrap [+0.004, +0.018]`; nothing for too few seeds."""
    parts = (("t", found.t_interval), ("bootstrap", found.interval))
    return ", ".join(f"{name}{interval_text(one, '+.3f')}" for name, one in parts if one is not None)


def p_text(p: float) -> str:
    """`p = 0.012`; nothing where it is not known.

    >>> p_text(0.0123), p_text(1e-9)
    ('p = 0.012', 'p below 0.001')
    """
    return "" if math.isnan(p) else "p below 0.001" if p < 0.001 else f"p = {p:.3f}"


def relative_text(found: Relative) -> str:
    """`0.72 [0.51, never]`."""
    return ratio(found.value) + interval_text(found.interval, ".2f")


def share_text(found: Share | None) -> str:
    """`62 % [40 %, 81 %]`."""
    if found is None:
        return NOTHING
    text = f"{found.value:.0%}{interval_text(found.interval, '.0%')}"
    return text.replace("-0%", "0%").replace("%", " %")


def amount(value: float, axis: str) -> str:
    """`218,743 generated tokens`."""
    if axis == "wall_s":
        return f"{value:,.0f} s of training"
    return f"{scientific(value) if axis == 'flops' else f'{value:,.0f}'} {AXES[axis]}"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever reads best."""
    if math.isnan(seconds):
        return NOTHING
    return (
        f"{seconds:.3g} s"
        if seconds < 180
        else f"{seconds / 60:.1f} min"
        if seconds < 10800
        else f"{seconds / 3600:.1f} h"
    )
