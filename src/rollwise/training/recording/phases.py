"""The seconds of a step by phase: generation, rewards, log-probabilities, update, evaluation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

EVALUATION, JUDGING, UNCHARGED = "evaluation", "judging", "uncharged"
_WHOLE = (EVALUATION, JUDGING, UNCHARGED)
"""Phases that are not divided: what is generated and scored in them counts as theirs."""


class Phases:
    """Sums seconds by phase; of phases within one another each second counts for the innermost.

    >>> phases = Phases()
    >>> with phases.phase("update"), phases.phase("generation"):
    ...     pass
    >>> sorted(phases.take())
    ['generation', 'update']
    """

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._open: list[str] = []
        self._since = 0.0

    @property
    def current(self) -> str | None:
        """The innermost phase that is going on."""
        return self._open[-1] if self._open else None

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Inside, time counts for `name`; within a phase that is not divided, for that."""
        if self.current in _WHOLE:
            yield
            return
        self._count()
        self._open.append(name)
        try:
            yield
        finally:
            self._count()
            self._open.pop()

    def add(self, name: str, seconds: float) -> None:
        """Seconds measured otherwise."""
        self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    def take(self) -> dict[str, float]:
        """The seconds by phase since this was last called, without evaluations."""
        self._count()
        kept = {EVALUATION: self._seconds.pop(EVALUATION)} if EVALUATION in self._seconds else {}
        taken, self._seconds = self._seconds, kept
        return taken

    def take_evaluation(self) -> float:
        """The seconds of evaluations since this was last called."""
        self._count()
        return self._seconds.pop(EVALUATION, 0.0)

    def _count(self) -> None:
        now = time.perf_counter()
        if self._open:
            self.add(self._open[-1], now - self._since)
        self._since = now
