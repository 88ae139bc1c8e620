"""Temporary folders of builds in the cache: who works in one holds a lock on it, so that what a kill left is known.

A scratch folder holds `lock`, `built` (what becomes the artefact) and `kept` (what a killed build goes on with).
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

if sys.platform != "win32":
    import fcntl

_LOCK, _BUILT, _KEPT = "lock", "built", "kept"
_BEGUN = ".begun-"
_NAME = re.compile(r"\.(?P<place>.+-[0-9a-f]{16})\.[^.]+")
_UNLOCKED_FOR_S = 86_400
"""A folder without a lock may be an earlier version's, which is still building in it: it is left alone for a day."""


class Scratch:
    """A scratch folder that this process holds.

    Args:
        folder: It.
        lock: The descriptor that holds its lock.
    """

    def __init__(self, folder: Path, lock: int) -> None:
        self.folder, self._lock = folder, lock
        shutil.rmtree(self.built, ignore_errors=True)
        self.built.mkdir()

    @property
    def built(self) -> Path:
        """What becomes the artefact."""
        return self.folder / _BUILT

    @classmethod
    def of(cls, place: Path) -> Scratch:
        """One for the artefact at `place`: the newest that a killed build kept something in, else a new one.

        Raises:
            OSError: it can't be made.
        """
        left = [folder for folder in place.parent.glob(f".{place.name}.*") if _kept_files(folder)]
        for folder in sorted(left, key=_written, reverse=True):
            lock = _locked(folder)
            if lock is not None:
                return cls(folder, lock)
        # Its maker's alone; what is in it is not. It gets its name when it is locked, so that nobody clears it before.
        begun = Path(tempfile.mkdtemp(prefix=_BEGUN, dir=place.parent))
        (begun / _LOCK).touch()
        lock = _locked(begun)
        folder = begun.with_name(f".{place.name}.{begun.name.removeprefix(_BEGUN)}")
        begun.rename(folder)
        return cls(folder, -1 if lock is None else lock)

    def close(self, *, keep: bool = False) -> None:
        """Remove the folder, unless what the build kept is to be kept; let go of it."""
        if not keep or not _kept_files(self.folder):
            shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)


def kept_beside(building: Path) -> Path:
    """Where the build of `building` may keep what a killed one goes on with; the folder is made by who writes."""
    return building.parent / _KEPT


def clear_left_behind(root: Path, whole: Callable[[Path], bool]) -> None:
    """Remove the scratch folders of processes that are gone, unless their artefact is still to be finished from them.

    Args:
        root: The cache's folder.
        whole: Whether the artefact at a place is finished.
    """
    for folder in root.glob(".*"):
        match, begun = _NAME.fullmatch(folder.name), folder.name.startswith(_BEGUN)
        if not (match or begun) or not folder.is_dir():
            continue
        if match and _kept_files(folder) and not whole(root / match["place"]):
            continue
        if begun or not (folder / _LOCK).exists():
            if time.time() - _written(folder) > _UNLOCKED_FOR_S:
                shutil.rmtree(folder, ignore_errors=True)
            continue
        lock = _locked(folder)
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def _locked(folder: Path) -> int | None:
    """A descriptor that holds the folder's lock; None if another process holds it, or nothing can be locked here."""
    if sys.platform == "win32":
        return None
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # of this descriptor alone: threads exclude one another too
        if os.path.samestat(os.fstat(lock), os.stat(folder / _LOCK)):  # not removed meanwhile
            return lock
    except OSError:
        pass
    os.close(lock)
    return None


def _kept_files(folder: Path) -> bool:
    try:
        return any((folder / _KEPT).iterdir())
    except OSError:
        return False


def _written(folder: Path) -> float:
    try:
        return max(part.stat().st_mtime for part in (folder, *folder.iterdir()))
    except (OSError, ValueError):
        return time.time()
