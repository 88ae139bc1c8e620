"""YAML files: read whole or refused, with one wording of what is wrong; written whole or not at all.

PyYAML is no dependency of the core. It is imported by the call, not with this module.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from rollwise.errors import MissingExtraError, RollwiseError, StateFileError
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


def parse_yaml(text: str) -> Any:
    """What a text in YAML holds.

    Raises:
        ValueError: It is not valid YAML; the message, one line, says "is not valid YAML" and why.
        MissingExtraError: PyYAML is not installed.
    """
    yaml = _pyyaml()
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as cause:  # ValueError: a date such as 2025-99-99
        raise ValueError(f"is not valid YAML ({' '.join(str(cause).split())})") from cause


def write_yaml(path: str | os.PathLike[str], values: Mapping[str, Any]) -> None:
    """Write plain values in their order: a crash leaves the old file or the new one."""
    write_atomically(path, _pyyaml().safe_dump(dict(values), sort_keys=False, allow_unicode=True).encode())


def _pyyaml() -> ModuleType:
    try:
        import yaml
    except ImportError as cause:
        raise MissingExtraError(
            'YAML files need PyYAML, which is not installed: pip install "rollwise[train]"'
        ) from cause
    return yaml
