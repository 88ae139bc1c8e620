"""A run's logs, read and rolled back; and where each ended at a checkpoint, so that a resume notices a shorter one.

The logs are on disk before the checkpoint's seal. A file that lost its end all the same (a disk fault, an edit by hand)
would give a run whose totals begin again. The last line is compared, not the length, so a damaged line before it can
still be repaired or deleted.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollwise.errors import StateFileError
from rollwise.state import naming, write_atomically

RECORD = "rollwise_logs.json"
"""In a checkpoint: `totals`, what the run had spent, and `logs`, the last line of each log."""


def end_of(line: bytes, step: int) -> dict[str, Any]:
    """What identifies a log's last line: its step, length and SHA-256.

    >>> end_of(b"{}", 3)["bytes"]
    2
    """
    return {"step": step, "bytes": len(line), "sha256": hashlib.sha256(line).hexdigest()}


def holds(path: Path, end: dict[str, Any]) -> bool:
    """True if the log has that line, whole."""
    if not path.exists():
        return False
    with open(path, "rb") as log:
        return any(len(line) == end["bytes"] and end_of(line, end["step"]) == end for line in log)


def write_record(checkpoint: Path, record: dict[str, Any]) -> None:
    """Write the record into a checkpoint, atomically."""
    write_atomically(checkpoint / RECORD, json.dumps(record).encode())


def read_record(checkpoint: Path) -> dict[str, Any]:
    """The record in a checkpoint; empty for one without: trained without a `Recorder`, or by an older version."""
    path = checkpoint / RECORD
    return dict(json.loads(path.read_bytes())) if path.exists() else {}


def read_log(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every line of a log with what it says; not the last one if the run was killed while it wrote it.

    A log that is not there has none.

    Raises:
        StateFileError: a line other than the last is damaged.
    """
    if not path.exists():
        return
    with open(path, "rb") as source:  # a line may be torn within a character
        for number, raw in enumerate(source, start=1):
            try:
                text = raw.decode("utf-8")
                line = json.loads(text)
                int(line["step"])
            except (ValueError, KeyError, TypeError) as error:
                if raw.endswith(b"\n"):
                    raise StateFileError(
                        f"{str(path)!r}, line {number} is damaged: {error!r}; mend that line, or delete it"
                    ) from error
                return
            yield text, line


def keep_until(path: Path, step: int) -> tuple[str, dict[str, Any]]:
    """Rewrite a log, if it is there, without the lines after `step`; the last line kept, empty if there is none."""
    kept, last = "", dict[str, Any]()
    if not path.exists():
        return kept, last
    scratch = path.with_name(f".{path.name}.tmp")
    with naming(path, scratch=scratch):
        with open(scratch, "w", encoding="utf-8") as target:
            for text, line in read_log(path):
                if int(line["step"]) <= step:
                    kept, last = text if text.endswith("\n") else text + "\n", line
                    target.write(kept)
            target.flush()
            os.fsync(target.fileno())
        os.replace(scratch, path)
    return kept, last


@dataclass(slots=True)
class Totals:
    """What a run has spent so far.

    Attributes:
        rollouts: completions generated.
        tokens: tokens generated.
        wall_s: seconds of training without evaluation.
        flops: see `rollwise.models.flops`; NaN where a part of the run did not record it.
    """

    rollouts: int = 0
    tokens: int = 0
    wall_s: float = 0.0
    flops: float = 0.0

    @classmethod
    def of(cls, saved: Mapping[str, Any]) -> Totals:
        """Those in a line of the metrics, or in a checkpoint's record; nothing spent where there is neither."""
        flops = saved.get("flops", math.nan if saved else 0.0)
        return cls(
            rollouts=int(saved.get("rollouts", 0)),
            tokens=int(saved.get("tokens", 0)),
            wall_s=float(saved.get("wall_s", 0.0)),
            flops=math.nan if flops is None else float(flops),
        )
