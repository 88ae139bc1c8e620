"""Overrides in the grammar of Hydra, by which verl reads its command line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_./@+$-][\w./:@+-]*")
_WORDS = {"true", "false", "null", "none", "inf", "nan"}


def override(key: str, value: Any) -> str:
    r"""One word of a command line.

    >>> override("trainer.logger", ["console", "wandb"]), override("++data.rollwise.options", {"uniform": 0.5})
    ('trainer.logger=[console,wandb]', '++data.rollwise.options={uniform:0.5}')
    >>> override("model", "it's 1, 2")
    "model='it\\'s 1, 2'"
    """
    return f"{key}={_value(value)}"


def _value(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{name}:{_value(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_value, value)) + "]"
    if not isinstance(value, str):
        return str(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS and not value.endswith(":"):
        return value
    return "'" + re.sub(r"(\\*)'", r"\1\1\\'", value) + "'"


def flattened(options: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Nested options as dotted keys: `{"trainer": {"nnodes": 2}}` is `trainer.nnodes`. An empty mapping is a value."""
    for name, value in options.items():
        key = f"{before}{name}"
        if isinstance(value, Mapping) and value:
            yield from flattened(value, f"{key}.")
        else:
            yield key, value
