"""Checks that the hooks of an engine are where an adapter expects them, so that a moved one is named at the start."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from rollwise.errors import SilentNoOpError


def check_hooks(release: str, hooks: Mapping[str, Sequence[str] | None]) -> None:
    """Refuse an engine whose hooks are not those of the release that the adapter was written for.

    Args:
        release: the engine and its release, for the error, as in "Trinity-RFT 0.6.0".
        hooks: "module:Class.method" -> the names of its parameters, in order; None where it need only exist.

    Raises:
        SilentNoOpError: a hook has gone, or takes other parameters; the error names it.

    >>> check_hooks("Python", {"fractions:Fraction.limit_denominator": ["self", "max_denominator"]})
    """
    for where, expected in hooks.items():
        found = _find(where)
        if found is None:
            problem = "is not there"
        elif expected is not None and (given := list(inspect.signature(found).parameters)) != list(expected):
            problem = f"takes {given} where {list(expected)} is expected"
        else:
            continue
        raise SilentNoOpError(
            f"a hook of {release} has moved: {where} {problem}, so the curriculum would not take effect; install "
            f"{release}, or a rollwise that names your release in docs/engines.md"
        )


def _find(where: str) -> Any:
    module, _, path = where.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except ImportError:
        return None
    for part in path.split("."):
        found = getattr(found, part, None)
    return found
