"""Which runs are watched: those named, and those that a comparison's folder plans."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rollwise.errors import StateFileError
from rollwise.runs.names import COMPARISON_FILE
from rollwise.runs.sets import split_seeds
from rollwise.watching.follow import RunFollower
from rollwise.watching.snapshot import Snapshot
from rollwise.watching.state import take_snapshot
from rollwise.yaml_file import read_yaml

RUNS_FOLDER = "runs"


@dataclass(frozen=True, slots=True)
class Planned:
    """One run of a comparison: its folder, and what the table calls it."""

    path: Path
    name: str


class Targets:
    """The runs to watch; a comparison's are found again at each look, as it may begin later than the watcher.

    Args:
        paths: folders of runs or of comparisons; they need not be there yet.

    Raises:
        StateFileError: one of them is a file.
    """

    def __init__(self, paths: Sequence[str | os.PathLike[str]]) -> None:
        self.paths = [Path(path) for path in paths]
        for path in self.paths:
            if path.exists() and not path.is_dir():
                raise StateFileError(f"{str(path)!r} is not a folder; give a run's folder, such as runs/first")
        self.side_by_side = len(self.paths) > 1
        self._followers: dict[Path, RunFollower] = {}

    def look(self) -> bool:
        """Take in what is new; whether there is more to read at once.

        Raises:
            StateFileError: a file is there but can't be read.
        """
        planned = [(path, planned_runs(path)) for path in self.paths]
        self.side_by_side = len(self.paths) > 1 or any(runs for _, runs in planned)
        names = [str(path) for path in self.paths] if self._alike() else [path.resolve().name for path in self.paths]
        wanted: dict[Path, str] = {}
        for (path, runs), name in zip(planned, names, strict=True):
            several = len(self.paths) > 1
            own = {run.path: f"{name}/{run.name}" if several else run.name for run in runs}
            wanted.update(own or {path: name})
        self._followers = {
            path: self._followers.get(path) or RunFollower(path, name=name, rollouts=not self.side_by_side)
            for path, name in wanted.items()
        }
        behind = [follower.look() for follower in self._followers.values()]
        return any(behind)

    def _alike(self) -> bool:
        """Whether two folders have the same name."""
        return len({path.resolve().name for path in self.paths}) < len(self.paths)

    @property
    def missing(self) -> list[Path]:
        """The folders that hold no run."""
        begun = {path for path, follower in self._followers.items() if follower.begun}
        return [path for path in self.paths if not any(path == run or path in run.parents for run in begun)]

    def snapshots(self, now: float) -> list[Snapshot]:
        """Every run at `now`, in seconds since the epoch."""
        return [take_snapshot(follower.name, follower.history, now) for follower in self._followers.values()]


def planned_runs(folder: Path) -> list[Planned]:
    """A comparison's runs, begun or not, method by method; none where the folder is not a comparison's.

    Raises:
        ConfigError: Its seeds are not what a plan's can be.
        StateFileError: `comparison.yaml` is there but can't be read, or names no methods or seeds.
    """
    path = folder / COMPARISON_FILE
    try:
        plan = read_yaml(path)
    except StateFileError as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
            return []
        raise
    methods = plan.get("methods") if isinstance(plan, dict) else None
    if not isinstance(methods, list | dict) or not methods or "seeds" not in plan:
        raise StateFileError(
            f"{str(path)!r} must have entries 'methods' and 'seeds', as `rollwise compare` writes them"
        )
    report, tune = split_seeds(plan["seeds"])
    return [
        Planned(folder / RUNS_FOLDER / str(method) / f"seed{seed}", f"{method}/seed{seed}")
        for method in methods
        for seed in (*report, *tune)
    ]
