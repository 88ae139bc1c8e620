"""How fast a service answers: the numbers of `CurriculumService.metrics`."""

from __future__ import annotations

from collections import deque

import numpy as np

WINDOW = 4_096
"""How many asks, and how many rounds of work, the numbers are taken over."""


class Meter:
    """Measures asks and the time spent in them, over the last `WINDOW` of each."""

    def __init__(self) -> None:
        self._asks: deque[tuple[float, float]] = deque(maxlen=WINDOW)
        self._rounds: deque[tuple[float, float]] = deque(maxlen=WINDOW)
        self.spent = 0.0
        """Seconds at work since the beginning."""

    def ask(self, came: float, answered: float) -> None:
        """An ask that came and was answered then, seconds."""
        self._asks.append((came, answered))

    def work(self, began: float, ended: float) -> None:
        """A round of work, seconds."""
        self._rounds.append((began, ended))
        self.spent += ended - began

    def metrics(self, now: float) -> dict[str, float]:
        """Asks a second, p50 and p99 from call to answer in seconds, share of the time at work."""
        numbers: dict[str, float] = {}
        if self._asks:
            times = np.array(self._asks)
            p50, p99 = np.quantile(times[:, 1] - times[:, 0], [0.5, 0.99])
            rate = len(times) / max(now - times[:, 0].min(), 1e-9)
            numbers |= {"asks_per_second": rate, "ask_p50": float(p50), "ask_p99": float(p99)}
        if self._rounds:
            times = np.array(self._rounds)
            numbers["busy"] = float((times[:, 1] - times[:, 0]).sum() / max(now - times[0, 0], 1e-9))
        return {f"service/{name}": number for name, number in numbers.items()}
