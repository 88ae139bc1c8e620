"""Checks of single values and names. An error names the option, what it must be, and the value."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields
from typing import Any

import numpy as np

from rollwise.errors import ConfigError

_FAR = 1e6  # bounds as far away as this only keep out nonsense, and are not named
MOST = 2**53
"""The greatest step or count that is taken: beyond it float64 skips numbers."""


def shown(value: Any) -> str:
    """`value` as one short line for an error message; its type where Python has no text of it.

    >>> shown(["a", 1]), shown(10**5000)
    ("['a', 1]", 'a value of type int')
    """
    try:
        text = " ".join(repr(value).split())
    except Exception:  # an int of more than 4,300 digits, or a foreign object
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."


def as_floats(given: Any) -> np.ndarray:
    """What a function of a user's gave, as float64; an empty array (0, 0) where it holds anything but numbers."""
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        return np.empty((0, 0))


def is_number(value: Any, *, whole: bool = False) -> bool:
    """Whether it is a real number, or a whole one; True and False are none, nor is a time of numpy's."""
    kinds = int | np.integer if whole else int | float | np.integer | np.floating
    return isinstance(value, kinds) and not isinstance(value, bool | np.timedelta64)


@dataclass(frozen=True)
class Range:
    """The bounds of a number, both included unless they are open."""

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False

    def words(self, *, whole: bool = False) -> str:
        """What a number within the bounds is called.

        >>> Range(0.0, 1.0).words(), Range(0.0, 1e12, open_low=True).words(), Range(1).words(whole=True)
        ('a number in [0, 1]', 'a number > 0', 'a whole number >= 1')
        """
        what = "a whole number" if whole else "a number"
        if self.high < _FAR:
            left, right = "(" if self.open_low else "[", ")" if self.open_high else "]"
            return f"{what} in {left}{self.low:g}, {self.high:g}{right}"
        return what if self.low <= -_FAR else f"{what} {'>' if self.open_low else '>='} {self.low:g}"

    def schema(self) -> dict[str, float]:
        """The bounds as JSON Schema has them.

        >>> Range(0.0, 1.0, open_low=True).schema()
        {'exclusiveMinimum': 0.0, 'maximum': 1.0}
        """
        low = "exclusiveMinimum" if self.open_low else "minimum"
        high = "exclusiveMaximum" if self.open_high else "maximum"
        return ({low: self.low} if self.low > -_FAR else {}) | ({high: self.high} if self.high < _FAR else {})

    def check(self, name: str, value: Any, *, whole: bool = False) -> Any:
        """`value` as a float, or as an int if `whole`; `ConfigError` unless it is such a number within the bounds."""
        good = is_number(value, whole=whole)
        if good and self.low <= value <= self._most(whole):  # NaN is not
            good = not (self.open_low and value == self.low) and not (self.open_high and value == self.high)
            with suppress(OverflowError):  # an int that no float can hold
                if good:
                    return int(value) if whole else float(value)
        far = self.beyond(value, whole=whole)
        raise ConfigError(f"{name} must be {self.words(whole=whole)}{far}, got {shown(value)}")

    def beyond(self, value: Any, *, whole: bool = False) -> str:
        """The bound, for the end of `words`, where a number is beyond one that is too far away to be named there.

        >>> Range(0.0, 1e12).beyond(1e308), Range(1).beyond(2**70, whole=True), Range(0.0, 1.0).beyond(2)
        (' and at most 1e+12', ' and at most 2^53', '')
        """
        most = self._most(whole)
        far = is_number(value, whole=whole) and value > most >= _FAR
        return f" and at most {'2^53' if most == MOST else f'{most:g}'}" if far else ""

    def _most(self, whole: bool) -> float:
        return min(self.high, MOST) if whole else self.high


@dataclass(frozen=True)
class Filled:
    """The bounds of a text: it has at least one character."""

    def words(self, *, whole: bool = False) -> str:
        """What such a text is called."""
        return "a text"

    def check(self, name: str, value: Any, *, whole: bool = False) -> Any:
        """`value`, if it is a text that is not empty; else `ConfigError`."""
        if not isinstance(value, str) or not value:
            raise ConfigError(f"{name} must be a text, got {shown(value)}")
        return value


def check_whole(name: str, value: Any, *, least: int) -> int:
    """`value` as an int; `ConfigError` unless it is a whole number >= `least`, and at most 2^53."""
    return int(Range(least).check(name, value, whole=True))


def check_number(name: str, value: Any, *, low: float, high: float, open_low: bool = False) -> float:
    """`value` as a float; `ConfigError` unless it is a number in [low, high] (or (low, high] if `open_low`)."""
    return float(Range(low, high, open_low).check(name, value))


def check_text(name: str, value: Any) -> str:
    """`value`, if it is a text of at least one character; else `ConfigError`."""
    return str(Filled().check(name, value))


def check_ids(name: str, value: Any) -> list[str]:
    """`value` as a list; `ConfigError` unless it is several texts."""
    ids = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else None
    if ids is None or not all(isinstance(one, str) for one in ids):
        raise ConfigError(f"{name} must be a list of ids, got {shown(value)}")
    return ids


def several(value: Any) -> bool:
    """Whether it can be gone through, and is no text, which would be read letter by letter.

    >>> several(["p1"]), several("p1"), several(1)
    (True, False, False)
    """
    return not isinstance(value, str) and (hasattr(value, "__iter__") or hasattr(value, "__getitem__"))


def listed(value: Any) -> list[Any]:
    """An option that is one value or several as a list: None as an empty one.

    >>> listed("a"), listed(["a", "b"]), listed(None)
    (['a'], ['a', 'b'], [])
    """
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """A hint for the end of an error about an unknown name: the nearest known one, or nothing.

    >>> did_you_mean("setps", ["steps", "seed"]), did_you_mean("BOTS", ["bots", "uniform"])
    (" (did you mean 'steps'?)", " (did you mean 'bots'?)")
    """
    names = {one.lower(): one for one in known}
    close = difflib.get_close_matches(str(name).lower(), names, n=1)
    return f" (did you mean {names[close[0]]!r}?)" if close else ""


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


def check_mapping(what: str, values: Any, kind: type | None = None) -> Mapping[str, Any]:
    """`values`, if they are a mapping, and of the fields of a dataclass, those that must be given among them."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"{what} must be a mapping, got {shown(values)}")
    if kind is not None:
        known = {f.name: f for f in fields(kind)}
        check_options(what, values, known)
        needed = [n for n, f in known.items() if f.default is MISSING and f.default_factory is MISSING]
        missing = [name for name in needed if name not in values]
        if missing:
            raise ConfigError(f"{what}: {missing[0]!r} must be given")
    return values
