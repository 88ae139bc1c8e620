"""Child processes that do not outlive their parent, and how many may run at once."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from contextlib import suppress

_LOOK_SECONDS = 0.5


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that was started with `start_new_session=True`, and all that it started and that is still there.

    What it started may hold its pipes open, and would run on for ever where it hangs.
    """
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def leave_interrupts_to(parent: int) -> None:
    """In a worker process: Ctrl-C is left to the parent, and when that is gone, so is this."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with(parent)


def end_with(parent: int) -> None:
    """End this process when `parent`, its parent's id, is gone, killed or not; begun again it would start another.

    Where it leads a group of processes, all that it started end with it.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
            os.killpg(os.getpid(), signal.SIGKILL)
        os._exit(1)  # as after a kill

    threading.Thread(target=watch, daemon=True).start()
