"""`CurriculumService`: one curriculum for many workers of an engine, in one process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rollwise.curricula import Curriculum
from rollwise.engines.serving.calls import Told
from rollwise.engines.serving.desk import Desk
from rollwise.engines.serving.in_flight import InFlight
from rollwise.engines.serving.saving import Saving
from rollwise.engines.serving.silence import Silence
from rollwise.errors import ConfigError
from rollwise.judges import Answer, Lesson, Question
from rollwise.tickets.outcome import Outcome
from rollwise.tickets.ticket import Ticket


class CurriculumService(Saving):
    """One curriculum that any number of threads ask and tell at once.

    Calls that wait are served together. The learner owns the clock: `advance` moves it. Workers may die, answer twice,
    late, or in another order.

    Args:
        curriculum: bound to its pool. From now on only the service may use it.
        folder: where `save` and `load` keep states; None: `state_dict` and `load_state_dict` only.
        keep: how many saved states are kept; None: all.
        max_open: at most this many tickets are out at a time. Beyond it `ask` waits, or gives fewer.
        max_open_per_worker: the same for each worker that gives its name; None: no bound but `max_open`.
        expire_seconds: a ticket that is out longer expires and frees its prompt, as one does after the curriculum's
            `expire_after` steps; None: steps alone count.
        silent_after: `ask` raises once this many tickets were asked and no outcome was told; also after 10 steps
            in which any were, and after an hour in which nothing could be given.
        clock: the present in seconds, for tests.

    >>> import rollwise as rw
    >>> pool = rw.PromptPool(ids=["a", "b"])
    >>> service = CurriculumService(rw.Uniform(pool, seed=0))
    >>> tickets = service.ask(2, worker="w0", n_rollouts=4)
    >>> service.tell([rw.Outcome(ticket.id, rewards=[1, 0, 0, 1]) for ticket in tickets])
    Told(taken=2, repeated=0, refused=())
    >>> service.advance(1)
    """

    def __init__(
        self,
        curriculum: Curriculum,
        *,
        folder: str | os.PathLike[str] | None = None,
        keep: int | None = 10,
        max_open: int = 65_536,
        max_open_per_worker: int | None = None,
        expire_seconds: float | None = None,
        silent_after: int = 65_536,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not isinstance(curriculum, Curriculum):
            raise ConfigError(f"a service takes a Curriculum, got {curriculum!r:.80}")
        if curriculum.allocator is not None and curriculum.allocator.in_rounds:
            raise ConfigError(
                f"{type(curriculum.allocator).__name__} makes the rollouts of a step in rounds, but a service gives a "
                "ticket out once; use an allocator that divides them at once, such as knapsack"
            )
        in_flight = InFlight(max_open, max_open_per_worker, expire_seconds)
        super().__init__(Desk(curriculum, in_flight, Silence(silent_after), clock), folder, keep)
        curriculum.new_incarnation()
        curriculum.advance(curriculum.step)
        in_flight.load(({}, []), curriculum.open_tickets(), clock())

    # ---- what workers call ----

    def ask(
        self,
        n: int = 1,
        *,
        worker: str | None = None,
        request: str | None = None,
        step: int | None = None,
        n_rollouts: int | None = None,
        timeout: float = 0.0,
    ) -> list[Ticket]:
        """Up to `n` prompts to roll out now; fewer where bounds or the pool allow no more.

        Args:
            n: how many prompts.
            worker: who asks; its tickets count towards `max_open_per_worker`, and `lose` gives them up.
            request: the caller's name for this ask. The same worker and request again get the same tickets.
            step: the step they are for; by default the learner's. A larger one moves the clock.
            n_rollouts: how many rollouts make a group.
            timeout: how many seconds to wait until all `n` can be given.

        Raises:
            ConfigError: a number out of range.
            SilentNoOpError: nothing was told for too long. Nothing has changed in either case.
        """
        return self.wait(self.put_ask(n, worker, request, step, n_rollouts, timeout))

    def tell(self, outcomes: Iterable[Outcome] | Outcome) -> Told:
        """Learn from outcomes, in any order, late or partial. What was told before changes nothing.

        An outcome that is wrong, or whose ticket is of another future, is left out and returned; the others are taken.

        Raises:
            TicketError: something else than outcomes was given. Nothing has changed then.
        """
        return self.wait(self.put_tell(outcomes))

    def advance(self, step: int) -> None:
        """The learner is at `step`; tickets that are too old expire.

        Raises:
            ConfigError: a step before the present one. Nothing has changed then.
        """
        self.run(lambda: self.desk.curriculum.advance(step))

    def probe(
        self,
        n: int,
        *,
        worker: str | None = None,
        step: int | None = None,
        n_rollouts: int | None = None,
        wanted: int | None = None,
        request: str | None = None,
    ) -> list[Ticket]:
        """Prompts to roll out and tell about, but not to train on, as `Curriculum.probe`; most methods want none.

        The same worker and `request` again get the same tickets, as in `ask`.
        """
        desk = self.desk

        def probe() -> list[Ticket]:
            if request is not None and (before := desk.in_flight.answer(worker, request)) is not None:
                return list(before)
            tickets = desk.curriculum.probe(n, step=step, n_rollouts=n_rollouts, wanted=wanted)
            desk.in_flight.add(tickets, worker, desk.clock())
            if request is not None and tickets:
                desk.in_flight.remember(worker, request, tickets)
            return tickets

        return self.run(probe)

    def consult(self, n: int, *, step: int | None = None) -> list[Question]:
        """What the policy should be asked before `ask(n)`, as `Curriculum.consult`; nothing for most methods."""
        return self.run(lambda: self.desk.curriculum.consult(n, step=step))

    def advise(self, answers: Iterable[Answer]) -> None:
        """Tell what the policy answered, as `Curriculum.advise`."""
        self.run(lambda: self.desk.curriculum.advise(answers))

    def lessons(self) -> list[Lesson]:
        """What this step's rollouts say of the judgments, as `Curriculum.lessons`."""
        return self.run(lambda: self.desk.curriculum.lessons())

    def feedback(self, gains: Mapping[str, float]) -> int:
        """What an optimiser step gained on each group, by ticket id, as `Curriculum.feedback`."""
        return self.run(lambda: self.desk.curriculum.feedback(gains))

    def note_score(self, score: float) -> None:
        """The policy's score in an evaluation, as `Curriculum.note_score`."""
        self.run(lambda: self.desk.curriculum.note_score(score))

    def count_tokens(self, total: int) -> None:
        """How many tokens training has seen so far, as `Curriculum.count_tokens`."""
        self.run(lambda: self.desk.curriculum.count_tokens(total))

    def lose(self, worker: str) -> int:
        """A worker is gone: its tickets expire now; returns how many. Outcomes that still come are taken as late.

        Its asks are forgotten, so that another worker of this name gets tickets of its own; one that waits gets none.
        """
        return self.run(lambda: self.desk.lose(worker))

    # ---- what is known ----

    def ticket_status(self, ticket_id: str) -> str:
        """The status of a ticket, as `Curriculum.ticket_status`: "open", "told", "expired", "foreign" or "unknown"."""
        return self.run(lambda: self.desk.curriculum.ticket_status(ticket_id))

    def open_tickets(self, prompt_id: str | None = None) -> list[Ticket]:
        """The tickets that are out, in the order issued; of one prompt, if given."""
        return self.run(lambda: self.desk.curriculum.open_tickets(prompt_id))

    def status(self) -> dict[str, Any]:
        """The step, tickets out in all and by worker, calls that wait, the last step saved."""
        desk = self.desk
        return self.run(
            lambda: {
                "step": desk.curriculum.step,
                "open": len(desk.in_flight),
                "by_worker": {worker: n for worker, n in desk.in_flight.by_worker.items() if worker is not None},
                "waiting": desk.queue,
                "saved_step": self._saved_step,
            }
        )

    def metrics(self) -> dict[str, float]:
        """The curriculum's metrics and, under `service/`, asks a second, p50, p99, queue, share of the time at work."""
        desk = self.desk
        return self.run(
            lambda: {
                **desk.curriculum.metrics(),
                "service/queue": float(desk.queue),
                **{f"service/{name}": float(count) for name, count in desk.counters.items()},
                **desk.meter.metrics(desk.clock()),
            }
        )
