"""Reading a file of one JSON object a line, whole or damaged."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from rollwise.errors import StateFileError

# So many line numbers are named for each kind of damage; the rest is counted.
MOST_NAMED = 12
NOT_JSON = "not valid JSON"
NOT_AN_OBJECT = "not a JSON object"


class Faults:
    """What of a run's files could not be read, as sentences for its reader; holds few numbers however much is damaged.

    >>> faults = Faults()
    >>> faults.add_line("metrics.jsonl", 17, "not valid JSON")
    >>> faults.add_line("metrics.jsonl", 40, "not valid JSON")
    >>> faults.add_file("config.yaml", "is not there")
    >>> faults.sentences()
    ['metrics.jsonl: lines 17 and 40 could not be read (not valid JSON).', 'config.yaml is not there.']
    """

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str], list[int]] = {}
        self._counts: dict[tuple[str, str], int] = {}
        self._others: list[str] = []

    def __len__(self) -> int:
        """How many lines and files."""
        return sum(self._counts.values()) + len(self._others)

    def add_line(self, file: str, number: int, what: str) -> None:
        """A line that is left out; `what` is wrong with it, in a few words, the same for every such line."""
        key = file, what
        self._counts[key] = self._counts.get(key, 0) + 1
        named = self._lines.setdefault(key, [])
        if len(named) < MOST_NAMED:
            named.append(number)

    def add_file(self, file: str, what: str) -> None:
        """Something about a file as a whole, as in "config.yaml is not there"."""
        self._others.append(f"{file} {what}.")

    def sentences(self) -> list[str]:
        """One for each kind of damage to each file."""
        said = []
        for key, named in self._lines.items():
            file, what = key
            more = self._counts[key] - len(named)
            lines = "line" if self._counts[key] == 1 else "lines"
            said.append(f"{file}: {lines} {enumeration(named, more)} could not be read ({what}).")
        return said + self._others


def enumeration(items: Sequence[object], more: int = 0) -> str:
    """Items as a list in words.

    >>> enumeration([3, 5, 9]), enumeration([3, 5], more=1200)
    ('3, 5 and 9', '3, 5 and 1,200 more')
    """
    words = [str(item) for item in items] + ([f"{more:,} more"] if more else [])
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def read_json_lines(path: Path, faults: Faults | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Stream (line number from 1, object) from a file of one JSON object a line.

    A malformed last line is one that is still being written, or whose writer was killed: it is left out. Blank lines
    are left out too.

    Args:
        path: The file.
        faults: Where malformed lines are noted, also the last, before reading goes on; None to raise.

    Raises:
        StateFileError: Without `faults`: a line other than the last is not a JSON object, or the file can't be read.
    """
    pending: tuple[int, str, str] | None = None
    try:
        with path.open("rb") as file:  # bytes, as a torn line may end inside a character
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                if pending is not None:
                    _note(path, pending, faults)
                row, fault = parse_line(line)
                pending = None if fault is None else (number, *fault)
                if row is not None:
                    yield number, row
    except OSError as error:
        if faults is None:
            raise StateFileError(f"{path} can't be read: {error.strerror}") from error
        faults.add_file(path.name, f"can't be read ({error.strerror})")
    if pending is not None and faults is not None:
        torn = f"has a torn last line ({pending[0]}), still being written or cut off; it was left out"
        faults.add_file(path.name, torn)


def read_lines_at(path: Path, numbers: set[int]) -> dict[int, dict[str, Any]]:
    """The objects at certain lines (from 1), without parsing the others; lines that hold none are left out.

    Raises:
        StateFileError: The file can't be read.
    """
    found: dict[int, dict[str, Any]] = {}
    last = max(numbers, default=0)
    if not last:
        return found
    try:
        with path.open("rb") as file:
            for number, line in enumerate(islice(file, last), start=1):
                row = parse_line(line)[0] if number in numbers else None
                if row is not None:
                    found[number] = row
    except OSError as error:
        raise StateFileError(f"{path} can't be read: {error.strerror}") from error
    return found


def parse_line(line: bytes) -> tuple[dict[str, Any] | None, tuple[str, str] | None]:
    """A line's object, or what is wrong with it: in few words, and in detail.

    >>> parse_line(b'{"step": 3}'), parse_line(b"[3]")
    (({'step': 3}, None), (None, ('not a JSON object', 'holds a list, not an object')))
    """
    try:
        row = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        return None, (NOT_JSON, f"is not valid JSON ({error})")
    if isinstance(row, dict):
        return row, None
    return None, (NOT_AN_OBJECT, f"holds a {type(row).__name__}, not an object")


def _note(path: Path, fault: tuple[int, str, str], faults: Faults | None) -> None:
    number, what, detail = fault
    if faults is None:
        raise StateFileError(f"{path}, line {number}: {detail}; mend or delete that line")
    faults.add_line(path.name, number, what)
