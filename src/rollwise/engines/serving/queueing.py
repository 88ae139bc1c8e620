"""How the calls of many threads, or of an event loop, reach the desk: queued, then served together by one of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from math import inf
from typing import TypeVar

from rollwise.engines.serving.calls import Ask, Call, Tell, Told
from rollwise.engines.serving.desk import Desk
from rollwise.errors import TicketError
from rollwise.options import check_number, check_text, check_whole, shown
from rollwise.tickets.outcome import Outcome, outcomes_of
from rollwise.tickets.ticket import Ticket

T = TypeVar("T")

_LONGEST_WAIT = 60.0


class Serving:
    """A desk and the lock around it.

    `put_ask` and `put_tell` queue a call and return its future at once. `serve` serves whatever is queued; `wait` does
    so until a future has its result.
    """

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._lock = threading.Lock()

    def put_ask(
        self,
        n: int,
        worker: str | None,
        request: str | None,
        step: int | None,
        n_rollouts: int | None,
        timeout: float,
    ) -> Future[list[Ticket]]:
        """Queue an `ask`, to be served by the next `serve`."""
        desk = self.desk
        n = min(desk.in_flight.reachable(check_whole("n", n, least=1), worker), len(desk.curriculum.pool))
        step = None if step is None else check_whole("step", step, least=0)
        n_rollouts = None if n_rollouts is None else check_whole("n_rollouts", n_rollouts, least=1)
        worker = None if worker is None else check_text("worker", worker)
        request = None if request is None else check_text("request", request)
        timeout = check_number("timeout", timeout, low=0.0, high=inf)
        now = desk.clock()
        ask = Ask(n, worker, request, (step, n_rollouts), now, now + timeout)
        desk.put(ask)
        return ask.done

    def put_tell(self, outcomes: Iterable[Outcome] | Outcome) -> Future[Told]:
        """Queue a `tell`, to be served by the next `serve`."""
        listed = outcomes_of(outcomes)
        wrong = [outcome for outcome in listed if not isinstance(outcome, Outcome)]
        if wrong:
            raise TicketError(f"tell takes Outcome objects, got {type(wrong[0]).__name__}: {shown(wrong[0])}")
        tell = Tell(listed)
        self.desk.put(tell)
        return tell.done

    def serve(self) -> None:
        """Serve every call that is queued, together."""
        with self._lock:
            self.desk.serve()

    def run(self, action: Callable[[], T]) -> T:
        """What `action` returns, called while nobody else uses the curriculum."""
        done: Future[T] = Future()
        self.desk.put(Call(action, done))
        return self.wait(done)

    def wait(self, done: Future[T]) -> T:
        """The result of a queued call; serves calls while it is not there. An ask that is interrupted is cancelled."""
        try:
            while not done.done():
                with self._lock:
                    if not done.done():  # else another thread has served it
                        self.desk.serve()
                    wake = self.desk.wake_at()
                try:
                    return done.result(None if wake is None else min(max(wake - self.desk.clock(), 0.0), _LONGEST_WAIT))
                except TimeoutError:
                    if done.done():
                        break
            return done.result()
        except KeyboardInterrupt:
            done.cancel()
            raise
