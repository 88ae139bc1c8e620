"""A service's states: taken at once, encoded and written beside the calls that are served meanwhile."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rollwise.curricula import JoinReport
from rollwise.engines.serving.desk import Desk
from rollwise.engines.serving.queueing import Serving
from rollwise.engines.serving.state_files import StateFiles
from rollwise.errors import ConfigError
from rollwise.options import check_whole
from rollwise.snapshot import Snapshot


class Saving(Serving):
    """Saves and loads what is behind a desk; see `CurriculumService` for the arguments."""

    def __init__(self, desk: Desk, folder: str | os.PathLike[str] | None, keep: int | None) -> None:
        super().__init__(desk)
        _ = desk.curriculum.pool.encoded_ids  # made once: the first save need not wait for it
        self._saving = threading.Lock()
        self._snapshot = Snapshot()
        self._snapshot.take(desk.curriculum.state_dict)  # its memory is there before the first save
        self._files = None if folder is None else StateFiles(folder, keep=keep)
        self._saved_step: int | None = None

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on, JSON-safe: the curriculum, and who holds what. Calls are served meanwhile."""
        with self._saving:
            state: dict[str, Any] = self._snapshot.encoded(self.run(self._take))
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> JoinReport:
        """Go on from what `state_dict` returned, or from the state of a curriculum.

        Tickets that were open then are open again, and their seconds begin anew.

        Raises:
            StateError: it does not fit, or is damaged. Nothing has changed then.
        """
        desk = self.desk

        parts = state if isinstance(state, Mapping) and "curriculum" in state else {"curriculum": state}

        def load() -> JoinReport:
            held = desk.in_flight.read(parts.get("service", {}))
            report = desk.curriculum.load_state_dict(parts["curriculum"])
            if not desk.curriculum.owns_clock:  # the state is of a curriculum alone
                desk.curriculum.advance(desk.curriculum.step)
            desk.in_flight.load(held, desk.curriculum.open_tickets(), desk.clock())
            desk.synchronise()
            return report

        return self.run(load)

    def save(self, step: int) -> Path:
        """Save to `curriculum-STEP.state` in the folder; returns when it is on disk. Calls are served meanwhile.

        Raises:
            ConfigError: the service has no folder.
            OSError: it can't be written; files that were there stay.
        """
        step = check_whole("step", step, least=0)
        files = self._folder()
        with self._saving:
            path = files.write(step, self._snapshot.encoded(self.run(self._take)))
            self._saved_step = step
        return path

    def load(self, step: int | None = None) -> int:
        """Go on from the saved state of `step`, by default of the newest that is whole; returns its step.

        Raises:
            ConfigError: the service has no folder.
            StateFileError: there is no such file, or it is damaged.
            StateError: it does not fit. Nothing has changed in any case.
        """
        found, state = self._folder().read(step)
        self.load_state_dict(state)
        self._saved_step = found
        return found

    def saved_steps(self) -> list[int]:
        """The steps whose states are in the folder, damaged ones included, in order; none without a folder."""
        return [] if self._files is None else self._files.steps()

    def close(self) -> None:
        """Let another service use the folder."""
        if self._files is not None:
            self._files.close()

    def _take(self) -> dict[str, Any]:
        return {
            "curriculum": self._snapshot.take(self.desk.curriculum.state_dict),
            "service": self.desk.in_flight.state_dict(),
        }

    def _folder(self) -> StateFiles:
        if self._files is None:
            raise ConfigError("this service has no folder to save to or load from; give `folder` when it is made")
        return self._files
