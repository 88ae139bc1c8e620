"""Make what a registry names: policies of the decoder, stopping rules of self-consistency."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from rollwise.errors import ConfigError


def make_named(kind: str, registry: Mapping[str, type[Any]], name: str, options: Mapping[str, Any]) -> Any:
    """A dataclass of `registry` by its name; `ConfigError` for an unknown name or option, or a value out of range.

    Args:
        kind: What they are, for messages.
        registry: Name -> dataclass, whose fields are its options.
        name: Which.
        options: Its own.
    """
    if name not in registry:
        raise ConfigError(f"unknown {kind} {name!r}; known are {', '.join(registry)}")
    known = [field.name for field in fields(registry[name])]
    wrong = sorted(set(options) - set(known))
    if wrong:
        raise ConfigError(f"{kind} {name!r} has no option {wrong[0]!r}; it has {', '.join(known) or 'none'}")
    return registry[name](**options)
