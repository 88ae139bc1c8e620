"""Runs one piece of untrusted work in a child process, and cleans up after it."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

from .confine import limit_cpu

FOLDER = "/tmp"
DONE, LATE, LONG, DIED = "done", "late", "long", "died"
"""How the work ended: by itself, after too much time, after too much output, or by another exit status."""


def forked(work: Callable[[int], None], *, seconds: float, most: int) -> tuple[str, bytes]:
    """How `work` ended, and the first `most` bytes that it wrote to the file descriptor it was given.

    Everything that the child started is killed, and everything that it wrote into `FOLDER` is deleted.
    """
    readable, writable = os.pipe()
    child = _fork()
    if child == 0:
        os.close(readable)
        _work(work, writable, seconds)
    os.close(writable)
    try:
        ended, output = _read(readable, time.monotonic() + seconds, most)
        if ended == DONE and not _exited(child, time.monotonic() + seconds):
            ended = LATE
    finally:
        os.close(readable)
        status = _clean_up(child)
    return (DIED if ended == DONE and status != 0 else ended), output


def _fork() -> int:
    """`os.fork`, again if the processes that were killed before still count."""
    for _ in range(100):
        with contextlib.suppress(BlockingIOError):
            return os.fork()
        time.sleep(0.01)
    return os.fork()


def _work(work: Callable[[int], None], writable: int, seconds: float) -> None:
    """In the child: do it with the null device as standard streams; never returns."""
    status = 1
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        os.dup2(writable, 3)
        os.closerange(4, 256)  # the host's pipes among them
        limit_cpu(seconds)
        work(3)
        status = 0
    finally:
        os._exit(status)


def _read(readable: int, deadline: float, most: int) -> tuple[str, bytes]:
    output = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(readable, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not selector.select(left):
                return LATE, bytes(output)
            block = os.read(readable, 2**16)
            if not block:
                return DONE, bytes(output)
            output += block
            if len(output) > most:
                return LONG, bytes(output[:most])


def _exited(child: int, deadline: float) -> bool:
    """Whether the child, which closed its output, ends too; it stays a zombie until `_clean_up`."""
    while os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


def _clean_up(child: int) -> int:
    """Kill everything in the sandbox but this process, and empty its folder; the child's exit status."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for path in Path(FOLDER).iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return status
