"""Ranks of one run as forks of a process that has imported all: many launches for the CPU time of one import."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any

from torch.distributed.elastic.multiprocessing.subprocess_handler import subprocess_handler
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


class Rank:
    """In place of the `Popen` by which torchrun starts a rank, and of a new interpreter for each."""

    def __init__(self, args: tuple[str, ...], env: Mapping[str, str], **_: object) -> None:
        words = list(args[args.index("-m") + 1 :])
        self._process = multiprocessing.get_context("fork").Process(target=self._run, args=(words, env))
        self._process.start()
        self.pid = self._process.pid

    @staticmethod
    def _run(words: list[str], env: Mapping[str, str]) -> None:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)  # a fork has torchrun's handlers
        os.environ.update(env)
        _run_module(words)

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int | None:
        self._process.join(timeout)
        return self._process.exitcode


def torchrun(*words: str) -> None:
    """`torchrun WORDS` in this process, whose ranks are forks of it."""
    subprocess_handler.Popen = Rank  # type: ignore[attr-defined]
    _run_module(["torch.distributed.run", *words])


def _run_module(words: list[str]) -> None:
    sys.argv = words
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)
