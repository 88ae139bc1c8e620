"""Reads the rows of a .jsonl, .json, .csv or .parquet file, each with its place in the file."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rollwise.errors import ConfigError
from rollwise.parquet import import_pyarrow
from rollwise.runs.lines import Faults, read_json_lines

ENDINGS = (".jsonl", ".ndjson", ".json", ".csv", ".parquet")
Row = dict[str, Any]

csv.field_size_limit(2**31 - 1)  # a completion may be longer than the 131,072 characters of the default


def read_rows(path: Path, torn: Faults | None = None) -> Iterator[tuple[str, Row]]:
    """Stream (place, row) from a file, its kind known by its ending.

    A place is "line 3" or "row 3", from 1. Values of a .csv file are text, and empty ones None. A torn last line of a
    .jsonl file is left out, and noted in `torn`.

    Raises:
        ConfigError: another ending, or the file can't be read as what it ends in.
        StateFileError: a line of a .jsonl file, other than a torn last one, is not a JSON object.
        MissingExtraError: a .parquet file, and pyarrow is not installed.
    """
    ending = path.suffix.lower()
    if ending in (".jsonl", ".ndjson"):
        for number, row in read_json_lines(path, torn=torn):
            yield f"line {number}", row
    elif ending == ".json":
        yield from _read_list(path)
    elif ending == ".csv":
        yield from _read_csv(path)
    elif ending == ".parquet":
        yield from _read_parquet(path)
    else:
        raise ConfigError(f"{str(path)!r} does not end in {', '.join(ENDINGS)}; give a file that does")


def _read_list(path: Path) -> Iterator[tuple[str, Row]]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid JSON ({error}); one object a line belongs in a .jsonl file") from error
    if not isinstance(rows, list):
        raise ConfigError(f"{path} holds a {type(rows).__name__}, not a list of objects; use .jsonl, one object a line")
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict):
            raise ConfigError(f"{path}, row {number} holds a {type(row).__name__}, not an object of columns")
        yield f"row {number}", row


def _read_csv(path: Path) -> Iterator[tuple[str, Row]]:
    begins = 1
    try:
        with path.open(encoding="utf-8-sig") as file:  # in cells, too, every kind of line break becomes "\n"
            reader = csv.DictReader(file, strict=True)
            names = reader.fieldnames or ()
            if twice := [name for name, n in Counter(names).items() if n > 1]:
                raise ConfigError(f"{path} has two columns {twice[0]!r}; rename or remove one")
            if len(names) == 1 and (found := re.search("[;\t]", names[0])):
                raise ConfigError(f"{path} has one column, {names[0]!r}: {found[0]!r} is between its cells; use commas")
            begins = reader.line_num + 1
            for row in reader:
                if None in row or None in row.values():
                    raise ConfigError(
                        f"{path}, line {begins} has {'more' if None in row else 'fewer'} cells than the first line has "
                        "columns; quote cells with commas or line breaks"
                    )
                yield f"line {begins}", {name: value or None for name, value in row.items()}
                begins = reader.line_num + 1
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text ({error}); convert it") from error
    except csv.Error as error:
        raise ConfigError(f"{path}, line {begins} is not valid CSV ({error}); mend it") from error


def _read_parquet(path: Path) -> Iterator[tuple[str, Row]]:
    pyarrow = import_pyarrow(path)
    try:
        number = 0
        for batch in pyarrow.parquet.ParquetFile(path).iter_batches():
            for row in batch.to_pylist():
                number += 1
                yield f"row {number}", row
    except pyarrow.ArrowException as error:
        raise ConfigError(f"{path} can't be read as parquet: {error}") from error
