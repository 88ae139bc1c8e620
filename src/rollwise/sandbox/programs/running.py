"""Runs a program in a sandbox, alone or beside the sandbox of its tests."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import suppress
from threading import Timer
from typing import IO, Any, cast

from rollwise.sandbox.boxes import start
from rollwise.sandbox.limits import MIB, Limits

_START_SECONDS = 5.0
"""More time for the start of a sandbox, on a busy machine."""

_LINES = 64
_MOST = 256 * MIB
"""A sandbox's replies may be `_LINES` times as long as `Limits.output`, and at most this many bytes."""


def run_alone(role: str, request: Any, limits: Limits, *, seconds: float) -> list[Any]:
    """The replies of one sandbox to one request; those that came until it ended, or until the time was over."""
    process = start(role, limits=limits, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return _replies(process, [process], [request], limits, seconds)


def run_checked(sources: list[str], tests: dict[str, Any], limits: Limits) -> list[Any]:
    """The replies of a sandbox with `tests`, which calls functions of a second one with the program."""
    from_checks, to_program = os.pipe()
    from_program, to_checks = os.pipe()
    pipes = {"to_program": to_program, "from_program": from_program}
    try:
        program = start("functions", limits=limits, stdin=from_checks, stdout=to_checks, stderr=subprocess.DEVNULL)
        checks = start(
            "checks",
            limits=limits,
            settings=pipes,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=tuple(pipes.values()),
        )
    finally:
        for pipe in (from_checks, to_program, from_program, to_checks):
            os.close(pipe)
    return _replies(checks, [checks, program], [sources, tests], limits, limits.seconds)


def _replies(
    process: subprocess.Popen[bytes],
    processes: list[subprocess.Popen[bytes]],
    requests: list[Any],
    limits: Limits,
    seconds: float,
) -> list[Any]:
    """Send lines, read lines until the process ends, and end all processes."""

    def end() -> None:
        for each in processes:
            each.kill()

    timer = Timer(seconds + _START_SECONDS, end)
    timer.start()
    try:
        with suppress(BrokenPipeError), cast(IO[bytes], process.stdin) as to:
            to.writelines(json.dumps(request).encode() + b"\n" for request in requests)
        output = cast(IO[bytes], process.stdout).read(min(limits.output * 2**10 * _LINES, _MOST))
    finally:
        timer.cancel()
        end()
        for each in processes:
            each.wait()
        cast(IO[bytes], process.stdout).close()
    return _parsed(output)


def _parsed(output: bytes) -> list[Any]:
    found = []
    for line in output.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:  # the last line, cut by the end of the time
            break
    return found
