"""The verdict of the viability gate beside a head's file, so that who decodes with the head knows of it."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rollwise.state import write_atomically

logger = logging.getLogger(__name__)


def viability_path(head: str | Path) -> Path:
    """Where the verdict on a head's file is."""
    return Path(f"{head}.viability.json")


def note_viability(head: str | Path, digest: str, found: Mapping[str, Any]) -> None:
    """Write the verdict beside the head; where that can't be done it is logged, as the evaluation holds it too.

    Args:
        head: The head's file.
        digest: The head's, as the file may hold another one later.
        found: What `viability` said.
    """
    path = viability_path(head)
    try:
        write_atomically(path, json.dumps({"head": digest, **found}, indent=1).encode())
    except OSError as error:
        logger.warning("%s can't be written (%s): bestof knows the verdict by --evaluation alone", path, error.strerror)


def read_viability(head: str | Path, digest: str) -> dict[str, Any] | None:
    """The verdict beside a head's file; None where there is none, or one on another head."""
    try:
        found = json.loads(viability_path(head).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("head") == digest else None
