"""Options, declared once: a keyword-only argument says type, bounds and default, the docstring's line says what it is.

`Share`, `Count`, ... are types with bounds. `checked` makes a constructor check what it is given against them;
listings, documents and saved states read the same declaration (`options_of`). An error names option, range and value.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from rollwise.errors import ConfigError
from rollwise.moved import present_names


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


@dataclass(frozen=True)
class Range:
    """The bounds of a number, both included unless `open_low`."""

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False


Share = Annotated[float, Range(0.0, 1.0)]
PositiveShare = Annotated[float, Range(0.0, 1.0, open_low=True)]
Positive = Annotated[float, Range(0.0, 1e12, open_low=True)]
Weight = Annotated[float, Range(0.0, 1e6)]
Count = Annotated[int, Range(1)]
CountOrZero = Annotated[int, Range(0)]
CountFromTwo = Annotated[int, Range(2)]

_FAR = 1e6
_NO_OPTIONS = ("pool", "options")  # arguments of a method's constructor that no user would look for among its options
_PLAIN = (bool, int, float, str, NoneType)
_PLURAL = {int: "whole numbers", float: "numbers", str: "texts"}


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

    @property
    def plain(self) -> bool:
        """Whether its values are numbers, texts, None, or tuples of them: these are saved as they are."""
        return all(base in _PLAIN or get_origin(kind) in (Literal, tuple) for kind, base, _ in self._kinds)

    @property
    def _kinds(self) -> list[tuple[Any, Any, Range | None]]:
        """The members of its type, if that is a union: each with what it is without bounds, and the bounds."""
        whole = self.type
        members = get_args(whole) if get_origin(whole) in (Union, UnionType) else (whole,)
        found = []
        for kind in members:
            bounds = next((extra for extra in getattr(kind, "__metadata__", ()) if isinstance(extra, Range)), None)
            found.append((kind, get_args(kind)[0] if bounds else kind, bounds))
        return found

    def describe(self) -> str:
        """Its type and bounds in words.

        >>> Option("n", Count | None, None, "").describe(), Option("way", Literal["up", "down"], "up", "").describe()
        ('a whole number >= 1 or None', "'up' or 'down'")
        """
        *first, last = [words for kind in self._kinds for words in _describe(*kind)]
        return f"{', '.join(first)} or {last}" if first else last

    def check(self, value: Any) -> Any:
        """`value` as the type has it; `ConfigError` for one out of its type or bounds."""
        choices = [one for kind, _, _ in self._kinds if get_origin(kind) is Literal for one in get_args(kind)]
        if any(value is one or (isinstance(value, str) and value == one) for one in choices):
            return value
        if value is None and any(base is NoneType for _, base, _ in self._kinds):
            return value
        for _, base, bounds in self._kinds:
            if base is float and bounds is not None:
                return check_number(self.name, value, low=bounds.low, high=bounds.high, open_low=bounds.open_low)
            if base is int and bounds is not None:
                return check_whole(self.name, value, least=int(bounds.low))
        if all(base in (bool, NoneType) or get_origin(kind) is Literal for kind, base, _ in self._kinds):
            if bool in [base for _, base, _ in self._kinds] and isinstance(value, bool | np.bool_):
                return bool(value)
            raise ConfigError(f"{self.name} must be {self.describe()}, got {value!r}")
        return value


def _interval(bounds: Range) -> str:
    """In words; bounds so far away that they only keep out nonsense are not named.

    >>> _interval(Range(0.0, 1.0)), _interval(Range(0.0, 1e12, open_low=True)), _interval(Range(-1e12, 1e12))
    ('a number in [0, 1]', 'a number > 0', 'a number')
    """
    if bounds.high < _FAR:
        return f"a number in {'(' if bounds.open_low else '['}{bounds.low:g}, {bounds.high:g}]"
    return "a number" if bounds.low <= -_FAR else f"a number {'>' if bounds.open_low else '>='} {bounds.low:g}"


def _describe(kind: Any, base: Any, bounds: Range | None) -> list[str]:
    if bounds is not None and base is int:
        return [f"a whole number >= {bounds.low:g}"]
    if bounds is not None:
        return [_interval(bounds)]
    if get_origin(kind) is Literal:
        return [repr(one) for one in get_args(kind)]
    if base is NoneType:
        return ["None"]
    if get_origin(kind) is list or (get_origin(kind) is tuple and get_args(kind)[1:] == (...,)):
        return [f"a list of {_PLURAL.get(get_args(kind)[0], 'values')}"]
    if get_origin(kind) is dict:
        return ["a mapping"]
    names = {bool: "True or False", int: "a whole number", float: "a number", str: "a text"}
    return [names.get(base) or (str(kind) if get_args(kind) else str(getattr(kind, "__name__", kind)))]


def options_of(kind: type) -> dict[str, Option]:
    """The options that a class's constructor declares, by name, in order.

    >>> class Window:
    ...     def __init__(self, *, length: Count = 5) -> None: ...
    >>> {name: option.default for name, option in options_of(Window).items()}
    {'length': 5}
    """
    home = next(base for base in kind.__mro__ if "__init__" in vars(base))
    return _declared(inspect.unwrap(vars(home)["__init__"]), inspect.getdoc(home) or "")


def keyword_options(kind: type) -> dict[str, Any]:
    """The same options with their defaults alone (`inspect.Parameter.empty` for those without one)."""
    return {name: option.default for name, option in options_of(kind).items()}


@functools.cache
def constructor_names(kind: type) -> tuple[str, ...]:
    """The arguments that a class's constructor takes by name, and its bases' where it passes others on.

    >>> class Base:
    ...     def __init__(self, *, seed: int = 0) -> None: ...
    >>> class Window(Base):
    ...     def __init__(self, *, length: Count = 5, **more: object) -> None: ...
    >>> constructor_names(Window)
    ('length', 'seed')
    """
    names: dict[str, None] = {}
    for base in kind.__mro__:
        if "__init__" not in vars(base) or base is object:
            continue
        _, *parameters = inspect.signature(vars(base)["__init__"]).parameters.values()
        names |= {p.name: None for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return tuple(names)


@functools.cache
def _declared(init: Callable[..., None], doc: str = "") -> dict[str, Option]:
    lines = {name: " ".join(text.split()) for name, text in _ARGUMENT.findall(doc.partition("\nArgs:\n")[2] + "\n\n")}
    return {
        p.name: Option(p.name, _type_of(p.annotation, init), p.default, lines.get(p.name, ""))
        for p in inspect.signature(init).parameters.values()
        if p.kind is p.KEYWORD_ONLY
    }


def _type_of(annotation: Any, init: Callable[..., None]) -> Any:
    """An annotation's type, bounds included; `Any`, which is not checked, for a name that only type checkers import."""
    written = SimpleNamespace(__annotations__={"it": annotation})
    try:
        return get_type_hints(written, init.__globals__, include_extras=True)["it"]
    except NameError:
        return Any


_ARGUMENT = re.compile(r"^ {4}(\w+): (.*?)(?=^ {4}\S|^\S|^\s*$)", re.MULTILINE | re.DOTALL)


def checked(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor that checks its options first, and keeps the plain ones in `self.__dict__["given_options"]`.

    A constructor that calls its base's adds the base's options, those that it fixes included.
    """

    @functools.wraps(init)
    def wrapper(self: Any, *args: Any, **given: Any) -> None:
        declared, known = _declared(init), constructor_names(self.__class__)
        given = present_names(given, known)
        unknown = [name for name in given if name not in known]
        check_options(type(self).__name__, unknown, [name for name in known if name not in _NO_OPTIONS])
        given = {name: declared[name].check(value) if name in declared else value for name, value in given.items()}
        kept = self.__dict__.setdefault("given_options", {})
        kept |= {name: given.get(name, option.default) for name, option in declared.items() if option.plain}
        init(self, *args, **given)

    return wrapper
