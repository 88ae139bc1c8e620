"""Child processes that do not outlive their parent, and how many may run at once."""

from __future__ import annotations

import os
import signal
import threading
import time

_LOOK_SECONDS = 0.5


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def leave_interrupts_to(parent: int) -> None:
    """In a worker process: Ctrl-C is left to the parent, and when that is gone, so is this."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with(parent)


def end_with(parent: int) -> None:
    """End this process when `parent`, its parent's id, is gone, killed or not; begun again it would start another."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os._exit(1)  # as after a kill

    threading.Thread(target=watch, daemon=True).start()
