"""`evaluation.json`, which `rollwise head evaluate` writes: read by its report, and by `rollwise bestof`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rollwise.errors import StateFileError
from rollwise.renamed import with_new_names
from rollwise.runs.names import EVALUATION_FILE

PASSED, FAILED = "passed", "failed"
"""Verdicts of the viability gate."""
FORMAT = "rollwise-inference-evaluation-1"


def read_evaluation(folder: str | Path) -> dict[str, Any]:
    """The contents of a folder's `evaluation.json`.

    Raises:
        StateFileError: There is none, or it is another program's.
    """
    path = Path(folder) / EVALUATION_FILE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StateFileError(f"{str(path)!r} can't be read ({error.strerror}); run `rollwise head evaluate`") from error
    except ValueError as error:
        raise StateFileError(f"{str(path)!r} is not JSON ({error}); run `rollwise head evaluate` again") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise StateFileError(f"{str(path)!r} holds no evaluation; give a folder of `rollwise head evaluate`")
    return found | {"config": with_new_names("head evaluate", found.get("config") or {})}


def viability_words(found: Mapping[str, Any] | None) -> str:
    """The verdict of the viability gate in one line; None where it is not known."""
    if found is None:
        return "Viability gate: not known, as fewer than two prompts have K rollouts each."
    said = (
        f"Viability gate {found['verdict']}: value@{found['k']} {found['value']:.3f} against random@{found['k']} "
        f"{found['random']:.3f}, a gain of {found['gain']:+.3f} [{found['low']:+.3f}, {found['high']:+.3f}] over "
        f"{found['prompts']} prompts"
    )
    return f"{said}." if found["verdict"] == PASSED else f"{said}: don't decode with this head."
