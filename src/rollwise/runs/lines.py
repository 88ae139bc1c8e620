"""Reads and writes files of one JSON object a line: whole or damaged, being written, or rolled back."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rollwise.errors import ConfigError, StateFileError
from rollwise.runs.names import DATA_HASH

Line = dict[str, Any]
T = TypeVar("T")

# So many line numbers are named for each kind of damage; the rest is counted.
_MOST_NAMED = 12


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
        if len(named) < _MOST_NAMED:
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


def scientific(value: float) -> str:
    """A great number by its power of ten.

    >>> scientific(123_456_000_000.0), scientific(2e6)
    ('1.23e11', '2.00e6')
    """
    mantissa, _, power = f"{value:.2e}".partition("e")
    return f"{mantissa}e{int(power)}"


def enumeration(items: Sequence[object], more: int = 0) -> str:
    """Items as a list in words.

    >>> enumeration([3, 5, 9]), enumeration([3, 5], more=1200)
    ('3, 5 and 9', '3, 5 and 1,200 more')
    """
    words = [str(item) for item in items] + ([f"{more:,} more"] if more else [])
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def read_json_lines(
    path: Path, faults: Faults | None = None, torn: Faults | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Stream (line number from 1, object) from a file of one JSON object a line.

    A malformed last line is one that is still being written, or whose writer was killed: it is left out. Blank lines
    are left out too.

    Args:
        path: The file.
        faults: Where malformed lines are noted, also the last, before reading goes on; None to raise.
        torn: Where a malformed last line is noted, and no other; `faults` unless given.

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
    noted = faults if torn is None else torn
    if pending is not None and noted is not None:
        noted.add_file(
            path.name, f"has a torn last line ({pending[0]}), still being written or cut off; it was left out"
        )


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
        row = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        return None, ("not valid JSON", f"is not valid JSON ({error})")
    if isinstance(row, dict):
        return row, None
    return None, ("not a JSON object", f"holds a {type(row).__name__}, not an object")


def _note(path: Path, fault: tuple[int, str, str], faults: Faults | None) -> None:
    number, what, detail = fault
    if faults is None:
        raise StateFileError(f"{path}, line {number}: {detail}; mend or delete that line")
    faults.add_line(path.name, number, what)


def read_facts(path: Path, parse: Callable[[Any], T], faults: Faults | None, *, remedy: str = "delete it") -> T | None:
    """What `parse` makes of a file of JSON; None where it is not there, or is damaged and `faults` is given.

    Raises:
        StateFileError: It can't be read, and there is no `faults` to note that.
    """
    if not path.exists():
        return None
    try:
        return parse(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, ConfigError) as error:
        reason = f"can't be read ({error})"
        if faults is None:
            raise StateFileError(f"{path} {reason}; {remedy}") from error
        faults.add_file(path.name, reason)
        return None


def lines_by_id(path: Path, list_column: str, *, mend: bool) -> dict[str, Line]:
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
        file.write(text.encode("utf-8", "backslashreplace"))  # half a surrogate pair as JSON's escape
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
    changed = [name for name in {**now, **before} if before.get(name) != now.get(name)]  # also what is left out now
    if changed:
        name = changed[0]
        option = name.removesuffix("_digest")  # `head_digest` is that of what the file of the option `head` holds
        if option != name and before.get(name) and now.get(option):
            raise ConfigError(
                f"{str(path)!r} was begun with another {option}: {now[option]!r} holds another {option} than then; its "
                f"{what} can't be mixed: put it back, or give another --out"
            )
        raise ConfigError(
            f"{str(path)!r} was begun with {name}={before.get(name)!r}, now it is {now.get(name)!r}; its {what} can't "
            "be mixed: give the same options, or another --out"
        )


def refuse_samples(path: str | Path, config: Mapping[str, Any]) -> None:
    """`StateFileError` if a folder's `config.yaml` is that of prompts that were rolled out, not of a run."""
    if DATA_HASH in config:
        command = "`rollwise profile`, `rollouts` or `bestof`"
        raise StateFileError(f"{str(path)!r} holds no run: its config.yaml is of {command}")


def clean(value: Any) -> Any:
    """`value` with numpy numbers as Python's, float32 noise rounded away, and NaN and infinity as null."""
    if isinstance(value, Mapping):
        return {str(key): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return (round(value, 3) if abs(value) > 1e4 else float(f"{value:.7g}")) if np.isfinite(value) else None
    return value if isinstance(value, str | int | bool) or value is None else str(value)
