"""Overrides in the grammar of Hydra, by which verl reads its command line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rollwise.errors import ConfigError

_PLAIN = re.compile(r"[A-Za-z_/@$][\w./:@+-]*", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]([\w /+.$%*@?|\\()\[\]{}:=,-]*(?<! ))?", re.ASCII)
_WORDS = {"true", "false", "null", "none", "inf", "nan"}


def override(key: str, value: Any) -> str:
    r"""One word of a command line.

    >>> override("trainer.logger", ["console", "wandb"]), override("++data.rollwise.options", {"uniform": 0.5})
    ('trainer.logger=[console,wandb]', '++data.rollwise.options={uniform:0.5}')
    >>> override("model", "it's 1, 2")
    "model='it\\'s 1, 2'"

    Raises:
        ConfigError: a name in a mapping that Hydra has no way to write.
    """
    return f"{key}={_value(value)}"


def _name(name: Any) -> str:
    """A name in a mapping; Hydra knows no quotes there."""
    if isinstance(name, int) or (_NAME.fullmatch(name) and name.lower() not in _WORDS):
        return re.sub(r"([\\()\[\]{}:=,])", r"\\\1", str(name))
    raise ConfigError(
        f"Hydra, which reads verl's command line, can't take the name {name!r} in a mapping; use one of letters, "
        "digits, spaces, '_', '.' and '-' that begins with a letter"
    )


def _value(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_name(name)}:{_value(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_value, value)) + "]"
    if not isinstance(value, str):
        return str(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS and not value.endswith(":"):
        return value
    escaped = re.sub(r"(\\+)('|$)", r"\1\1\2", value).replace("'", "\\'")  # a backslash counts before a quote alone
    return f"'{escaped}'"


def flattened(options: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Nested options as dotted keys: `{"trainer": {"nnodes": 2}}` is `trainer.nnodes`. An empty mapping is a value."""
    for name, value in options.items():
        key = f"{before}{name}"
        if isinstance(value, Mapping) and value:
            yield from flattened(value, f"{key}.")
        else:
            yield key, value
