"""Ranks of one run as forks of a process that has imported all: many launches for the CPU time of one import."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

from torch.multiprocessing import start_processes


def on_ranks(n: int, do: Callable[..., Any], *args: Any) -> None:
    """`do(*args)` on `n` gloo ranks, in the environment that torchrun gives them; raises what one of them raised."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    start_processes(_rank, args=(n, port, do, args), nprocs=n, start_method="fork")


def _rank(rank: int, n: int, port: int, do: Callable[..., Any], args: tuple[Any, ...]) -> None:
    if n > 1:
        given = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": n, "LOCAL_WORLD_SIZE": n, "MASTER_PORT": port}
        os.environ.update({name: str(value) for name, value in given.items()}, MASTER_ADDR="127.0.0.1")
    do(*args)
