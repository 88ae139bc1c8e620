"""Commands in processes of their own, forked from one that has loaded torch and TRL: those take six seconds each time.

A process so begun can be killed and interrupted like any other. Where it matters that the interpreter is new,
a test starts one itself.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, ClassVar

from lighter import lighten, without_figures

_WORKER = """
import os, runpy, sys
_, log, module, options, *how = sys.argv
for number in (1, 2):
    os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND), number)
sys.argv = [module, options, str(os.getppid()), *how]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""

FROM_SERVER = multiprocessing.get_context("forkserver")
FROM_SERVER.set_forkserver_preload(
    [
        "rollwise.training.run",
        "rollwise.cli.train",
        "rollwise.reports.run.report",
        "rollwise.reports.inference.consistency_page",
        "rollwise.simulation.curves",
    ]
)


def _run(
    arguments: tuple[str, ...],
    code: str | None,
    folder: Path,
    environment: Mapping[str, str],
    site: Path | None,
    log: Path,
) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background inherits that it is ignored
    os.chdir(folder)
    os.environ.update(environment)
    if site is not None:
        sys.path.insert(0, str(site))
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(log / name, os.O_WRONLY | os.O_CREAT), number)
    from rollwise.cli import main

    lighten()
    without_figures()

    sys.argv = ["rollwise", *arguments]
    if code is None:
        sys.exit(main(arguments))
    exec(code, {"__name__": "__main__"})


class Command:
    """`rollwise ARGUMENTS`, running.

    Args:
        arguments: the command line.
        code: a script to run in place of the command.
        folder: its working directory; by default the present one.
        environment: what is added to the environment.
        site: a folder of installed packages.
    """

    context: ClassVar[Any] = FROM_SERVER

    def __init__(
        self,
        *arguments: str,
        code: str | None = None,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        site: Path | None = None,
    ) -> None:
        self._log = Path(tempfile.mkdtemp(prefix="rollwise-command-"))
        weakref.finalize(self, shutil.rmtree, self._log, ignore_errors=True)
        given = (arguments, code, folder or Path.cwd(), environment or {}, site, self._log)
        self._process = self.context.Process(target=_run, args=given)
        self._process.start()

    @property
    def status(self) -> int | None:
        """The exit status; None while it runs."""
        return self._process.exitcode

    @property
    def said(self) -> str:
        """What it has written to standard output and, after that, to standard error."""
        return "".join((self._log / name).read_text() for name in ("out", "err") if (self._log / name).exists())

    def send(self, number: int) -> None:
        """Send it a signal."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def wait(self, timeout: float = 300.0) -> int:
        """Wait until it has ended; the exit status."""
        self._process.join(timeout)
        assert self.status is not None, self.said[-3000:]
        return self.status

    def wait_until(self, moment: Callable[[], bool], timeout: float = 180.0) -> None:
        """Wait for a moment, which must come before its end."""
        deadline = time.monotonic() + timeout
        while not moment():
            assert self.status is None, self.said[-3000:]
            assert time.monotonic() < deadline
            time.sleep(0.002)


def script(path: Path) -> str:
    """The code of a `Command` that runs a Python file, with its arguments."""
    return f"import runpy; runpy.run_path({str(path)!r}, run_name='__main__')"


def ranks(n: int, *arguments: str) -> list[Command]:
    """The same command on `n` gloo ranks, in the environment that torchrun gives them."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    group = {"WORLD_SIZE": str(n), "LOCAL_WORLD_SIZE": str(n), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return [Command(*arguments, environment={**group, "RANK": str(i), "LOCAL_RANK": str(i)}) for i in range(n)]


class Worker(Command):
    """In place of the `subprocess.Popen` of a comparison's worker; it ends with the process that forks."""

    def __init__(self, command: list[str], *, stdout: IO[bytes], **_: object) -> None:
        _, _, module, options, _, *how = command
        super().__init__(stdout.name, module, options, *how, code=_WORKER)

    def poll(self) -> int | None:
        return self.status

    @property
    def returncode(self) -> int | None:
        return self.status

    def terminate(self) -> None:
        self.send(signal.SIGTERM)

    def kill(self) -> None:
        self.send(signal.SIGKILL)


class OwnWorker(Worker):
    """A `Worker` of a comparison that is a `Command` itself: its child, which ends with it."""

    context = multiprocessing.get_context("fork")
