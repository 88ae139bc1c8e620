"""Numbers of an evaluation as they stand in tables and sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollwise.reports.comparison.words.sentences import NOTHING

Found = Mapping[str, Any]


def number(value: float | None, digits: int = 3) -> str:
    """A number, or a dash.

    >>> number(0.12345), number(None), number(1234.56, 1)
    ('0.123', '-', '1,234.6')
    """
    return NOTHING if value is None else f"{value:,.{digits}f}"


def spread(values: Found, digits: int) -> str:
    """`0.708 ± 0.012`."""
    after = "" if values["sd"] is None else f" ± {number(values['sd'], digits)}"
    return number(values["mean"], digits) + after


def share(values: Found) -> str:
    """`63 % ± 1 %`."""
    if values["mean"] is None:
        return NOTHING
    return _zero(f"{values['mean']:.0%}") + ("" if values["sd"] is None else f" ± {_zero(format(values['sd'], '.0%'))}")


def percent(values: Found) -> str:
    """`63 % [60 %, 66 %]`, of a share with its interval."""
    ends = (
        ""
        if values["low"] is None
        else f" [{_zero(format(values['low'], '.0%'))}, {_zero(format(values['high'], '.0%'))}]"
    )
    return NOTHING if values["value"] is None else _zero(f"{values['value']:.0%}") + ends


def difference(values: Found) -> str:
    """`-0.025 [-0.040, -0.010]`."""
    value, low, high = (None if v is None else round(v, 3) + 0.0 for v in (values[n] for n in ("value", "low", "high")))
    ends = "" if low is None else f" [{low:+.3f}, {high:+.3f}]"
    return NOTHING if value is None else f"{value:+.3f}{ends}"


def _zero(text: str) -> str:
    return text.replace("-0%", "0%").replace("%", " %")
