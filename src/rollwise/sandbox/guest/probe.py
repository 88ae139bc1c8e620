"""Says whether the sandbox keeps its promises here."""

from __future__ import annotations

import os
import resource
import socket
from typing import IO, Any


def probe(settings: dict[str, Any], requests: IO[str], replies: IO[str]) -> None:
    """Write a line with what does not hold; an empty one where all does."""
    wrong = []
    if os.getuid() == 0:
        wrong.append("the user is still root")
    if any(os.path.exists(path) for path in ("/etc/passwd", "/proc/self", "/var", "/sys")):
        wrong.append("files of the machine can be seen")
    if [name for _, name in socket.if_nameindex()] != ["lo"]:
        wrong.append("the network is there")
    if resource.getrlimit(resource.RLIMIT_NPROC)[1] > settings["processes"]:
        wrong.append("the number of processes has no limit")
    for folder in ("/", "/usr", "/dev", "/dev/shm"):
        if os.access(folder, os.W_OK):
            wrong.append(f"{folder} can be written")
    replies.write("; ".join(wrong) + "\n")
    replies.flush()
