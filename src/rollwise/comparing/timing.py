"""How a run is timed: bound to cores where that is wanted, and noted in its folder's `timing.jsonl`."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path

from rollwise.child_process import available_cores
from rollwise.runs.names import CONFIG_FILE, TIMING_FILE
from rollwise.state import make_folder


def pin() -> None:
    """Bind this process to all of its cores but the first, which is left to the rest of the machine.

    Of a single core nothing is left. Threads that it starts later are bound too.
    """
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[1:] or cores)


def timed_cores() -> int:
    """How many cores `pin` leaves."""
    return max(1, available_cores() - 1)


def note_timing(folder: Path, *, jobs: int, pinned: bool, gpu: str = "") -> None:
    """Write how the run of this folder is timed from now on, by the process that trains it.

    Of a run that begins anew nothing earlier stays: an attempt that failed before it began is no part of it.
    """
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    facts = {
        "jobs": jobs,
        "cores": sorted(cores),
        "pinned": pinned,
        "processor": ", ".join(filter(None, [_processor(), gpu])),
        "load": round(load, 2),
    }
    mode = "a" if (folder / CONFIG_FILE).exists() else "w"
    with open(make_folder(folder) / TIMING_FILE, mode, encoding="utf-8") as file:
        file.write(json.dumps(facts) + "\n")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()
