"""Where each log of a run ended when a checkpoint was written, so that a resume notices a log that is shorter.

The logs are on disk before the checkpoint's seal. A file that lost its end all the same (a disk fault, an edit by hand)
would give a run whose totals begin again. The last line is compared, not the length, so a damaged line before it can
still be repaired or deleted.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollwise.state import write_atomically

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
