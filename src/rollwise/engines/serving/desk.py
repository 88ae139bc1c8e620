"""Serves the calls that wait for one curriculum, together. It knows no thread and no event loop."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable

from rollwise.curricula import Curriculum
from rollwise.engines.serving.calls import Ask, Call, Tell, Told, settle
from rollwise.engines.serving.in_flight import InFlight
from rollwise.engines.serving.meter import Meter
from rollwise.engines.serving.silence import Silence
from rollwise.options import check_text
from rollwise.tickets.outcome import Outcome
from rollwise.tickets.ticket import Ticket
from rollwise.tickets.told import Refused

logger = logging.getLogger(__name__)


class Desk:
    """All tells that wait become one `tell`, then other calls run, then all asks that wait become one `ask`.

    `put` may be called from any thread; everything else by one at a time.
    """

    def __init__(
        self, curriculum: Curriculum, in_flight: InFlight, silence: Silence, clock: Callable[[], float]
    ) -> None:
        self.curriculum = curriculum
        self.in_flight = in_flight
        self.silence = silence
        self.clock = clock
        self.meter = Meter()
        self.counters = Counter(repeated=0, refused=0, expired_by_time=0)
        self.waiting: list[Ask] = []
        """Asks that were not given all they want, in the order they came."""
        self._new: deque[Ask | Tell | Call] = deque()
        self._exhausted = False  # nothing is eligible, until something comes back

    def put(self, call: Ask | Tell | Call) -> None:
        """Have a call served in the next round."""
        self._new.append(call)

    @property
    def queue(self) -> int:
        """How many calls wait."""
        return len(self._new) + len(self.waiting)

    def serve(self) -> None:
        """Serve every call that waits; asks that want more than there is go on waiting until their time is over."""
        began = self.clock()
        tells, calls = [], []
        while self._new:
            call = self._new.popleft()
            if isinstance(call, Ask):
                self._take_up(call)
            elif isinstance(call, Tell):
                tells.append(call)
            else:
                calls.append(call)
        try:
            self._expire(began)
            if tells:
                self._tell(tells)
            for call in calls:
                self._run(call)
            if self.waiting:
                self._ask()
        except BaseException as error:  # another use of the curriculum, or Ctrl-C: no caller may wait for ever
            failed: list[Ask | Tell | Call] = [*tells, *calls, *self.waiting]
            self.waiting = []
            for one in failed:
                one.fail(error)
            if not isinstance(error, Exception):
                raise
        self.meter.work(began, self.clock())

    def wake_at(self) -> float | None:
        """When waiting asks have to be served again though no call comes, seconds; None if none waits."""
        if not self.waiting:
            return None
        times = [*(ask.until for ask in self.waiting), self.in_flight.next_expiry()]
        return min(time for time in times if time is not None)

    def synchronise(self) -> None:
        """The clock has moved, or a state was loaded: tickets may have expired."""
        self.in_flight.keep(lambda id_: self.curriculum.ticket_status(id_) == "open")
        self._exhausted = False

    def expire(self, ticket_ids: list[str]) -> None:
        """Close tickets whose worker is gone or too slow; late outcomes are still taken."""
        self.curriculum.expire(ticket_ids)
        self.in_flight.remove(ticket_ids)
        self._exhausted = False

    def lose(self, worker: str) -> int:
        """Close the tickets of a worker that is gone, forget its asks, and give those that wait nothing; how many."""
        ids = self.in_flight.of(check_text("worker", worker))
        self.expire(ids)
        self.in_flight.forget(worker)
        for ask in self.waiting:
            if ask.worker == worker:
                ask.tickets.clear()
                ask.finish()
        return len(ids)

    # ---- a round ----

    def _take_up(self, ask: Ask) -> None:
        """Answer an ask that is given again; let a new one wait."""
        if ask.request is not None:
            before = self.in_flight.answer(ask.worker, ask.request)
            if before is not None:
                settle(ask.done, list(before))
                return
            for other in self.waiting:
                if (other.worker, other.request) == (ask.worker, ask.request):
                    other.twins.append(ask)
                    return
        self.waiting.append(ask)

    def _expire(self, now: float) -> None:
        old = self.in_flight.too_old(now)
        if old:
            self.expire(old)
            self.counters["expired_by_time"] += len(old)
            logger.info("%d tickets expired after %g seconds", len(old), self.in_flight.seconds)

    def _tell(self, tells: list[Tell]) -> None:
        """One `tell` of everything; a ticket that is named again is told in a second round."""
        rounds: list[list[tuple[Tell, Outcome]]] = []
        named: Counter[str] = Counter()
        for call in tells:
            for outcome in call.outcomes:
                key = str(outcome.ticket_id)
                rounds.extend([[]] if named[key] == len(rounds) else [])
                rounds[named[key]].append((call, outcome))
                named[key] += 1
        left: dict[Tell, list[Refused]] = {call: [] for call in tells}
        try:
            for pairs in rounds:
                report = self.curriculum.tell_each([outcome for _, outcome in pairs])
                refused = {id(one.outcome): one for one in report.refused}
                for call, outcome in pairs:
                    left[call].extend([refused[id(outcome)]] if id(outcome) in refused else [])
                self.in_flight.remove(outcome.ticket_id for _, outcome in pairs if id(outcome) not in refused)
        except Exception as error:
            for call in tells:
                call.fail(error)
            return
        self._exhausted = False
        for call in tells:
            self._report(call, left[call])

    def _report(self, call: Tell, left: list[Refused]) -> None:
        """Answer one `tell`, of which these outcomes were not taken."""
        wrong = tuple(one for one in left if one.status != "told")
        told = Told(taken=len(call.outcomes) - len(left), repeated=len(left) - len(wrong), refused=wrong)
        self.silence.told(told.taken, self.curriculum.step)
        self.counters["repeated"] += told.repeated
        self.counters["refused"] += len(wrong)
        if wrong:
            logger.warning("%d outcomes were not taken, the first: %s", len(wrong), wrong[0].reason)
        settle(call.done, told)

    def _run(self, call: Call) -> None:
        step = self.curriculum.step
        try:
            result = call.run()
        except Exception as error:
            call.fail(error)
        else:
            settle(call.done, result)
        if self.curriculum.step != step:
            self.synchronise()

    def _catch_up(self) -> None:
        """Move the clock to the latest step that is asked for: what expires then is free for these asks already."""
        ahead = [ask for ask in self.waiting if (ask.options[0] or 0) > self.curriculum.step]
        if not ahead:
            return
        step = max(ask.options[0] or 0 for ask in ahead)
        try:
            self.silence.check(step)
            self.curriculum.advance(step)
        except Exception as error:
            for ask in ahead:
                ask.fail(error)
        else:
            self.synchronise()

    def _ask(self) -> None:
        self._catch_up()
        groups: dict[tuple[int | None, int | None], list[tuple[Ask, int]]] = {}
        room = Counter({ask.worker: self.in_flight.room(ask.worker) for ask in self.waiting})
        left = 0 if self._exhausted else self.in_flight.room(None)
        for ask in self.waiting:
            wanted = min(ask.missing, left, room[ask.worker])
            if wanted > 0 and not ask.given_up:
                groups.setdefault(ask.options, []).append((ask, wanted))
                left -= wanted
                room[ask.worker] -= wanted
        for options, asks in groups.items():
            self._issue(options, asks)
        now = self.clock()
        self.waiting = [ask for ask in self.waiting if not self._finished(ask, now)]

    def _issue(self, options: tuple[int | None, int | None], asks: list[tuple[Ask, int]]) -> None:
        step, n_rollouts = options
        wanted = sum(n for _, n in asks)
        before = self.curriculum.step
        try:
            self.silence.check(before)
            tickets = self.curriculum.ask(wanted, step=step, n_rollouts=n_rollouts)
        except Exception as error:
            for ask, _ in asks:
                ask.fail(error)
            return
        if self.curriculum.step != before:
            self.synchronise()
        self._exhausted = len(tickets) < wanted
        now = self.clock()
        for ask, n in asks:
            given: list[Ticket] = tickets[:n]
            del tickets[:n]
            ask.tickets += given
            self.in_flight.add(given, ask.worker, now)

    def _finished(self, ask: Ask, now: float) -> bool:
        """Whether an ask waits no longer; it is answered then."""
        if ask.given_up:
            if ask.tickets:  # which nobody was given
                self.expire([ticket.id for ticket in ask.tickets])
            return True
        if ask.missing and now < ask.until:
            return False
        self.silence.asked(len(ask.tickets), self.curriculum.step, now)
        if not ask.tickets:
            try:
                self.silence.check(self.curriculum.step)
            except Exception as error:
                ask.fail(error)
                return True
        elif ask.request is not None:
            self.in_flight.remember(ask.worker, ask.request, ask.tickets)
        self.meter.ask(ask.at, now)
        ask.finish()
        return True
