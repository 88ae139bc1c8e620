"""Read Countdown puzzles from a JSONL or parquet file in the public data set's form: columns `target` and `nums`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rollwise.errors import TaskError
from rollwise.parquet import import_pyarrow
from rollwise.tasks.countdown.items import Item
from rollwise.tasks.countdown.solver import MAX_NUMBERS

_JSONL = (".jsonl", ".ndjson")
_FORM = 'each row needs "target" (a whole number) and "nums" (a list of whole numbers)'


def read_items(path: str | Path) -> list[Item]:
    """The file's puzzles in its order; a puzzle that appears twice is given once.

    Raises:
        TaskError: the file is missing, of another kind, empty, or a row is malformed; the message names file and row.
        MissingExtraError: the file is parquet and pyarrow is not installed.
    """
    path = Path(path)
    if not path.is_file():
        raise TaskError(f"Countdown data file {str(path)!r} does not exist; give a .jsonl or .parquet file")
    if path.suffix.lower() in _JSONL:
        rows = _jsonl_rows(path)
    elif path.suffix.lower() == ".parquet":
        rows = _parquet_rows(path)
    else:
        raise TaskError(f"Countdown data file {str(path)!r} must end in .jsonl or .parquet, got {path.suffix!r}")
    items: dict[str, Item] = {}
    for where, row in rows:
        item = _item(where, row)
        items.setdefault(item.key, item)
    if not items:
        raise TaskError(f"Countdown data file {str(path)!r} has no rows; {_FORM}")
    return list(items.values())


def _jsonl_rows(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        with path.open(encoding="utf-8-sig") as lines:  # a byte order mark is no part of the first line
            for at, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                where = f"{path}, line {at}"
                try:
                    yield where, json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise TaskError(f"{where}: not a JSON object: {error}") from error
    except UnicodeDecodeError as error:
        raise TaskError(f"{path}: not UTF-8 text ({error}); a .jsonl file must be") from error


def _parquet_rows(path: Path) -> Iterator[tuple[str, Any]]:
    pyarrow = import_pyarrow(path)
    try:
        columns = pyarrow.parquet.read_schema(path).names
        present = [c for c in ("target", "nums") if c in columns]
        if len(present) < 2:
            raise TaskError(f"{path}: columns are {', '.join(columns)}; {_FORM}")
        rows = pyarrow.parquet.read_table(path, columns=present).to_pylist()
    except pyarrow.ArrowException as error:
        raise TaskError(f"{path}: can't be read as parquet: {error}") from error
    for at, row in enumerate(rows, start=1):
        yield f"{path}, row {at}", row


def _item(where: str, row: Any) -> Item:
    if not isinstance(row, dict):
        raise TaskError(f"{where}: expected an object, got {row!r:.80}; {_FORM}")
    for name in ("target", "nums"):
        if name not in row:
            raise TaskError(f"{where}: field {name!r} is missing; {_FORM}")
    target, nums = row["target"], row["nums"]
    if not _whole(target):
        raise TaskError(f"{where}: field 'target' must be a whole number, got {target!r:.80}")
    if not isinstance(nums, list) or not all(_whole(n) and n >= 0 for n in nums):
        raise TaskError(f"{where}: field 'nums' must be a list of non-negative whole numbers, got {nums!r:.80}")
    if not 1 <= len(nums) <= MAX_NUMBERS:
        raise TaskError(f"{where}: field 'nums' must hold 1 to {MAX_NUMBERS} numbers, got {len(nums)}")
    return Item(tuple(nums), target, f"N{len(nums)}", float(len(nums)))


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
