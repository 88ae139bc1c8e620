"""Reads a constructor's options, checks what it is given, and makes objects by name."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, ClassVar, TypeVar, get_type_hints

from rollwise.errors import ConfigError
from rollwise.moved import present_names
from rollwise.options.checks import check_name, check_options
from rollwise.options.option import Option
from rollwise.options.schedule import written

T = TypeVar("T")

_NOT_OPTIONS = ("pool", "options")  # arguments of a method's constructor that no user would look for among its options


class Declared:
    """A base of classes whose options are the keyword-only arguments of `__init__`, declared there and nowhere else.

    They are checked before `__init__` runs.
    """

    unsaved: ClassVar[frozenset[str]] = frozenset()
    """Options that the saved state holds in another form, or that make no difference."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "__init__" in vars(cls):
            cls.__init__ = checked(cls.__init__)  # type: ignore[method-assign]

    def saved_options(self) -> dict[str, Any]:
        """The options it was made with that are numbers, texts, None or lists of them, JSON-safe."""
        given = self.__dict__.get("given_options", {})
        return {k: list(v) if isinstance(v, tuple) else written(v) for k, v in given.items() if k not in self.unsaved}


def checked(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor that checks its options first, and keeps the plain ones in `self.__dict__["given_options"]`.

    A constructor that calls its base's adds the base's options, those that it fixes included.
    """

    @functools.wraps(init)
    def wrapper(self: Any, *args: Any, **given: Any) -> None:
        home = next((base for base in type(self).__mro__ if vars(base).get("__init__") is wrapper), type(self))
        declared, known = _declared(init, home), constructor_names(home)
        given = present_names(given, known)
        if not _takes_any(home):
            unknown = [name for name in given if name not in known]
            check_options(type(self).__name__, unknown, [name for name in known if name not in _NOT_OPTIONS])
        given = {name: declared[name].check(value) if name in declared else value for name, value in given.items()}
        kept = self.__dict__.setdefault("given_options", {})
        kept |= {name: given.get(name, option.default) for name, option in declared.items() if option.plain}
        init(self, *args, **given)

    return wrapper


def check_fields(made: Any) -> None:
    """Check the fields of a dataclass against their types; call it in `__post_init__`.

    Raises:
        ConfigError: a value out of its type or bounds.
    """
    for name, option in options_of(type(made)).items():
        object.__setattr__(made, name, option.check(getattr(made, name)))


def make_named(what: str, registry: Mapping[str, Callable[..., T]], name: str, options: Mapping[str, Any]) -> T:
    """What a registry has under a name, made with these options.

    Raises:
        ConfigError: an unknown name or option, or a value out of range.
    """
    check_name(what, name, registry)
    return make(f"{what} {name!r}", registry[name], options)


def make(what: str, maker: Callable[..., T], options: Mapping[str, Any]) -> T:
    """What `maker`, a class or a function, makes with these options.

    Raises:
        ConfigError: an option that it does not have, a value out of range, or an option missing that has no default.
    """
    if not _takes_any(maker):
        check_options(what, options, constructor_names(maker))
    check_given(what, keyword_options(maker), options)
    return maker(**options)


def check_given(what: str, defaults: Mapping[str, Any], options: Mapping[str, Any], remedy: str = "") -> None:
    """Refuse options that lack one without a default (`inspect.Parameter.empty`); `remedy` ends the message."""
    for name, default in defaults.items():
        if default is inspect.Parameter.empty and name not in options:
            raise ConfigError(f"{what}: {name!r} must be given{remedy}")


def options_of(kind: Callable[..., Any]) -> dict[str, Option]:
    """The options that a class's constructor, or a function, declares, by name, in order.

    >>> from rollwise.options import Count
    >>> class Window:
    ...     def __init__(self, *, length: Count = 5) -> None: ...
    >>> {name: option.default for name, option in options_of(Window).items()}
    {'length': 5}
    """
    return _declared(inspect.unwrap(kind.__init__) if isinstance(kind, type) else kind, kind)  # type: ignore[misc]


def keyword_options(kind: Callable[..., Any]) -> dict[str, Any]:
    """The same options with their defaults alone (`inspect.Parameter.empty` for those without one)."""
    return {name: option.default for name, option in options_of(kind).items()}


def constructor_names(kind: Callable[..., Any]) -> tuple[str, ...]:
    """The arguments that a class's constructor takes by name, and its bases' where it passes others on.

    >>> class Base:
    ...     def __init__(self, *, seed: int = 0) -> None: ...
    >>> class Window(Base):
    ...     def __init__(self, *, length: int = 5, **more: object) -> None: ...
    >>> constructor_names(Window)
    ('length', 'seed')
    """
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return tuple(dict.fromkeys(p.name for p in _parameters(kind) if p.kind in by_name))


def _takes_any(kind: Callable[..., Any]) -> bool:
    return any(p.kind is p.VAR_KEYWORD for p in _parameters(kind))


@functools.cache
def _parameters(kind: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    """A constructor's parameters; one that takes any others has its base's in their place, as far as there is one."""
    if not isinstance(kind, type):
        return tuple(inspect.signature(kind).parameters.values())
    found: list[inspect.Parameter] = []
    for base in kind.__mro__:
        if "__init__" in vars(base) and base is not object:
            _, *here = inspect.signature(vars(base)["__init__"]).parameters.values()
            found = [*(p for p in found if p.kind is not p.VAR_KEYWORD), *here]
            if not any(p.kind is p.VAR_KEYWORD for p in here):
                break
    return tuple(found)


@functools.cache
def _declared(init: Callable[..., Any], kind: Callable[..., Any]) -> dict[str, Option]:
    """The keyword-only arguments of `init`, with what the docstrings of `kind` and its bases say of them."""
    bases = kind.__mro__[:-1] if isinstance(kind, type) else (kind,)
    names: dict[str, Any] = {}  # a dataclass's constructor has annotations of its bases, from their modules
    lines: dict[str, str] = {}
    for base in reversed(bases):
        names |= vars(sys.modules[base.__module__]) if isinstance(base, type) else {}
        arguments = inspect.cleandoc(base.__doc__ or "").partition("\nArgs:\n")[2]
        lines |= {name: " ".join(text.split()) for name, text in _ARGUMENT.findall(arguments + "\n\n")}
    names |= getattr(inspect.unwrap(init), "__globals__", {})  # `object` has none
    return {
        p.name: Option(p.name, _type_of(p.annotation, names), p.default, lines.get(p.name, ""))
        for p in inspect.signature(init).parameters.values()
        if p.kind is p.KEYWORD_ONLY
    }


def _type_of(annotation: Any, names: dict[str, Any]) -> Any:
    """An annotation's type, bounds included; `Any`, which is not checked, for a name that only type checkers import."""
    written = SimpleNamespace(__annotations__={"it": annotation})
    try:
        return get_type_hints(written, names, include_extras=True)["it"]
    except NameError:
        return Any


_ARGUMENT = re.compile(r"^ {4}(\w+): (.*?)(?=^ {4}\S|^\S|^\s*$)", re.MULTILINE | re.DOTALL)
