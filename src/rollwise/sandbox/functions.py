"""Calls a function of a package in a sandbox, for functions that execute a model's text."""

from __future__ import annotations

import json
import os
import subprocess
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from threading import Timer
from typing import IO, Any, NamedTuple, cast

from rollwise.errors import ConfigError
from rollwise.options import check_whole
from rollwise.sandbox.boxes import start
from rollwise.sandbox.limits import Limits
from rollwise.sandbox.packages import PACKAGES, mounts_of
from rollwise.sandbox.probe import check_sandbox

_IMPORT_SECONDS = 120.0
_SLACK = 5.0


class Reply(NamedTuple):
    """What came of a call.

    Attributes:
        value: What the function returned, through JSON; None if it returned nothing.
        reason: Why there is no value: it raised, took too long, ended its process; "" if there is one.
    """

    value: Any
    reason: str


class SandboxedFunction:
    """A function that is called in sandboxes. Use it for scorers of other packages that execute a model's text.

    The function is imported once in each worker. Each call runs in a child process of its own, which is ended with all
    that it started, so a call can't change the next one. Text that takes over its call can choose the call's value, and
    nothing else: check the type and range of what you get.

    Args:
        function: `package.module:name`. The function, its arguments and its value must be JSON (numbers, text, lists,
            dictionaries).
        packages: Top-level packages that it imports and that are not installed beside Python, such as those of an
            editable install. That of `function` is found without being named.
        limits: What a call may use.
        workers: Sandboxes that work at the same time.

    Raises:
        ConfigError: There is no working sandbox on this machine, a package can't be found, or `workers` is below 1.

    Example:
        score = SandboxedFunction("reasoning_gym_scores:countdown", workers=2)
        score("6*7", {"target": 42})                         # Reply(value=1.0, reason="")
        score.map([("6*7", {...}), ("6**6**6**6", {...})])   # in the order asked
    """

    def __init__(
        self, function: str, *, packages: Sequence[str] = (), limits: Limits | None = None, workers: int = 1
    ) -> None:
        check_sandbox()
        check_whole("workers", workers, least=1)
        self.function, self.limits = function, limits or Limits()
        mounts = mounts_of([function.partition(":")[0].partition(".")[0], *packages])
        self._workers = [_Worker(function, mounts, self.limits) for _ in range(workers)]
        self._owner = 0
        weakref.finalize(self, _close, self._workers)

    def __call__(self, *args: Any, **kwargs: Any) -> Reply:
        """Call the function once.

        Raises:
            ConfigError: The function can't be imported in the sandbox.
        """
        return self._pool().submit(self._call, args, kwargs).result()

    def map(self, calls: Sequence[Sequence[Any]]) -> list[Reply]:
        """Call the function for each tuple of arguments, on all workers; replies come in the order of `calls`."""
        return list(self._pool().map(lambda args: self._call(args, {}), calls))

    def _pool(self) -> ThreadPoolExecutor:
        """Threads that live as long as this object: a sandbox ends with the thread that started it."""
        if self._owner != os.getpid():  # a fork has none of its parent's threads
            self._owner = os.getpid()
            self._threads = ThreadPoolExecutor(len(self._workers))
            self._free: SimpleQueue[_Worker] = SimpleQueue()
            for worker in self._workers:
                self._free.put(worker)
        return self._threads

    def _call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Reply:
        worker = self._free.get()
        try:
            return worker.call(args, kwargs)
        finally:
            self._free.put(worker)

    def close(self) -> None:
        """End the sandboxes; a further call starts them again."""
        _close(self._workers)


class _Worker:
    """A sandbox that answers one call after another; started at the first, and again after one that ended it."""

    def __init__(self, function: str, mounts: Mapping[str, str], limits: Limits) -> None:
        self.function, self.mounts, self.limits = function, mounts, limits
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Reply:
        if self._process is None or self._owner != os.getpid():  # a fork must not share its parent's
            self._start()
        try:
            line = json.dumps([list(args), dict(kwargs)]).encode() + b"\n"
            return self._exchange(line, self.limits.seconds * 2 + _SLACK) or Reply(None, "ended its sandbox")
        except BaseException:  # interrupted: a reply that is still to come would be taken for the next call's
            self.close()
            raise

    def _start(self) -> None:
        self._owner = os.getpid()
        settings = {"function": self.function, "paths": [PACKAGES]}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._process = start("calls", limits=self.limits, mounts=self.mounts, settings=settings, **pipes)
        first = self._exchange(b"", _IMPORT_SECONDS) or Reply(None, "can't be imported: its sandbox ended")
        if first.reason:
            self.close()
            raise ConfigError(
                f"function {self.function!r} {first.reason} (in the sandbox, with {self.limits.memory} MiB); install "
                "its packages beside Python, or name them in packages"
            )

    def _exchange(self, line: bytes, seconds: float) -> Reply | None:
        """Send a line and read the reply; None if the sandbox ended or had to be ended."""
        process = cast("subprocess.Popen[bytes]", self._process)
        timer = Timer(seconds, process.kill)
        timer.start()
        try:
            to, replies = cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)
            to.write(line)
            to.flush()
            reply = replies.readline(self.limits.output * 2**13 + 2**12)
            return Reply(*json.loads(reply))
        except (BrokenPipeError, ValueError, TypeError):
            self.close()
            return None
        finally:
            timer.cancel()

    def close(self) -> None:
        """End the sandbox."""
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            process.kill()
            process.communicate()


def _close(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        worker.close()
