"""Scores rollouts in a pool of processes, for rewards that are slow, may hang, or may end their process."""

from __future__ import annotations

import logging
import os
import pickle
import subprocess
import sys
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from threading import Event, Timer
from typing import IO, Any, cast

from rollwise.child_process import kill_group
from rollwise.errors import RewardError

logger = logging.getLogger(__name__)

SCORED, RAISED, LATE, ENDED = "scored", "raised", "late", "ended"
"""What came of a rollout: its score, an error of the reward's, no reply in time, or the end of the process."""

_UNSENT = frozenset({"environments", "trainer_state", "log_extra", "log_metric"})
"""What TRL gives besides columns: no other process can have it."""


class RewardPool:
    """A reward function by its name, called in processes of its own, with one rollout at a time.

    A rollout that takes longer than `timeout`, or whose process ends, can't be scored (None); the process is begun
    again and a warning says how many there were. The processes start at the first call and end with this one.

    Args:
        where: as `--reward` takes it: `file.py:function`, `package.module:function`, a built-in name.
        name: the reward's name, for messages.
        workers: how many processes.
        timeout: seconds that a rollout may take.
    """

    def __init__(self, where: str, *, name: str, workers: int, timeout: float) -> None:
        self.where, self.name, self.timeout = where, name, timeout
        self.__name__ = name  # TRL names it so in its logs
        self.workers = [_Worker(where, timeout) for _ in range(workers)]
        weakref.finalize(self, _close, self.workers)

    def __call__(self, **columns: Any) -> list[float | None]:
        """Scores of n rollouts.

        Raises:
            RewardError: the function can't be loaded, raised, or gave something else than a finite number or None.
        """
        n = len(columns["completions"])
        sent = {k: v for k, v in columns.items() if k not in _UNSENT and isinstance(v, Sequence) and len(v) == n}
        free: SimpleQueue[_Worker] = SimpleQueue()
        for worker in self.workers:
            free.put(worker)

        def score(row: int) -> tuple[str, Any]:
            worker = free.get()
            try:
                return worker.score({name: [values[row]] for name, values in sent.items()})
            finally:
                free.put(worker)

        with ThreadPoolExecutor(len(self.workers)) as threads:
            try:
                replies = list(threads.map(score, range(n)))
            except BaseException:  # interrupted: end what is being scored, so that the threads end
                threads.shutdown(wait=False, cancel_futures=True)
                self.close()
                raise
        return self._scores(replies)

    def _scores(self, replies: Sequence[tuple[str, Any]]) -> list[float | None]:
        raised = next((value for kind, value in replies if kind == RAISED), None)
        if raised is not None:
            raise RewardError(f"reward {self.name!r} {raised}")
        why = {LATE: f"took more than {self.timeout:g} s (reward_timeout)", ENDED: "ended their process"}
        for kind, what in why.items():
            if n := sum(reply[0] == kind for reply in replies):
                logger.warning("reward %r: %d of %d rollouts %s and are not scored", self.name, n, len(replies), what)
        return [value if kind == SCORED else None for kind, value in replies]

    def close(self) -> None:
        """End the processes; a further call begins them again."""
        _close(self.workers)


class _Worker:
    """A process that scores one rollout after another; begun at the first, and again after one that ended it."""

    def __init__(self, where: str, timeout: float) -> None:
        self.where, self.timeout = where, timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def score(self, columns: dict[str, Any]) -> tuple[str, Any]:
        """What came of one rollout, and the score or the error."""
        if self._process is None or self._owner != os.getpid():  # a fork must not share its parent's
            self._start()
            if (reply := self._reply()) is not None and reply[0] == RAISED:
                return reply
        process = cast("subprocess.Popen[bytes]", self._process)
        late = Event()

        def end() -> None:
            late.set()
            kill_group(process)

        timer = Timer(self.timeout, end)
        timer.start()
        try:
            with suppress(BrokenPipeError):
                to = cast(IO[bytes], process.stdin)
                pickle.dump(columns, to)
                to.flush()
            reply = self._reply()
        finally:
            timer.cancel()
        if reply is not None:
            return reply
        self.close()
        return (LATE if late.is_set() else ENDED), None

    def _reply(self) -> tuple[str, Any] | None:
        """The next reply; None if the process ended."""
        with suppress(EOFError, pickle.UnpicklingError):
            return cast("tuple[str, Any]", pickle.load(cast(IO[bytes], cast(Any, self._process).stdout)))
        return None

    def _start(self) -> None:
        self._owner = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "rollwise.sampling.reward_worker", self.where, str(os.getpid())],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # so that what a reward starts ends with it
        )

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            kill_group(process)
            process.wait()


def _close(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        worker.close()
