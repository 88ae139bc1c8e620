"""Writes results as JSON and CSV: a disk that is full leaves those of before."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rollwise.state import write_whole


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write plain values without NaN."""
    write_whole(path, json.dumps(values, indent=1, allow_nan=False) + "\n")


def write_csv(path: Path, rows: Iterable[Sequence[Any]], *, head: str = "") -> None:
    """Write rows under a head of whole lines."""
    text = io.StringIO()
    text.write(head)
    csv.writer(text, lineterminator="\n").writerows(rows)
    write_whole(path, text.getvalue())
