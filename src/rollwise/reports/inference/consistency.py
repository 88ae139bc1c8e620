"""The page of a file of `rollwise consistency`: what it cost beside all K samples at once, agreement, every answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rollwise.errors import StateFileError, check_installed
from rollwise.renamed import with_new_names
from rollwise.runs.lines import lines_by_id
from rollwise.runs.names import OPTIONS_ENDING, SUMMARY_ENDING
from rollwise.state import write_whole


def write_consistency_report(path: str | Path, out: str | Path | None = None) -> Path:
    """Write the page of a file of `rollwise consistency`; its path.

    Args:
        path: The file, such as consistency/math-adaptive.jsonl.
        out: Where to write; by default beside it, as math-adaptive.html.

    Raises:
        MissingExtraError: matplotlib is not installed.
        StateFileError: it is no such file, or the files beside it are missing.
    """
    path = Path(path)
    options = _read_beside(path, OPTIONS_ENDING, "it is no file of `rollwise consistency`; name one")
    options = with_new_names("consistency", options)
    again = "run the same `rollwise consistency` again, which writes it without asking for what is there"
    numbers = _read_beside(path, SUMMARY_ENDING, again)
    lines = list(lines_by_id(path, "answers", mend=False).values())
    check_installed("matplotlib", "the report", "report")
    from rollwise.reports.inference.consistency_page import render_consistency

    target = path.with_suffix(".html") if out is None else Path(out)
    write_whole(target, render_consistency(path.name, options, numbers, lines))
    return target


def _read_beside(path: Path, ending: str, remedy: str) -> dict[str, Any]:
    beside = path.with_name(path.name + ending)
    try:
        return dict(json.loads(beside.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise StateFileError(f"{str(path)!r} has no readable {beside.name} beside it ({error}): {remedy}") from error
