"""What callers of a service wait for: `Ask` and `Call`; and what a `tell` answers: `Told`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from rollwise.tickets.outcome import Outcome
from rollwise.tickets.ticket import Ticket
from rollwise.tickets.told import Refused


@dataclass(frozen=True, slots=True)
class Told:
    """What became of the outcomes of one `tell`.

    Attributes:
        taken: how many were learnt from.
        repeated: how many had been told before, as after a lost reply; they change nothing.
        refused: those that were not taken, each with its `status` and the `reason`.
    """

    taken: int
    repeated: int
    refused: tuple[Refused, ...] = ()


@dataclass(eq=False, slots=True)
class Call:
    """A call that waits to be served.

    Attributes:
        run: what it does to the curriculum; called with the service's lock held.
        done: its result.
    """

    run: Callable[[], Any]
    done: Future[Any]

    def fail(self, error: BaseException) -> None:
        """Raise `error` in the caller."""
        settle(self.done, error=error)


@dataclass(eq=False, slots=True)
class Tell:
    """A `tell` that waits to be served together with others."""

    outcomes: Sequence[Outcome]
    done: Future[Told] = field(default_factory=Future)

    def fail(self, error: BaseException) -> None:
        """Raise `error` in the caller."""
        settle(self.done, error=error)


@dataclass(eq=False, slots=True)
class Ask:
    """An `ask` that waits to be served together with others.

    Attributes:
        n: how many tickets are wanted.
        worker: who asks, or None.
        request: the caller's name of this ask: given again, it is the same ask.
        options: `step` and `n_rollouts` of `Curriculum.ask`.
        at: when it came, seconds.
        until: until when it waits for all `n`, seconds.
        tickets: what was issued for it so far.
        done: its result.
        twins: the same ask, given again while this one waits.
    """

    n: int
    worker: str | None
    request: str | None
    options: tuple[int | None, int | None]
    at: float
    until: float
    tickets: list[Ticket] = field(default_factory=list)
    done: Future[list[Ticket]] = field(default_factory=Future)
    twins: list[Ask] = field(default_factory=list)

    @property
    def missing(self) -> int:
        """How many tickets it still wants."""
        return self.n - len(self.tickets)

    @property
    def given_up(self) -> bool:
        """Whether nobody waits for it any more: it has failed, or its callers have cancelled it."""
        return all(ask.done.done() for ask in (self, *self.twins))

    def finish(self) -> None:
        """Hand over what was issued for it."""
        for ask in (self, *self.twins):
            settle(ask.done, list(self.tickets))

    def fail(self, error: BaseException) -> None:
        """Raise `error` in the caller."""
        for ask in (self, *self.twins):
            settle(ask.done, error=error)


def settle(future: Future[Any], result: Any = None, *, error: BaseException | None = None) -> None:
    """Set a future's result, unless it has one, or the caller has cancelled it."""
    if future.done() or not future.set_running_or_notify_cancel():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
