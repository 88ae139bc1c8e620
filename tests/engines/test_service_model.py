"""The service against a plain model: holders and statuses of tickets, whatever the order of calls."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from service_parts import Clock, make, outcomes, rewards_of

import rollwise as rw

WORKERS = ["a", "b", "c"]
MOST, MOST_PER_WORKER, SECONDS, STEPS, POOL = 8, 4, 10.0, 3, 12


class Model(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.service = make(
            POOL,
            clock=self.clock,
            max_open=MOST,
            max_open_per_worker=MOST_PER_WORKER,
            expire_seconds=SECONDS,
            expire_after=STEPS,
            silent_after=10_000,
        )
        self.step = 0
        self.issued: dict[str, rw.Ticket] = {}
        self.out: dict[str, tuple[str, int, float]] = {}  # id -> worker, step, since
        self.status: dict[str, str] = {}
        self.streak: dict[str, int] = {}
        self.requests: dict[tuple[str, int], list[str]] = {}
        self.saved: Any = None

    def expire(self) -> None:
        for id_, (_, step, since) in list(self.out.items()):
            if self.clock.now - since >= SECONDS or self.step - step >= STEPS:
                del self.out[id_]
                self.status[id_] = "expired"

    def held(self, worker: str) -> int:
        return sum(holder == worker for holder, _, _ in self.out.values())

    @rule(worker=st.sampled_from(WORKERS), n=st.integers(1, 5), request=st.integers(0, 6))
    def ask(self, worker: str, n: int, request: int) -> None:
        self.expire()
        tickets = self.service.ask(n, worker=worker, request=str(request), n_rollouts=4)
        ids = [ticket.id for ticket in tickets]
        if (worker, request) in self.requests:
            assert ids == self.requests[worker, request]
            return
        room = min(MOST - len(self.out), MOST_PER_WORKER - self.held(worker), POOL - len(self.out))
        assert len(ids) == min(n, room)
        assert not self.issued.keys() & set(ids)
        for ticket in tickets:
            self.issued[ticket.id] = ticket
            self.status[ticket.id] = "open"
            self.out[ticket.id] = (worker, self.step, self.clock.now)
        if ids:
            self.requests[worker, request] = ids

    @precondition(lambda self: self.issued)
    @rule(data=st.data())
    def tell(self, data: st.DataObject) -> None:
        self.expire()
        issued = list(self.issued)  # in the order of issue: the ids hold random tags
        ids = [issued[row] for row in data.draw(st.lists(st.integers(0, len(issued) - 1), max_size=6))]
        told = self.service.tell(outcomes([self.issued[id_] for id_ in ids]))
        taken, repeated, foreign = set(), 0, 0
        for id_ in ids:
            status = self.status[id_]
            if status in ("open", "expired"):
                taken.add(id_)
                self.out.pop(id_, None)
                self.status[id_] = "told"
            repeated += status == "told"
            foreign += status == "foreign"
        for id_ in taken:
            prompt = self.issued[id_].prompt_id
            self.streak[prompt] = self.streak.get(prompt, 0) + (1 if rewards_of(prompt)[0] else -1)
        assert (told.taken, told.repeated, len(told.refused)) == (len(taken), repeated, foreign)
        assert {one.status for one in told.refused} <= {"foreign"}

    @rule(steps=st.integers(0, 2))
    def advance(self, steps: int) -> None:
        self.step += steps
        self.service.desk.silence.told(1, self.step)  # here a learner may go on for long without an outcome
        self.service.advance(self.step)
        self.expire()

    @rule(seconds=st.sampled_from([1.0, 4.0, 11.0]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule(worker=st.sampled_from(WORKERS))
    def lose(self, worker: str) -> None:
        self.expire()
        assert self.service.lose(worker) == self.held(worker)
        for id_, (holder, _, _) in list(self.out.items()):
            if holder == worker:
                del self.out[id_]
                self.status[id_] = "expired"
        self.requests = {key: ids for key, ids in self.requests.items() if key[0] != worker}

    @rule()
    def save(self) -> None:
        self.expire()
        kept = (self.step, self.out, self.status, self.streak, self.requests)
        self.saved = (self.service.state_dict(), copy.deepcopy(kept))

    @precondition(lambda self: self.saved)
    @rule()
    def load(self) -> None:
        state, kept = self.saved
        self.service.load_state_dict(state)
        after = self.status
        self.step, out, self.status, self.streak, requests = copy.deepcopy(kept)
        self.status |= {id_: "foreign" for id_ in after if id_ not in self.status}
        self.out = {id_: (worker, step, self.clock.now) for id_, (worker, step, _) in out.items()}
        self.requests = {key: ids for key, ids in requests.items() if all(id_ in self.out for id_ in ids)}

    @invariant()
    def all_is_as_in_the_model(self) -> None:
        self.expire()
        service = self.service
        assert service.status()["open"] == len(self.out)
        assert service.status()["by_worker"] == {w: self.held(w) for w in WORKERS if self.held(w)}
        assert {ticket.id for ticket in service.open_tickets()} == set(self.out)
        prompts = [self.issued[id_].prompt_id for id_ in self.out]
        assert len(set(prompts)) == len(prompts)
        assert {id_: service.ticket_status(id_) for id_ in self.issued} == self.status
        curriculum = service.desk.curriculum
        streaks = dict(zip(curriculum.pool.ids, curriculum.columns["streak"].tolist(), strict=True))
        assert {name: streak for name, streak in streaks.items() if streak} == self.streak


TestModel = Model.TestCase
