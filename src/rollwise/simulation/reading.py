"""Plain values from YAML, checked: an error names the nearest name that is known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any

from rollwise.errors import ConfigError


def check_known(what: str, name: Any, known: Iterable[str]) -> None:
    """Raise `ConfigError` for a name that is not known, with the nearest that is.

    >>> check_known("learner", "learning_rat", ["learning_rate", "noise"])
    Traceback (most recent call last):
    rollwise.errors.ConfigError: learner: unknown 'learning_rat'; did you mean 'learning_rate'?
    """
    names = list(known)
    if name in names:
        return
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    remedy = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(names)}"
    raise ConfigError(f"{what}: unknown {name!r}; {remedy}")


def check_mapping(what: str, values: Any, kind: type | None = None) -> Mapping[str, Any]:
    """`values`, if they are a mapping, and of the fields of a dataclass, those that must be given among them."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"{what} must be a mapping, got {values!r}")
    if kind is not None:
        known = {f.name: f for f in fields(kind)}
        for name in values:
            check_known(what, name, known)
        needed = [n for n, f in known.items() if f.default is MISSING and f.default_factory is MISSING]
        missing = [name for name in needed if name not in values]
        if missing:
            raise ConfigError(f"{what}: {missing[0]!r} must be given")
    return values
