"""Takes rights and resources from this process, before it runs anything untrusted."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import struct
from typing import Any

_PR_SET_DUMPABLE, _PR_SET_SECCOMP = 4, 22

_KEEPING = {"x86_64": (0xC000003E, 29, 68), "aarch64": (0xC00000B7, 194, 186)}
"""Machine -> its kind for the kernel, and its numbers of the calls shmget and msgget."""


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
    if (machine := os.uname().machine) in _KEEPING:
        _refuse(*_KEEPING[machine])


def limit_cpu(seconds: float) -> None:
    """End this process when it has used this much CPU time; a busy machine may give it less than the wall clock."""
    _limit(resource.RLIMIT_CPU, int(seconds) + 1)


def hide_memory() -> None:
    """Forbid other processes of this user to trace this one or to read its memory."""
    _prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _refuse(kind: int, *calls: int) -> None:
    """Make these calls fail. What shmget and msgget make counts for no limit, and stays when its process has ended."""
    load, equal, least, give = 0x20, 0x15, 0x35, 0x06
    rules = [(load, 0, 0, 4), (equal, 0, len(calls) + 3, kind), (load, 0, 0, 0), (least, len(calls) + 1, 0, 2**30)]
    rules += [(equal, len(calls) - at, 0, call) for at, call in enumerate(calls)]
    rules += [(give, 0, 0, 0x7FFF0000), (give, 0, 0, 0x50000 | errno.ENOSYS)]
    filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
    _prctl(_PR_SET_SECCOMP, 2, struct.pack("HP", len(rules), ctypes.addressof(filters)))


def _prctl(*arguments: int | bytes) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(*arguments) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _limit(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))
