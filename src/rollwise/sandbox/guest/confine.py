"""Takes rights and resources from this process, before it runs anything untrusted."""

from __future__ import annotations

import ctypes
import os
import resource
from typing import Any

_PR_SET_DUMPABLE = 4


def confine(settings: dict[str, Any]) -> None:
    """Drop the root user where the host is root, and set the limits that last for the whole sandbox.

    The number of processes is limited here and not by the host: the kernel counts processes of this user in this user
    namespace, and for root it counts none.
    """
    if (uid := settings["uid"]) is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    _limit(resource.RLIMIT_NPROC, settings["processes"])
    _limit(resource.RLIMIT_AS, settings["memory"] * 2**20)
    _limit(resource.RLIMIT_FSIZE, settings["output"] * 2**10)
    _limit(resource.RLIMIT_NOFILE, 256)
    _limit(resource.RLIMIT_CORE, 0)


def limit_cpu(seconds: float) -> None:
    """End this process when it has used this much CPU time; a busy machine may give it less than the wall clock."""
    _limit(resource.RLIMIT_CPU, int(seconds) + 1)


def hide_memory() -> None:
    """Forbid other processes of this user to trace this one or to read its memory."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _limit(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))
