"""The first function that runs inside the sandbox."""

from __future__ import annotations

import json
import os
import sys

from . import calls, cases, checks, functions, probe, unittests
from .confine import confine

_ROLES = {
    "calls": calls.serve,
    "cases": cases.run,
    "checks": checks.check,
    "functions": functions.serve,
    "probe": probe.probe,
    "unittests": unittests.run,
}


def main() -> None:
    """Confine this process, then do what the host's settings say."""
    settings = json.loads(sys.argv[1])
    confine(settings)
    requests, replies = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # what untrusted code reads and prints is no message of the host's
    os.dup2(2, 1)
    _ROLES[settings["role"]](settings, requests, replies)
