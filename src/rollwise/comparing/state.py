"""How far the runs of a comparison are, and deleting the checkpoints of those that are complete."""

from __future__ import annotations

import json
import shutil
from typing import Any

from rollwise.comparing.plan import Run
from rollwise.runs.folder import RunFolder
from rollwise.runs.names import CONFIG_FILE, METRICS_FILE
from rollwise.training.budget import is_over
from rollwise.training.trainer.checkpoint import checkpoints, latest_complete, step_of

_DELETED = "deleted-"


def is_done(run: Run) -> bool:
    """Whether a run has done all its steps or used up its budget; where no checkpoint is kept, its logs say so."""
    if not (run.folder / CONFIG_FILE).exists():
        return False
    folder = RunFolder(run.folder)
    if not checkpoints(folder.checkpoints):
        return is_over(run.config, folder, int(last_line(run).get("step", 0)))
    checkpoint = latest_complete(folder.checkpoints, hashes=False)  # nothing is resumed here
    return checkpoint is not None and is_over(run.config, folder, step_of(checkpoint))


def delete_checkpoints_if_done(run: Run) -> None:
    """Delete a run's checkpoints if it is complete. Renamed first, the newest last: after a kill it is complete too.

    A run that a signal had save and end (`enable_jit_checkpoint`) has ended without an error, and needs its checkpoint.

    Raises:
        StateFileError: another process trains this run.
    """
    if not is_done(run):
        return
    folder = RunFolder(run.folder)
    with folder.held():
        for _, path in checkpoints(folder.checkpoints):
            path.rename(path.with_name(f"{_DELETED}{path.name}"))
        for path in folder.checkpoints.glob(f"{_DELETED}*"):  # those that a kill left too
            shutil.rmtree(path)


def last_line(run: Run) -> dict[str, Any]:
    """The last whole line of a run's metrics; empty where there is none yet."""
    path = run.folder / METRICS_FILE
    try:
        with open(path, "rb") as file:
            file.seek(max(0, path.stat().st_size - 16384))
            lines = file.read().split(b"\n")[:-1]
        found = json.loads(lines[-1])
    except (OSError, IndexError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def result_of(run: Run) -> str:
    """A run's score and what it was trained, in words."""
    last = last_line(run)
    score, end = last.get("eval/pass@1"), last.get("end/pass@1")
    scored = "" if score is None else f"pass@1 {score:.3f}{'' if end is None else f' (at the end {end:.3f})'}, "
    return f"{scored}{last.get('step', 0)} steps, {last.get('tokens', 0):,} tokens"
