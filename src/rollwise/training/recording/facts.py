"""Plain facts of a run, for the `config.yaml` of whatever trains: options, versions, values as YAML holds them."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from enum import Enum
from importlib.metadata import version
from pathlib import PurePath
from typing import Any

from rollwise.curricula import Curriculum
from rollwise.errors import RollwiseError

_PACKAGES = ("rollwise", "trl", "verl", "transformers", "torch", "datasets", "accelerate", "peft", "ray", "numpy")
_RUNS_OWN = ("seed", "reward_spec")


def changed_options(curriculum: Curriculum) -> dict[str, Any]:
    """The options of a curriculum that are not its method's defaults; all, where it has no instance by default.

    >>> import rollwise as rw
    >>> changed_options(rw.PrioritizedReplay(exploration=0.25, seed=7))
    {'exploration': 0.25}
    """
    try:
        default = type(curriculum)().options
    except (TypeError, RollwiseError):
        default = {}
    own = {name: value for name, value in curriculum.options.items() if name not in _RUNS_OWN}
    return {name: value for name, value in own.items() if name not in default or default[name] != value}


def versions() -> dict[str, str]:
    """Of Python, rollwise, and the libraries that training goes through, where they are installed."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except ImportError:
            continue
    return found


def plain(value: Any) -> Any:
    """A value as YAML can hold it: mappings, lists, numbers and texts; anything else by its name."""
    if isinstance(value, Enum):
        return plain(value.value)
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Mapping):
        return {str(name): plain(of) for name, of in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(plain(one) for one in value)
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return plain(value.item())
    if isinstance(value, str | PurePath):
        return str(value)
    return getattr(value, "__name__", None) or str(value)
