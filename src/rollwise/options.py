"""Options: checks where they enter, and things made by name. An error names the option, its range and the value."""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
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


def check_name(what: str, name: object, known: Iterable[str]) -> None:
    """`ConfigError` for a name that is not known, with the nearest that is.

    >>> check_name("gate", "mixt", ["mixed", "variance"])
    Traceback (most recent call last):
    rollwise.errors.ConfigError: unknown gate 'mixt' (did you mean 'mixed'?); known are mixed, variance
    """
    names = list(known)
    if name not in names:
        raise ConfigError(f"unknown {what} {name!r}{did_you_mean(name, names)}; known are {', '.join(names)}")


def check_options(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """`ConfigError` for an option that `what` does not have, with the nearest that it has.

    >>> check_options("task 'countdown'", ["level"], ["levels", "style"])
    Traceback (most recent call last):
    rollwise.errors.ConfigError: task 'countdown' has no option 'level' (did you mean 'levels'?); it has levels, style
    """
    names = list(known)
    for name in given:
        if name not in names:
            listed = ", ".join(names) or "none"
            raise ConfigError(f"{what} has no option {name!r}{did_you_mean(name, names)}; it has {listed}")


def keyword_options(kind: type) -> dict[str, Any]:
    """The keyword-only arguments of a class and their defaults (`inspect.Parameter.empty` for those without one).

    >>> class Window:
    ...     def __init__(self, *, length: int = 5) -> None: ...
    >>> keyword_options(Window)
    {'length': 5}
    """
    return {p.name: p.default for p in inspect.signature(kind).parameters.values() if p.kind is p.KEYWORD_ONLY}


def make_named(what: str, registry: Mapping[str, type[Any]], name: str, options: Mapping[str, Any]) -> Any:
    """A dataclass of `registry` by its name, whose fields are its options.

    Raises:
        ConfigError: an unknown name or option, or a value out of range.
    """
    check_name(what, name, registry)
    check_options(f"{what} {name!r}", options, [field.name for field in fields(registry[name])])
    return registry[name](**options)


def check_mapping(what: str, values: Any, kind: type | None = None) -> Mapping[str, Any]:
    """`values`, if they are a mapping, and of the fields of a dataclass, those that must be given among them."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"{what} must be a mapping, got {values!r}")
    if kind is not None:
        known = {f.name: f for f in fields(kind)}
        check_options(what, values, known)
        needed = [n for n, f in known.items() if f.default is MISSING and f.default_factory is MISSING]
        missing = [name for name in needed if name not in values]
        if missing:
            raise ConfigError(f"{what}: {missing[0]!r} must be given")
    return values
