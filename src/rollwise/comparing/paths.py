"""Paths in a plan: which of its options are some, and where they point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rollwise.models import is_embedded
from rollwise.sampling.presets import is_preset

PATHS = (
    "model",
    "profile",
    "data",
    "eval_data",
    "reward",
)  # relative to the plan's file; {name} and {seed} stand for the plan's and the run's own
_NAMES = ("task", "curriculum", "gate")


def is_path(option: str, value: Any) -> bool:
    """Whether an option's value names files: always for some; for a task, a method and a gate if it is `file.py:Name`.

    >>> is_path("model", "starts/mine"), is_path("task", "mine.py:Mine"), is_path("task", "countdown")
    (True, True, False)
    """
    return value is not None and (option in PATHS or (option in _NAMES and ".py:" in str(value)))


def located(given: Any, folder: Path) -> Any:
    """The path that `given` is from `folder`, if there is one; else itself: a hub id, or an embedded policy."""
    if is_preset(str(given)) and "=" in given:
        preset, _, copy = given.partition("=")
        return f"{preset}={located(copy, folder)}"
    file, colon, name = str(given).partition(".py:")  # a reward in a file: rewards.py:accuracy
    path = folder / (f"{file}.py" if colon else file)
    found = not is_embedded(str(given)) and path.exists()
    return f"{path.resolve()}{f':{name}' if colon else ''}" if found else given


def beside(path: str, folder: Path) -> str:
    """The absolute path of what lies in `folder`; of `preset:NAME=COPY` the copy's."""
    preset, equals, copy = path.partition("=") if is_preset(path) else ("", "", path)
    return f"{preset}{equals}{folder.resolve() / copy}"


def each_path(given: Any, change: Callable[[str], str]) -> Any:
    """A path, a list of paths or a mapping to them, each of them changed; anything else, a mistake, as it is."""
    if isinstance(given, Mapping):
        return {name: each_path(one, change) for name, one in given.items()}
    if isinstance(given, list):
        return [each_path(one, change) for one in given]
    return change(given) if isinstance(given, str) else given
