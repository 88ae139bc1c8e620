"""A program that reads its standard input and writes its standard output, run on one input after another."""

from __future__ import annotations

import functools
import json
import os
import sys
from pathlib import Path
from typing import IO, Any

from .forked import DONE, FOLDER, LATE, forked
from .lines import write_line


def run(settings: dict[str, Any], requests: IO[str], replies: IO[str]) -> None:
    """Write a line [how it ended, output] for each input. An input that takes too long is the last that is tried."""
    program, inputs = json.loads(requests.readline())
    for given in inputs:
        work = functools.partial(_run, program, given)
        ended, output = forked(work, seconds=settings["seconds"], most=settings["output"] * 2**10)
        text = output.decode(errors="replace") if ended == DONE else ""
        write_line(replies, [ended, text])
        if ended == LATE:
            return


def _run(program: str, given: str, writable: int) -> None:
    source = Path(FOLDER, "program.py")
    source.write_text(program)
    Path(FOLDER, "input").write_text(given)
    os.dup2(os.open(Path(FOLDER, "input"), os.O_RDONLY), 0)
    os.dup2(writable, 1)
    os.closerange(3, 256)
    os.execv(sys.executable, [sys.executable, "-s", "-P", "-B", str(source)])
