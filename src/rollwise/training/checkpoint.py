"""Checkpoints that are whole or not counted.

transformers writes a checkpoint's files one by one, so a kill in between leaves a folder that looks like a checkpoint.
Here a checkpoint counts only once it is *sealed*: when all else is on disk, a last file names every other with its
size. Whoever resumes takes the newest sealed one.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from rollwise.errors import StateFileError
from rollwise.state import sync_folder, write_atomically

SEAL = "rollwise_complete.json"
_NAME = re.compile(r"checkpoint-(\d+)")


def seal(folder: Path) -> None:
    """Flush every file of a finished checkpoint to disk, then name them all in the seal."""
    sizes = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name != SEAL):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
        sizes[path.relative_to(folder).as_posix()] = path.stat().st_size
    sync_folder(folder)
    write_atomically(folder / SEAL, json.dumps({"files": sizes}).encode())


def unseal(folder: Path) -> None:
    """Take the seal off a checkpoint that is about to be written over."""
    (folder / SEAL).unlink(missing_ok=True)


def flaw(folder: Path) -> str | None:
    """What is wrong with a checkpoint, or None if it is whole."""
    try:
        sizes = dict(json.loads((folder / SEAL).read_bytes())["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return f"it has no seal ({SEAL}): its writing was cut short, or something else wrote it"
    for name, size in sizes.items():
        path = folder / name
        if not path.is_file():
            return f"its file {name} is missing"
        if path.stat().st_size != size:
            return f"its file {name} has {path.stat().st_size} bytes where {size} were written"
    return None


def checkpoints(run: Path) -> list[tuple[int, Path]]:
    """Every checkpoint folder under `run` with its step, whole or not, oldest first."""
    found = [(_NAME.fullmatch(path.name), path) for path in run.glob("checkpoint-*") if path.is_dir()]
    return sorted((int(match[1]), path) for match, path in found if match)


def latest_complete(run: Path) -> Path | None:
    """The newest whole checkpoint under `run`; None if there is none."""
    return next((path for _, path in reversed(checkpoints(run)) if flaw(path) is None), None)


def steps_done(folder: Path) -> int:
    """How many steps a checkpoint was trained, whatever its folder is called now.

    Raises:
        StateFileError: its trainer state can't be read.
    """
    path = folder / "trainer_state.json"
    try:
        return int(json.loads(path.read_bytes())["global_step"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StateFileError(f"{str(path)!r} does not say its step ({error!r}); resume from another one") from error


def step_of(folder: Path) -> int:
    """The step in a checkpoint folder's name."""
    match = _NAME.fullmatch(folder.name)
    if match is None:
        raise StateFileError(f"{str(folder)!r} is not named like a checkpoint (checkpoint-STEP)")
    return int(match[1])
