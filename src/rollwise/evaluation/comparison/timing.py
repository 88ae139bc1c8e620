"""How the runs of a comparison were timed: runs at a time, cores, and how busy the machine was."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rollwise.evaluation.comparison.data import Sorting
from rollwise.evaluation.curves import AXES
from rollwise.evaluation.run_measures import TIMED, Measure
from rollwise.runs.lines import enumeration
from rollwise.runs.names import TIMING_FILE
from rollwise.runs.sets import Problem

_UNKNOWN = "not noted how"


@dataclass(frozen=True)
class Timing:
    """What the machine did while a run trained.

    Attributes:
        jobs: runs at a time.
        cores: the numbers of the processor's cores that the run could use.
        pinned: whether it was bound to them, so that it had no others.
        processor: the processor's name, and that of a GPU.
        load: the machine's load average over the minute before the run began; 0 where it is not known.
    """

    jobs: int
    cores: tuple[int, ...]
    pinned: bool
    processor: str
    load: float

    def __str__(self) -> str:
        """What must be the same for seconds to be compared, in words."""
        at_a_time = "one at a time" if self.jobs == 1 else f"{self.jobs} at a time"
        noun = "core" if len(self.cores) == 1 else "cores"
        where = f"bound to {noun} {enumeration(self.cores)}" if self.pinned else f"on any of {len(self.cores)} {noun}"
        return f"{at_a_time}, {where} of {self.processor}"

    @property
    def busy(self) -> bool:
        """Whether something else kept a bound run's cores busy as it began; the run before it may have, itself."""
        return self.pinned and self.load > len(self.cores) + 1


def read_timings(folder: Path) -> list[Timing]:
    """How the run of this folder was timed: one entry for its start and one for each resume.

    Empty where that was not noted, or the file can't be read.
    """
    try:
        lines = (folder / TIMING_FILE).read_text(encoding="utf-8").splitlines()
        return [Timing(**{**one, "cores": tuple(one["cores"])}) for one in map(json.loads, lines)]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def settle_timing(sorting: Sorting, measures: dict[str, Measure]) -> str:
    """How the runs were timed; where they were not timed alike, seconds are taken out of axes and measures."""
    timing, unlike = timing_of((f"{method} seed {seed}", run.path) for (method, seed), run in sorting.compared.items())
    if unlike:
        sorting.problems.append(Problem("", None, "timing", unlike))
        sorting.axes = {axis: label for axis, label in AXES.items() if axis != "wall_s"}
        for key in TIMED:
            measures.pop(key, None)
    return timing


def timing_of(runs: Iterable[tuple[str, Path]]) -> tuple[str, str]:
    """How runs were timed if all were timed alike, and else why their seconds can't be compared; "" for the other.

    Both are "" where nothing is noted of any run, as of runs of an older version or of no comparison.

    Args:
        runs: the name and the folder of each.
    """
    by_conditions: dict[str, list[str]] = {}
    busy = []
    for name, folder in runs:
        timings = read_timings(folder)
        for conditions in sorted({str(timing) for timing in timings}) or [_UNKNOWN]:
            by_conditions.setdefault(conditions, []).append(name)
        busy += [f"{name} (load {timing.load:g})" for timing in timings if timing.busy]
    if set(by_conditions) <= {_UNKNOWN}:
        return "", ""
    if len(by_conditions) > 1:
        groups = [f"{conditions}: {_named(names)}" for conditions, names in by_conditions.items()]
        return "", f"seconds are not compared, because the runs were timed in different ways ({'; '.join(groups)})"
    if busy:
        return "", f"seconds are not compared, because the machine was busy when runs began: {_named(busy)}"
    return next(iter(by_conditions)), ""


def _named(names: list[str], most: int = 4) -> str:
    return enumeration(names[:most], more=max(0, len(names) - most))
