"""Checks of options where they enter: the error names option, range and value."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from rollwise.errors import ConfigError


def check_whole(name: str, value: Any, *, least: int) -> int:
    """`value` as an int; `ConfigError` unless it is a whole number >= `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ConfigError(f"{name} must be a whole number >= {least}, got {value!r}")
    return int(value)


def check_text(name: str, value: Any) -> str:
    """`value`, if it is a text of at least one character; else `ConfigError`."""
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{name} must be a text, got {value!r}")
    return value


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """A hint for the end of an error about an unknown name: the nearest known one, or nothing.

    >>> did_you_mean("setps", ["steps", "seed"])
    " (did you mean 'steps'?)"
    """
    close = difflib.get_close_matches(str(name), list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def check_ids(name: str, value: Any) -> list[str]:
    """`value` as a list; `ConfigError` unless it is several texts."""
    listed = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else None
    if listed is None or not all(isinstance(one, str) for one in listed):
        raise ConfigError(f"{name} must be a list of prompt ids, got {str(value)[:80]}")
    return listed


def check_number(name: str, value: Any, *, low: float, high: float, open_low: bool = False) -> float:
    """`value` as a float; `ConfigError` unless it is a number in [low, high] (or (low, high] if `open_low`)."""
    good = isinstance(value, int | float | np.number) and not isinstance(value, bool) and not math.isnan(float(value))
    if not good or value > high or value < low or (open_low and value == low):
        bracket = "(" if open_low else "["
        raise ConfigError(f"{name} must be a number in {bracket}{low:g}, {high:g}], got {value!r}")
    return float(value)
