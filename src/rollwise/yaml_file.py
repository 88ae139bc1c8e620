"""YAML files: read whole or refused, with one wording of what is wrong; written whole or not at all.

PyYAML is no dependency of the core. It is imported by the call, not with this module.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from rollwise.errors import ConfigError, MissingExtraError, RollwiseError, StateFileError
from rollwise.state import write_atomically


def read_yaml(
    path: str | os.PathLike[str],
    *,
    error: type[RollwiseError] = StateFileError,
    remedy: str = "mend it or move it away",
) -> Any:
    """What a YAML file holds: None for an empty one.

    Args:
        path: The file, in UTF-8.
        error: What to raise where it can't be read: `ConfigError` for what a user writes.
        remedy: What the reader of the message can do; its last words.

    Raises:
        error: It is missing, is not UTF-8, or is not valid YAML; the message names the file and the reason.
        MissingExtraError: PyYAML is not installed.
    """
    try:
        return parse_yaml(Path(path).read_text(encoding="utf-8"))
    except UnicodeError as cause:
        raise error(f"{str(path)!r} can't be read: it is not UTF-8 ({cause}); {remedy}") from cause
    except OSError as cause:
        raise error(f"{str(path)!r} can't be read: {cause.strerror}; {remedy}") from cause
    except ValueError as cause:
        raise error(f"{str(path)!r} {cause}; {remedy}") from cause


def read_options(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The options in a file of a user's, with their values; none in an empty one.

    Raises:
        ConfigError: It can't be read, or holds something else.
        MissingExtraError: PyYAML is not installed.
    """
    values = read_yaml(path, error=ConfigError, remedy="mend it, or give another file")
    if values is not None and not isinstance(values, dict):
        raise ConfigError(f"{str(path)!r} must map options to values, got {values!r:.80}")
    return values or {}


def parse_yaml(text: str) -> Any:
    """What a text in YAML holds.

    Raises:
        ValueError: It is not valid YAML; the message, one line, says "is not valid YAML" and why.
        MissingExtraError: PyYAML is not installed.
    """
    yaml = _pyyaml()
    try:
        return yaml.load(text, Loader=_loader())
    except (yaml.YAMLError, ValueError, RecursionError) as cause:  # ValueError: a date such as 2025-99-99
        reason = " ".join(str(cause).replace('"<unicode string>", ', "").split())
        raise ValueError(f"is not valid YAML ({reason})") from cause


def write_yaml(path: str | os.PathLike[str], values: Mapping[str, Any]) -> None:
    """Write plain values in their order: a crash leaves the old file or the new one."""
    write_atomically(path, yaml_text(values).encode())


def yaml_text(values: Mapping[str, Any]) -> str:
    """Plain values in YAML, in their order."""
    yaml = _pyyaml()
    text: str = yaml.dump(
        dict(values), Dumper=_with_floats(yaml.SafeDumper), sort_keys=False, allow_unicode=True, width=120
    )
    return text


def yaml_lines(text: str) -> dict[tuple[str, ...], int]:
    r"""The line, counted from 1, of every key of a text in valid YAML; a key within others is named by all of them.

    >>> yaml_lines("steps: 5\ntask_options:\n  levels: [1]\n")
    {('steps',): 1, ('task_options',): 2, ('task_options', 'levels'): 3}
    """
    yaml = _pyyaml()
    found: dict[tuple[str, ...], int] = {}

    def walk(node: Any, above: tuple[str, ...]) -> None:
        if isinstance(node, yaml.SequenceNode):
            for at, value in enumerate(node.value):
                walk(value, (*above, str(at)))
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                name = (*above, str(key.value))
                found[name] = key.start_mark.line + 1
                walk(value, name)

    walk(yaml.compose(text, Loader=yaml.SafeLoader), ())
    return found


@contextmanager
def naming_the_line(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors of the options in a YAML file begin with its path and, where it can be told, the line of the key.

    Raises:
        ConfigError: what is raised within, if it is a `ConfigError` that names a key of this file and its value.
    """
    try:
        yield
    except ConfigError as error:
        line = _line_of(str(error), path)
        if line is None or str(error).startswith(f"{path}, line "):
            raise
        raise ConfigError(f"{path}, line {line}: {error}") from error


def _line_of(message: str, path: str | os.PathLike[str]) -> int | None:
    """Of the key that a message is about: it has the key in quotes, or the key as a word and its value."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        lines, whole = yaml_lines(text), parse_yaml(text)
    except (OSError, ValueError, MissingExtraError):
        return None
    words, quoted, named = set(re.findall(r"\w+", message.partition("; known are ")[0])), [], []
    for keys, line in lines.items():
        value = _value_at(whole, keys)
        if f"no option {keys[-1]!r}" in message or f"unknown key {keys[-1]!r}" in message:
            quoted.append(line)
        elif keys[-1] in words and not isinstance(value, dict) and repr(value) in message:
            named.append(line)
    return next(iter([*quoted, *named]), None)


def _value_at(whole: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        if isinstance(whole, list):
            whole = whole[int(key)]
        else:
            whole = next((value for name, value in whole.items() if str(name) == key), None)
    return whole


@functools.cache
def _loader() -> Any:
    """PyYAML's safe loader, which refuses a key that stands twice: the first one's value would be lost."""
    yaml = _pyyaml()

    def compose(self: Any, anchor: Any) -> Any:
        node, seen = yaml.SafeLoader.compose_mapping_node(self, anchor), set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value != "<<" and key.value in seen:
                raise yaml.composer.ComposerError(None, None, f"the key {key.value!r} stands twice", key.start_mark)
            seen.add(key.value)
        return node

    return type("Loader", (_with_floats(yaml.SafeLoader),), {"compose_mapping_node": compose})


@functools.cache
def _with_floats(kind: type[Any]) -> Any:
    """A loader or dumper for which `1e-6` is a number, as in YAML 1.2 and JSON; in YAML 1.1 it is a text."""
    own = type(f"{kind.__name__}WithFloats", (kind,), {})
    pattern = re.compile(r"[-+]?[0-9][0-9_]*(?:\.[0-9_]*)?[eE][-+]?[0-9]+$")
    own.add_implicit_resolver("tag:yaml.org,2002:float", pattern, list("-+0123456789"))  # type: ignore[attr-defined]
    return own


def _pyyaml() -> ModuleType:
    try:
        import yaml
    except ImportError as cause:
        raise MissingExtraError(
            'YAML files need PyYAML, which is not installed: pip install "rollwise[train]"'
        ) from cause
    return yaml
