"""Checkpoints that count only when they are complete.

transformers writes a checkpoint's files one by one, so a kill in between leaves a folder that looks like a checkpoint.
Here a checkpoint counts only once it is *sealed*: when all else is on disk, a last file names every other with its
size and SHA-256. A resume takes the newest one that still has what was sealed, and says which it passes over, and why.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rollwise.errors import StateFileError
from rollwise.state import sync_folder, write_atomically

logger = logging.getLogger(__name__)

SEAL = "rollwise_complete.json"
_NAME = re.compile(r"checkpoint-(\d+)")


def seal(folder: Path) -> None:
    """Flush every file of a finished checkpoint to disk, then name them all in the seal."""
    sizes, hashes = {}, {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name != SEAL):
        name = path.relative_to(folder).as_posix()
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            hashes[name] = hashlib.file_digest(file, "sha256").hexdigest()
        sizes[name] = path.stat().st_size
    sync_folder(folder)
    contents: dict[str, Any] = {"files": sizes, "sha256": hashes}
    write_atomically(folder / SEAL, json.dumps({**contents, "seal": _digest(contents)}).encode())


def clear(folder: Path) -> None:
    """Remove a checkpoint that is about to be written over: files that are not written again would be taken for new."""
    (folder / SEAL).unlink(missing_ok=True)  # first, so that what is left by a kill does not count
    if folder.exists():
        shutil.rmtree(folder)


def is_sealed(folder: Path) -> bool:
    """True if a checkpoint was whole once, whatever has become of it since."""
    return (folder / SEAL).exists()


def flaw(folder: Path, *, hashes: bool = True) -> str | None:
    """What is wrong with a checkpoint, or None if it is whole.

    Args:
        folder: the checkpoint.
        hashes: also read every file, and compare its SHA-256; False compares sizes alone. Seals of older versions hold
            sizes only.
    """
    if not is_sealed(folder):
        return f"it has no seal ({SEAL}): its writing was cut short, or something else wrote it"
    try:
        sizes, digests = _read_seal(folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return f"its seal ({SEAL}) is damaged"
    for name, size in sizes.items():
        path = folder / name
        if not path.is_file():
            return f"its file {name} is missing"
        if path.stat().st_size != size:
            return f"its file {name} has {path.stat().st_size} bytes where {size} were written"
    for name, digest in digests.items() if hashes else ():
        try:
            with open(folder / name, "rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            return f"its file {name} can't be read: {error.strerror}"
        if found != digest:
            return f"its file {name} is damaged: its SHA-256 is not that of what was written"
    return None


def _digest(contents: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()


def _read_seal(folder: Path) -> tuple[dict[str, int], dict[str, str]]:
    """Sizes and SHA-256 (none in an older seal) by file; raises if the seal is not as it was written."""
    contents = json.loads((folder / SEAL).read_bytes())
    if set(contents) == {"files"}:
        return dict(contents["files"]), {}
    if contents.pop("seal") != _digest(contents):
        raise ValueError("its checksum does not match")
    return contents["files"], contents["sha256"]


def checkpoints(run: Path) -> list[tuple[int, Path]]:
    """Every checkpoint folder under `run` with its step, whole or not, oldest first."""
    found = [(_NAME.fullmatch(path.name), path) for path in run.glob("checkpoint-*") if path.is_dir()]
    return sorted((int(match[1]), path) for match, path in found if match)


def latest_complete(run: Path, *, hashes: bool = True) -> Path | None:
    """The newest whole checkpoint under `run`; None if there is none. `hashes` as for `flaw`."""
    return next((path for _, path in reversed(checkpoints(run)) if flaw(path, hashes=hashes) is None), None)


def fault_of(folder: Path, lacking: Callable[[Path], str | None]) -> str | None:
    """Why a checkpoint can't be resumed: a flaw, or what it lacks in its folder or outside; None if it can."""
    if not folder.is_dir():
        return "there is no such folder"
    return flaw(folder) or _without_optimizer(folder) or lacking(folder)


def _without_optimizer(folder: Path) -> str | None:
    alone = not any(folder.glob("rng_state*.pth"))  # written with the optimizer's state, whatever the backend
    return "it has the weights alone, without the optimizer's state (save_only_model)" if alone else None


def newest_usable(run: Path, lacking: Callable[[Path], str | None] = lambda _: None) -> Path | None:
    """The newest checkpoint under `run` that can be resumed, or None if none was ever finished.

    Every newer one is passed over with a warning that names its fault.

    Args:
        run: the folder of checkpoints.
        lacking: what a whole checkpoint lacks outside its folder (the run's logs), or None.

    Raises:
        StateFileError: some were finished, and all of these are damaged or lack something.
    """
    faults: dict[Path, str] = {}
    for _, folder in reversed(checkpoints(run)):
        fault = fault_of(folder, lacking)
        if fault is None:
            for path, why in faults.items():
                logger.warning("%s is passed over: %s", path, why)
            return folder
        faults[folder] = fault
    finished = {path: why for path, why in faults.items() if is_sealed(path)}
    if finished:
        raise StateFileError(
            f"no checkpoint in {str(run)!r} can be resumed: "
            + "; ".join(f"{path.name}: {why}" for path, why in finished.items())
            + ". Put back an intact copy of what is named, or delete these checkpoints to begin from the beginning"
        )
    return None


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


def warn_of_others(run: Path) -> None:
    """Training that begins anew leaves the checkpoints that are there alone, as transformers does."""
    newest = latest_complete(run, hashes=False)
    if newest is not None:
        logger.warning(
            "training begins anew, but %r has checkpoints already: train(resume_from_checkpoint=True) would go on "
            "with %s until this training has a later one; move them away, or give another output_dir",
            str(run),
            newest.name,
        )


def warn_of_reference(checkpoint: Path) -> None:
    """A reference model that follows the policy, and that the checkpoint does not hold."""
    logger.warning(
        "%s has no reference model (sync_ref_model with sharded weights): it is that of the beginning, and the resumed "
        "run is not the uninterrupted one",
        checkpoint,
    )


def put_aside_after(checkpoint: Path, run: Path) -> None:
    """Later checkpoints, damaged or of a course given up, would be taken for this one's when it is resumed."""
    if checkpoint.resolve().parent != run.resolve():
        return
    now = steps_done(checkpoint)
    for step, folder in checkpoints(checkpoint.parent):
        if step > now and is_sealed(folder):  # one without a seal counts for nothing, and is written over
            logger.warning("%s is of a course that is given up: renamed to given-up-%s", folder, folder.name)
            aside = folder.with_name(f"given-up-{folder.name}")
            shutil.rmtree(aside, ignore_errors=True)
            folder.rename(aside)
