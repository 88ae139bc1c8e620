"""`Option`: an argument as its constructor declares it. `Share`, `Count` and the like are types with bounds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np

from rollwise.errors import ConfigError
from rollwise.options.checks import Filled, Range, check_text, did_you_mean, shown
from rollwise.options.schedule import Schedule

Number = Annotated[float, Range()]
NotNegative = Annotated[float, Range(0.0)]
Share = Annotated[float, Range(0.0, 1.0)]
PositiveShare = Annotated[float, Range(0.0, 1.0, open_low=True)]
InnerShare = Annotated[float, Range(0.0, 1.0, open_low=True, open_high=True)]
Positive = Annotated[float, Range(0.0, 1e12, open_low=True)]
Weight = Annotated[float, Range(0.0, 1e6)]
Count = Annotated[int, Range(1)]
CountOrZero = Annotated[int, Range(0)]
CountFromTwo = Annotated[int, Range(2)]
Temperature = Annotated[float, Range(0.0, 10.0, open_low=True)]
NonEmptyText = Annotated[str, Filled()]

_PLAIN = (bool, int, float, str, NoneType, Schedule)
_NAMES = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Path: "a path",
    Schedule: "a schedule",
}
_PLURAL = {int: "whole numbers", float: "numbers", str: "texts"}
_SEQUENCES = (list, tuple, Sequence)


@dataclass(frozen=True)
class _Kind:
    """One member of a type that may be a union."""

    base: Any
    bounds: Range | Filled | None

    @classmethod
    def of(cls, written: Any) -> _Kind:
        bounds = next(
            (extra for extra in getattr(written, "__metadata__", ()) if isinstance(extra, Range | Filled)), None
        )
        return cls(get_args(written)[0] if bounds else written, bounds)

    @property
    def items(self) -> set[Any]:
        """The types of what a list holds; empty of anything else."""
        return {*get_args(self.base)} - {...} if get_origin(self.base) in _SEQUENCES else set()

    @property
    def item(self) -> _Kind | None:
        """What a list holds, where that is checked: numbers with bounds, or a choice of texts."""
        item = _Kind.of(next(iter(self.items))) if len(self.items) == 1 else None
        return item if item and (item.bounds is not None or get_origin(item.base) is Literal) else None

    @property
    def length(self) -> int | None:
        """Of a list of a fixed length."""
        args = get_args(self.base)
        return len(args) if get_origin(self.base) is tuple and ... not in args else None

    @property
    def plain(self) -> bool:
        return self.base in _PLAIN or get_origin(self.base) in (Literal, tuple)

    def words(self) -> list[str]:
        """What values it takes; of a choice, one text each."""
        if self.bounds is not None:
            return [self.bounds.words(whole=self.base is int)]
        if get_origin(self.base) is Literal:
            return [repr(one) for one in get_args(self.base)]
        if self.base is NoneType:
            return ["None"]
        if item := self.item:
            words = (word.removeprefix("a ") for word in item.words())
            plural = (w if w[0] in "'\"" else w.replace("number", "numbers").replace("text", "texts") for w in words)
            return [f"{self.length or 'one or more'} {'' if item.bounds else 'of '}{', '.join(plural)}"]
        if len(self.items) == 1:
            (inner,) = self.items
            return [f"{self.length or 'a list of'} {_PLURAL.get(inner, 'values')}"]
        if get_origin(self.base) in (dict, Mapping):
            return ["a mapping"]
        if get_origin(self.base) is Callable:
            return ["a function"]
        other = str(self.base) if get_args(self.base) else str(getattr(self.base, "__name__", self.base))
        return [_NAMES.get(self.base) or other]

    def take(self, value: Any) -> Any:
        """`value` as this type has it; `ConfigError` for one out of its type or bounds. Other classes take anything."""
        if self.bounds is not None:
            return self.bounds.check("it", value, whole=self.base is int)
        if get_origin(self.base) is Literal:
            good = any(value is one or (isinstance(value, str) and value == one) for one in get_args(self.base))
        elif self.base in (NoneType, str, Path):
            good = isinstance(value, os.PathLike if self.base is Path else self.base)
        elif self.base is bool:
            good = isinstance(value, bool | np.bool_)
            value = bool(value) if good else value
        elif get_origin(self.base) is dict:
            good = isinstance(value, Mapping) and all(isinstance(key, str) and key for key in value)
        elif item := self.item:
            good = isinstance(value, list | tuple) and len(value) > 0 and self.length in (None, len(value))
            value = tuple(item.take(one) for one in value) if good else value
        else:
            good = True
        if not good:
            raise ConfigError(f"{shown(value)} is of another type")
        return value


@dataclass(frozen=True)
class Option:
    """A keyword-only argument, as its constructor declares it.

    Attributes:
        name: what it is called.
        type: its annotation, bounds included.
        default: `inspect.Parameter.empty` where it must be given.
        help: its line of the docstring.
    """

    name: str
    type: Any
    default: Any
    help: str

    @cached_property
    def plain(self) -> bool:
        """Whether its values are numbers, texts, None, or lists of them: these are saved as they are."""
        return all(kind.plain for kind in self._kinds)

    @property
    def range(self) -> Range | None:
        """The bounds of its number, where it takes one number with bounds."""
        return next((kind.bounds for kind in self._kinds if isinstance(kind.bounds, Range)), None)

    @cached_property
    def _kinds(self) -> tuple[_Kind, ...]:
        members = get_args(self.type) if get_origin(self.type) in (Union, UnionType) else (self.type,)
        return tuple(_Kind.of(member) for member in members)

    @property
    def _number(self) -> Any:
        """The type of a schedule's values: the option's own numbers."""
        return next(one for one in get_args(self.type) if _Kind.of(one).bounds is not None)

    def describe(self) -> str:
        """Its type and bounds in words.

        >>> Option("n", Count | None, None, "").describe(), Option("way", Literal["up", "down"], "up", "").describe()
        ('a whole number >= 1 or None', "'up' or 'down'")
        """
        kinds = [kind for kind in self._kinds if kind.base is not str or Path not in [k.base for k in self._kinds]]
        *first, last = [words for kind in kinds for words in kind.words()]
        return f"{', '.join(first)} or {last}" if first else last

    def check(self, value: Any) -> Any:
        """`value` as the type has it; `ConfigError` for one out of its type or bounds.

        >>> Option("share", Share, 0.5, "").check(2)
        Traceback (most recent call last):
        rollwise.errors.ConfigError: share must be a number in [0, 1], got 2
        """
        bases = [kind.base for kind in self._kinds]
        if Schedule in bases and isinstance(value, Schedule | Mapping | list | tuple):
            number = Option(f"{self.name} in a schedule", self._number, self.default, self.help)
            return Schedule.read(self.name, value, number.check)
        for kind in self._kinds:
            if kind.base is Schedule:
                continue
            try:
                return kind.take(value)
            except ConfigError:
                continue
        if isinstance(value, Mapping) and any(get_origin(base) is dict for base in bases):
            for key in value:
                check_text(f"a name in {self.name}", key)
        bounds = ((kind.bounds, kind.base is int) for kind in self._kinds if isinstance(kind.bounds, Range))
        far = next((f",{words}" for bound, whole in bounds if (words := bound.beyond(value, whole=whole))), "")
        raise ConfigError(f"{self.name} must be {self.describe()}{far}, got {shown(value)}{self.nearest(value)}")

    def nearest(self, value: Any) -> str:
        """A hint for the end of an error: the nearest of its choices; empty where it has none, or none is near.

        >>> Option("rule", Literal["adaptive", "full"], "full", "").nearest("adaptve")
        " (did you mean 'adaptive'?)"
        """
        choices = [one for kind in self._kinds if get_origin(kind.base) is Literal for one in get_args(kind.base)]
        return did_you_mean(value, [one for one in choices if isinstance(one, str)]) if isinstance(value, str) else ""
