"""A file of one JSON object a line that grows by whole, durable lines: a kill costs the last one at most."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from rollwise.errors import ConfigError, StateFileError

Line = dict[str, Any]


def read_lines(path: Path, list_column: str, *, mend: bool) -> dict[str, Line]:
    """The lines by their `id`; see `whole_lines`. Every line has an `id`, and a list as `list_column`."""
    lines = whole_lines(path, lambda line: "id" in line and isinstance(line.get(list_column), list), mend=mend)
    return {line["id"]: line for line in lines}


def whole_lines(path: Path, is_whole: Callable[[Line], bool], *, mend: bool) -> list[Line]:
    """The lines in their order; none if there is no such file. A torn last line is left out.

    Args:
        path: The file.
        is_whole: Whether a line has all that it must have.
        mend: Whether to cut a torn last line off. Who only reads must not: it may be being written.

    Raises:
        StateFileError: a line before the last is damaged.
    """
    if not path.exists():
        return []
    found: list[Line] = []
    whole = 0
    lines = path.read_bytes().splitlines(keepends=True)
    for number, text in enumerate(lines, start=1):
        try:
            line = json.loads(text.decode("utf-8", "surrogatepass")) if text.endswith(b"\n") else None
        except ValueError:
            line = None
        if not isinstance(line, dict) or not is_whole(line):
            if number < len(lines):
                raise StateFileError(f"{str(path)!r}, line {number} is damaged; delete that line")
            break
        found.append(line)
        whole += len(text)
    if mend and whole < sum(map(len, lines)):
        with open(path, "r+b") as file:
            file.truncate(whole)
    return found


def append_lines(path: Path, lines: Iterable[Line]) -> None:
    """Append lines in one write, and make them durable."""
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    with open(path, "ab") as file:
        file.write(text.encode("utf-8", "surrogatepass"))
        file.flush()
        os.fsync(file.fileno())


def check_same_options(path: Path, before: Mapping[str, Any], now: Mapping[str, Any], *, what: str) -> None:
    """`ConfigError` unless what was begun with some options goes on with the same; it names the first that differs.

    Args:
        path: What was begun.
        before: The options it was begun with.
        now: Those that are given, as JSON gives them back.
        what: Which of its contents would be mixed, as "rollouts".
    """
    changed = [name for name in now if before.get(name) != now[name]]
    if changed:
        name = changed[0]
        raise ConfigError(
            f"{str(path)!r} was begun with {name}={before.get(name)!r}, now it is {now[name]!r}; its {what} can't be "
            "mixed: give the same options, or another --out"
        )
