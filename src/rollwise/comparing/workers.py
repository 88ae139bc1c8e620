"""The processes of a comparison's runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from rollwise.child_process import available_cores
from rollwise.comparing.plan import Run
from rollwise.comparing.timing import timed_cores
from rollwise.runs.lock import lock_file
from rollwise.runs.names import LOCK_FILE
from rollwise.state import make_folder


def end_in_words(status: int) -> str:
    """How a process that failed ended, by its exit status: of a signal its log says nothing.

    >>> end_in_words(1), end_in_words(-15)
    ('exit status 1', 'ended by SIGTERM')
    """
    if status >= 0:
        return f"exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:  # a real-time signal
        name = f"signal {-status}"
    if name != "SIGKILL":
        return f"ended by {name}"
    return (
        "ended by SIGKILL, as when memory runs out: the same command goes on with it, and fewer --jobs need less; so "
        "does a plan with a smaller micro_batch"
    )


def alone_in(folder: Path) -> IO[bytes]:
    """The lock of a comparison's folder: a context, in which no other command may work on it.

    Raises:
        StateFileError: another one does.
    """
    taken = f"another process runs the comparison in {str(folder)!r}; wait for it, stop it, or give another --out"
    return lock_file(make_folder(folder) / LOCK_FILE, taken)


class Workers:
    """The processes, each with one GPU where several are visible; all of them are ended when it is left.

    Args:
        folder: the comparison's.
        jobs: how many at a time.
        pinned: bind each to the cores that `pin` leaves.
    """

    def __init__(self, folder: Path, jobs: int, *, pinned: bool = False) -> None:
        self.logs = folder / "logs"
        make_folder(self.logs)
        self.jobs, self.pinned = jobs, pinned
        self.active: dict[subprocess.Popen[bytes], Run] = {}
        self.gpus = visible_gpus()
        self._gpu_of: dict[subprocess.Popen[bytes], str] = {}
        # Each its share of the cores: threads of several runs that wait for one another slow all of them.
        threads = str(timed_cores() if pinned else max(1, available_cores() // jobs))
        self.environment = {"OMP_NUM_THREADS": threads, "OMP_WAIT_POLICY": "PASSIVE", **os.environ}

    @property
    def free(self) -> bool:
        return len(self.active) < self.jobs

    def log(self, run: Run) -> Path:
        return self.logs / f"{run.method}-seed{run.seed}.log"

    def last_words(self, run: Run) -> str:
        """The last line of its log: the error that ended it."""
        text = self.log(run).read_bytes()[-4096:].decode("utf-8", "replace")
        return next((line.strip()[:300] for line in reversed(text.splitlines()) if line.strip()), "it said nothing")

    def start(self, run: Run) -> None:
        options = self.logs / f"{run.method}-seed{run.seed}.json"
        options.write_text(json.dumps(run.config.to_dict()), encoding="utf-8")
        how = [str(self.jobs), *(["pinned"] if self.pinned else [])]
        command = [sys.executable, "-m", "rollwise.comparing.worker", str(options), str(os.getpid()), *how]
        own = {"CUDA_VISIBLE_DEVICES": self._freest()} if len(self.gpus) > 1 else {}
        with open(self.log(run), "ab") as log:
            process = subprocess.Popen(
                command, env=self.environment | own, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        self.active[process] = run
        self._gpu_of[process] = own.get("CUDA_VISIBLE_DEVICES", "")

    def _freest(self) -> str:
        """The GPU with the fewest runs, the first of several."""
        taken = [self._gpu_of[process] for process in self.active]
        return min(self.gpus, key=taken.count)

    def ended(self) -> Iterator[tuple[Run, int]]:
        """(run, exit status) of the processes that have ended since."""
        for process in [p for p in self.active if p.poll() is not None]:
            yield self.active.pop(process), process.returncode

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *error: object) -> None:
        for process in self.active:
            process.terminate()
        for process in self.active:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()


def visible_gpus() -> list[str]:
    """The names of the GPUs that this process sees, as CUDA_VISIBLE_DEVICES has them."""
    import torch

    named = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    there = range(torch.cuda.device_count())
    return named[: len(there)] or [str(number) for number in there]
