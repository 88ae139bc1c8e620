"""Following a run's files while they grow: whole lines only, from where the last look ended.

A writer may be in the middle of a line, may be killed there, and a resumed run replaces its files by shorter ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from rollwise.errors import RollwiseError, StateFileError
from rollwise.renamed import with_new_names
from rollwise.runs.folder import as_counted, engine_of
from rollwise.runs.lines import parse_line, refuse_samples
from rollwise.runs.names import CONFIG_FILE, EVALUATIONS_FILE, METRICS_FILE, REWARDS_FILE, ROLLOUTS_FILE
from rollwise.runs.reading import read_rewards
from rollwise.runs.solved import SolvedRule
from rollwise.watching.held_out import read_held_out
from rollwise.watching.history import History
from rollwise.yaml_file import read_yaml

# Read at one look: so much that a long log is caught up with soon, so little that the screen is not kept waiting.
CHUNK_BYTES = 2**24
# Of the rollouts, which may be gigabytes, a watcher needs the newest alone.
NEWEST_ROLLOUT_BYTES = 2**25
_MARK_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at a file found.

    Attributes:
        rows: the new lines' objects; None for a line that holds none.
        replaced: what was read before is no longer in the file: forget it.
        behind: there is more to read at once.
    """

    rows: list[dict[str, Any] | None]
    replaced: bool = False
    behind: bool = False


class LineFollower:
    """Reads a growing file of one JSON object a line.

    That a file was replaced shows in the bytes before the place reached: not in its size, which may have grown past
    that place again, nor in its inode, which network file systems invent.

    Args:
        path: the file; it need not be there yet.
        newest_bytes: begin at most so far before the end; None begins at the start.
        chunk_bytes: most to read at one look, but for a line that is longer.
    """

    def __init__(self, path: Path, *, newest_bytes: int | None = None, chunk_bytes: int = CHUNK_BYTES) -> None:
        self.path = path
        self.newest_bytes = newest_bytes
        self.chunk_bytes = chunk_bytes
        self._forget()

    def _forget(self) -> None:
        self._offset = 0
        self._mark = b""

    def look(self) -> Look:
        """What is new since the last look.

        Raises:
            StateFileError: the file is there but can't be read.
        """
        try:
            with open(self.path, "rb") as file:
                return self._read(file)
        except FileNotFoundError:
            replaced = self._offset > 0
            self._forget()
            return Look([], replaced=replaced)
        except OSError as error:
            raise StateFileError(f"{str(self.path)!r} can't be read: {error.strerror or error}") from error

    def _read(self, file: BinaryIO) -> Look:
        size = file.seek(0, 2)
        replaced = not self._goes_on(file, size)
        if replaced:
            self._forget()
        if self._offset == 0 and self.newest_bytes is not None and size > self.newest_bytes:
            file.seek(size - self.newest_bytes)
            file.readline()  # begun before that place
            self._offset = file.tell()
        file.seek(self._offset)
        data = file.read(self.chunk_bytes)
        if b"\n" not in data and len(data) == self.chunk_bytes:
            data += file.readline()
        whole = data[: data.rfind(b"\n") + 1]  # what follows is still being written, or was torn
        self._offset += len(whole)
        self._mark = (self._mark + whole)[-_MARK_BYTES:]
        rows = [parse_line(line)[0] for line in whole.split(b"\n") if line.strip()]
        return Look(rows, replaced=replaced, behind=len(data) >= self.chunk_bytes)

    def _goes_on(self, file: BinaryIO, size: int) -> bool:
        if size < self._offset:
            return False
        file.seek(self._offset - len(self._mark))
        return file.read(len(self._mark)) == self._mark


class RunFollower:
    """Keeps a run's history up to date.

    Args:
        path: the run's folder; it need not be there yet.
        name: what to call it; the folder's name by default.
        rollouts: whether to follow `rollouts.jsonl` too.
    """

    def __init__(self, path: Path, *, name: str | None = None, rollouts: bool = True) -> None:
        self.path = path
        self.name = name or path.resolve().name
        self.history = History()
        self._metrics = LineFollower(path / METRICS_FILE)
        self._rollouts = LineFollower(path / ROLLOUTS_FILE, newest_bytes=NEWEST_ROLLOUT_BYTES) if rollouts else None
        self._seen: dict[str, tuple[int, int]] = {}

    @property
    def begun(self) -> bool:
        """Whether there is a run in the folder."""
        return bool(self.history.config) or self.history.step is not None

    def look(self) -> bool:
        """Take in what is new; whether there is more to read at once.

        Raises:
            StateFileError: a file is there but can't be read, or it is no run's folder.
        """
        if (config := self._changed(CONFIG_FILE, _read_config)) is not None:
            refuse_samples(self.path, config[0])
            self.history.config = config[0]
            self.history.launched = engine_of(self.path) is not None
        if (rewards := self._changed(REWARDS_FILE, read_rewards)) is not None:
            self.history.known_rule = None if rewards[0] is None else SolvedRule.of(rewards[0])
        found = self._metrics.look()
        if found.replaced:
            self.history.forget_metrics()
        for row in found.rows:
            self.history.add_metrics(row)
        if self._rollouts is None:
            return found.behind
        if (scores := self._changed(EVALUATIONS_FILE, read_held_out)) is not None:
            self.history.held_out = scores[0]
        groups = self._rollouts.look()
        if groups.replaced:
            self.history.forget_groups()
        for row in groups.rows:
            self.history.add_group(row)
        return found.behind or groups.behind

    def _changed(self, name: str, read: Callable[[Path], Any]) -> tuple[Any] | None:
        """A file's contents where it has changed since the last look, as a run may be extended; else None."""
        path = self.path / name
        try:
            status = path.stat()
            seen = status.st_mtime_ns, status.st_size
            if seen == self._seen.get(name):
                return None
            found = read(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.history.faults[name] = f"{str(path)!r} can't be read: {error.strerror}"
            return None
        except RollwiseError as error:  # the other runs, and what else there is of this one, are shown all the same
            self.history.faults[name] = str(error)
            return None
        self._seen[name] = seen
        self.history.faults.pop(name, None)
        return (found,)


def _read_config(path: Path) -> dict[str, Any]:
    values = read_yaml(path)
    return as_counted(with_new_names("train", values), path.parent) if isinstance(values, dict) else {}
