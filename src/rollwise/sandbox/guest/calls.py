"""Calls a trusted function with untrusted arguments, each call in a child process of its own."""

from __future__ import annotations

import functools
import importlib
import json
import os
import sys
from typing import IO, Any

from .confine import hide_memory
from .forked import DIED, DONE, LATE, LONG, forked
from .lines import write_line


def serve(settings: dict[str, Any], requests: IO[str], replies: IO[str]) -> None:
    """Answer until the input ends: a line [args, kwargs] gets a line [value, reason].

    The first line written is `[null, ""]`, or why the function can't be imported.
    """
    hide_memory()
    sys.path[:0] = settings["paths"]
    module, _, name = settings["function"].partition(":")
    try:
        function = functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except BaseException as error:
        write_line(replies, [None, f"can't be imported: {error!r:.300}"])
        return
    write_line(replies, [None, ""])
    most = settings["output"] * 2**10
    for line in requests:
        args, kwargs = json.loads(line)
        work = functools.partial(_call, function, args, kwargs)
        ended, output = forked(work, seconds=settings["seconds"], most=most)
        write_line(replies, _reply(ended, output, settings))


def _call(function: Any, args: list[Any], kwargs: dict[str, Any], writable: int) -> None:
    try:
        reply = json.dumps([function(*args, **kwargs), ""])
    except BaseException as error:
        reply = json.dumps([None, f"raised {error!r:.300}"])
    with os.fdopen(writable, "w") as file:
        file.write(reply)


def _reply(ended: str, output: bytes, settings: dict[str, Any]) -> tuple[Any, str]:
    """The value and the reason of what a child wrote. Untrusted code may have written it."""
    if ended == DONE:
        try:
            value, reason = json.loads(output)
            return value, str(reason)[:400]
        except (ValueError, TypeError, RecursionError):
            return None, "gave no reply"
    return None, {
        LATE: f"took more than {settings['seconds']:g} s",
        LONG: f"gave more than {settings['output']} KiB",
        DIED: "ended its process",
    }[ended]
