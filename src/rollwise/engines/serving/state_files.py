"""A folder of a service's saved states, one file a step."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import IO, Any

from rollwise.errors import StateFileError
from rollwise.options import check_whole
from rollwise.runs.lock import lock_file
from rollwise.runs.names import LOCK_FILE
from rollwise.state import load_state, make_folder, save_state

logger = logging.getLogger(__name__)

_NAME = re.compile(r"curriculum-(\d+)\.state")


class StateFiles:
    """Writes `curriculum-STEP.state`, each whole or not at all, and keeps the newest.

    Files of later steps than the one that was read, or else the one that is written, are renamed to
    `given-up-curriculum-STEP.state` by the next write: the run goes another way, or is another one.

    Args:
        path: the folder; made if it is not there. One process writes to it at a time.
        keep: how many files are kept; None: all.

    Raises:
        StateFileError: the folder can't be made, or another process writes to it.
    """

    def __init__(self, path: str | os.PathLike[str], *, keep: int | None) -> None:
        self.keep = None if keep is None else check_whole("keep", keep, least=1)
        self.path = make_folder(path)
        self._read: int | None = None
        self._lock: IO[bytes] | None = lock_file(
            self.path / LOCK_FILE,
            f"another service saves to {str(path)!r}; connect to it, stop it, or give another folder",
        )
        for scratch in self.path.glob(".curriculum-*.tmp"):  # of a process that was killed while it wrote
            scratch.unlink(missing_ok=True)

    def steps(self) -> list[int]:
        """The steps that are there, in order."""
        names = (_NAME.fullmatch(path.name) for path in self.path.iterdir())
        return sorted(int(name[1]) for name in names if name)

    def file(self, step: int) -> Path:
        """Where the state of `step` is."""
        return self.path / f"curriculum-{step}.state"

    def write(self, step: int, state: dict[str, Any]) -> Path:
        """Save the state of `step`, then remove what is older than the newest `keep`.

        Raises:
            OSError: it can't be written; the states up to `step` are as they were.
        """
        last = step if self._read is None else min(self._read, step)
        for later in self.steps():
            if last < later != step:  # first: a kill between the two must not leave them the newest
                self.file(later).replace(self.path / f"given-up-{self.file(later).name}")
        written = save_state(self.file(step), state)
        self._read = None
        if self.keep is not None:
            for old in self.steps()[: -self.keep]:
                self.file(old).unlink(missing_ok=True)
        return written

    def read(self, step: int | None = None) -> tuple[int, dict[str, Any]]:
        """The state of `step`; of the newest step whose file is whole by default.

        Raises:
            StateFileError: there is none, or the one of `step` is missing or damaged.
        """
        for candidate in [step] if step is not None else reversed(self.steps()):
            try:
                state = load_state(self.file(candidate))
            except StateFileError as error:
                if step is not None:
                    there = ", ".join(map(str, self.steps())) or "no step"
                    raise StateFileError(f"{error}; {str(self.path)!r} has {there}") from error
                logger.warning("%s", error)
                continue
            self._read = candidate
            return candidate, state
        raise StateFileError(f"{str(self.path)!r} has no state that can be read: save one first, or begin anew")

    def close(self) -> None:
        """Let another process write to the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
