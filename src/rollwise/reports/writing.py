"""Writing files that others may be reading."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write so that a reader sees the old file or the new one, never half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        # A completion can hold half a surrogate pair, which UTF-8 can't: it becomes "?".
        part.write_bytes(text.encode("utf-8", errors="replace"))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
