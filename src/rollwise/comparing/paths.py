"""Paths in a plan: which of its options are some, and where they point."""

from __future__ import annotations

import filecmp
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from rollwise.errors import ConfigError
from rollwise.models import is_embedded
from rollwise.sampling.presets import is_preset
from rollwise.state import LONGEST_NAME

_PATHS = ("model", "profile", "data", "eval_data")
"""Relative to the plan's file; {name} and {seed} stand for the plan's and the run's own."""
_NAMES = ("task", "curriculum", "gate", "allocator", "reward")


def check_folder_name(whose: str, name: str) -> None:
    """Refuse a name that can't be one folder's, or that would lie elsewhere."""
    if not 0 < len(name.encode("utf-8", "replace")) <= LONGEST_NAME or {*"/\\\0"} & {*name} or name[0] == ".":
        remedy = f"give one of at most {LONGEST_NAME} bytes, without slashes and a dot at its beginning"
        raise ConfigError(f"{whose} name becomes a folder's, and {name!r} can't be one; {remedy}")


def is_path(option: str, value: Any) -> bool:
    """Whether an option's value names files: always for some; of those that name a class or function `file.py:Name`.

    >>> is_path("model", "starts/mine"), is_path("task", "mine.py:Mine"), is_path("task", "countdown")
    (True, True, False)
    """
    return value is not None and (option in _PATHS or (option in _NAMES and ".py:" in str(value)))


def located(given: str, folder: Path) -> str:
    """The path that `given` is from `folder`, if there is one; else itself: a hub id, or an embedded policy."""
    if is_preset(given) and "=" in given:
        preset, _, copy = given.partition("=")
        return f"{preset}={located(copy, folder)}"
    file, colon, name = _in_file(given)
    path = folder / (f"{file}.py" if colon else file)
    found = not is_embedded(given) and path.exists()
    return f"{path.resolve()}{f':{name}' if colon else ''}" if found else given


def beside(path: str, folder: Path) -> str:
    """The absolute path of what lies in `folder`; of `preset:NAME=COPY` the copy's."""
    preset, equals, copy = path.partition("=") if is_preset(path) else ("", "", path)
    return f"{preset}{equals}{folder.resolve() / copy}"


def each_path(option: str, given: Any, change: Callable[[str], str]) -> Any:
    """An option's path, list of paths or mapping to them, each of them changed; anything else, as a name, as it is."""
    if isinstance(given, Mapping):
        return {name: each_path(option, one, change) for name, one in given.items()}
    if isinstance(given, list):
        return [each_path(option, one, change) for one in given]
    return change(given) if isinstance(given, str) and is_path(option, given) else given


def with_paths(saved: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The saved options of a run, with the paths that it has `now`: the plan's folder may have been moved since.

    >>> with_paths({"model": "/old/start", "steps": 3}, {"model": "/new/start", "steps": 3, "stop": None})
    {'model': '/new/start', 'steps': 3}
    """
    return {key: now.get(key, value) if is_path(key, value) else value for key, value in saved.items()}


def is_same(option: str, before: Any, now: Any) -> bool:
    """Whether an option of a run is what it was.

    Folders may have been moved or copied since: two paths are the same if their last parts are, and what they hold is,
    or one of them is gone.
    """
    if not (is_path(option, before) and is_path(option, now)):
        return bool(before == now)
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        return before.keys() == now.keys() and all(is_same(option, before[name], now[name]) for name in now)
    if isinstance(before, list) and isinstance(now, list):
        return len(before) == len(now) and all(map(is_same, [option] * len(now), before, now))
    if before == now or not isinstance(before, str) or not isinstance(now, str):
        return bool(before == now)
    one, other = (Path(path).name if Path(path).is_absolute() else path for path in (before, now))
    return one == other and _hold_the_same(before, now)


@lru_cache  # asked for every run of a plan; a model takes its time
def _hold_the_same(before: str, now: str) -> bool:
    one, other = (Path(f"{file}.py" if colon else file) for file, colon, _ in map(_in_file, (before, now)))
    if not (one.exists() and other.exists()) or one.samefile(other):
        return True
    if one.is_file() or other.is_file():
        return one.is_file() and other.is_file() and filecmp.cmp(one, other, shallow=False)
    files = [sorted(path.relative_to(top) for path in top.rglob("*") if path.is_file()) for top in (one, other)]
    return files[0] == files[1] and all(filecmp.cmp(one / path, other / path, shallow=False) for path in files[0])


def _in_file(path: str) -> tuple[str, str, str]:
    """Of a function in a file, `rewards.py:accuracy`, the file without its ending, what parts them, and its name."""
    return path.partition(".py:")
