"""The first function that runs inside the sandbox."""

from __future__ import annotations

import importlib
import json
import os
import sys

from .confine import confine

_ROLES = {
    "calls": ("calls", "serve"),
    "cases": ("cases", "run"),
    "checks": ("checks", "check"),
    "functions": ("functions", "serve"),
    "probe": ("probe", "probe"),
    "unittests": ("unittests", "run"),
}
"""Role -> module, which is imported alone so that a sandbox starts quickly, and function."""


def main() -> None:
    """Confine this process, then do what the host's settings say."""
    settings = json.loads(sys.argv[1])
    confine(settings)
    requests, replies = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # what untrusted code reads and prints is no message of the host's
    os.dup2(2, 1)
    module, function = _ROLES[settings["role"]]
    getattr(importlib.import_module(f".{module}", __package__), function)(settings, requests, replies)
