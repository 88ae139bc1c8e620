"""The book of tickets: statuses over restarts, every field over a save, states of version 0.1."""

import dataclasses
import json
import typing
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollwise as rw
from rollwise.tickets import ledger as ledger_module
from rollwise.tickets.ledger import Ledger
from rollwise.tickets.outcome import RewardSpec
from rollwise.tickets.ticket import Incarnations, parse
from rollwise.tickets.told import Learner

LEARNER = Learner("Any", RewardSpec(), "rewards")
N = 40

actions = st.lists(
    st.tuples(st.sampled_from(["issue", "tell", "advance", "save", "load", "renew"]), st.integers(0, 9)), max_size=40
)


def issue(book: Ledger, k: int, clock: int) -> list[rw.Ticket]:
    slots = np.flatnonzero(~book.open)[:k]
    unknown = np.full(len(slots), np.nan)
    wanted, lanes = [4] * len(slots), ["lane"] * len(slots)
    return book.issue(
        slots,
        lanes=lanes,
        predicted=unknown,
        propensity=unknown,
        step=clock,
        clock=clock,
        n_rollouts=wanted,
        variance=unknown,
    )


@given(script=actions)
def test_the_status_of_every_ticket_ever_issued(script: list[tuple[str, int]]) -> None:
    """A model beside the book: what each id's status must be, also after loads of older states."""
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(N)])
    book, clock = Ledger(pool, expire_after=3), 0
    status: dict[str, str] = {}
    asked_at: dict[str, int] = {}
    saved = (json.dumps(book.state_dict()), dict(status), clock)
    for action, amount in script:
        if action == "issue":
            tickets = issue(book, amount, clock)
            assert not {t.id for t in tickets} & set(status)
            status |= {t.id: "open" for t in tickets}
            asked_at |= {t.id: clock for t in tickets}
        elif action == "tell":
            known = [id_ for id_, now in status.items() if now in ("open", "expired")][:amount]
            book.close(book.check([rw.Outcome(id_, [1, 0]) for id_ in known], LEARNER))
            status |= dict.fromkeys(known, "told")
        elif action == "advance":
            clock += amount
            book.expire(clock)
            old = [id_ for id_, now in status.items() if now == "open" and clock - asked_at[id_] >= 3]
            status |= dict.fromkeys(old, "expired")
        elif action == "save":
            saved = (json.dumps(book.state_dict()), dict(status), clock)
        elif action == "load":
            book = Ledger(pool, expire_after=3)
            assert book.load_state_dict(json.loads(saved[0])) == 0
            book.incarnations.renew()
            status, clock = {**dict.fromkeys(status, "foreign"), **saved[1]}, saved[2]
        else:
            book.incarnations.renew()
        assert {id_: book.status(id_) for id_ in status} == status
        open_ = [id_ for id_, now in status.items() if now == "open"]
        assert [t.id for t in book.open_tickets()] == sorted(open_, key=lambda id_: parse(id_) or (0, ""))
        assert [pool.ids[slot] for slot in np.flatnonzero(book.open)] == sorted(
            (t.prompt_id for t in book.open_tickets()), key=lambda id_: int(id_[1:])
        )


@given(script=actions, wrong=st.lists(st.integers(0, 60), max_size=10))
def test_what_is_taken_and_refused_one_by_one_is_taken_and_refused_by_itself(
    script: list[tuple[str, int]], wrong: list[int]
) -> None:
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(N)])
    book = Ledger(pool, expire_after=None)
    for action, amount in script:
        issue(book, amount, 0)
        if action == "renew":
            book.incarnations.renew()
    open_ = [t.id for t in book.open_tickets()]
    outcomes = [rw.Outcome(id_, [1, 0]) for id_ in open_[::2]] + [rw.Outcome(f"t{i}", [1, 0]) for i in wrong]
    refused: list[rw.Refused] = []
    checked = book.check(outcomes, LEARNER, refused)
    taken = [entry.ticket.id for entry in checked.entries]
    assert len(taken) + len(refused) == len(outcomes)
    good = {outcome.ticket_id: outcome for outcome in outcomes if outcome.ticket_id in taken}
    assert [entry.ticket.id for entry in book.check(good.values(), LEARNER).entries] == taken
    for one in refused:
        repeated = one.outcome.ticket_id in taken
        with pytest.raises(rw.TicketError):
            book.check([one.outcome] * (1 + repeated), LEARNER)


def test_wrong_outcomes_are_named_in_the_order_given_not_in_that_of_their_tickets() -> None:
    pool = rw.PromptPool(ids=["a", "b", "c"])
    book = Ledger(pool, expire_after=None)
    outcomes = [rw.Outcome(ticket.id, [2.0]) for ticket in reversed(issue(book, 2, 0))]
    with pytest.raises(rw.RewardError, match="rewards of ticket 't1' lie outside"):
        book.check(outcomes, LEARNER)
    refused: list[rw.Refused] = []
    assert not book.check(outcomes, LEARNER, refused).entries
    assert [one.outcome for one in refused] == outcomes


def test_a_saved_ticket_keeps_every_field() -> None:
    """Of present and future fields: each is given another value than its default, and must come back."""
    values: dict[Any, Any] = {str: "x", int: 7, float: 0.25, Any: "a", rw.tickets.ticket.Purpose: "screen"}
    pool = rw.PromptPool(ids=["x"], prompts=["a"])
    hints = typing.get_type_hints(rw.Ticket)
    given = {}
    for field in dataclasses.fields(rw.Ticket):
        kinds = [kind for kind in values if kind == hints[field.name] or kind in typing.get_args(hints[field.name])]
        assert kinds, f"say here what {field.name} of a Ticket may be"
        given[field.name] = values[kinds[0]]
        assert given[field.name] != field.default
    ticket = rw.Ticket(**{**given, "id": "t0"})
    book = Ledger(pool, expire_after=None)
    issue(book, 1, 3)
    for held in (book._open, book._expired):
        held["t0"] = dataclasses.replace(book._open["t0"], ticket=ticket)
    loaded = Ledger(pool, expire_after=None)
    loaded.load_state_dict(json.loads(json.dumps(book.state_dict())))
    assert loaded.open_tickets() == [ticket]
    assert [loaded._whole(entry) for entry in loaded._expired.values()] == [ticket]


def test_states_of_version_0_1_load() -> None:
    """There a ticket is a mapping without `predicted_variance`, and no incarnation is named."""
    row = {"lane": "uniform", "step": 2, "n_rollouts": 4, "predicted": None, "propensity": 0.5, "purpose": "train"}
    state = {
        "next": 9,
        "open": [{"id": "t8", "prompt_id": "a", **row}],
        "expired": [{"id": "t1", "prompt_id": "b", **row}, {"id": "t2", "prompt_id": "gone", **row}],
    }
    book = Ledger(rw.PromptPool(ids=["a", "b"]), expire_after=3)
    assert book.load_state_dict(state) == 1
    statuses = {id_: book.status(id_) for id_ in ("t8", "t1", "t0", "t9")}
    assert statuses == {"t8": "open", "t1": "expired", "t0": "told", "t9": "unknown"}
    book.incarnations.renew()
    assert book.status("t9") == "foreign"
    assert book.expire(5).tolist() == [0]


@pytest.mark.parametrize(
    "damage", [{"open": {}}, {"open": None}, {"next": "x"}, {"expired": [{"id": "t0"}]}, {"incarnations": [3]}]
)
def test_a_damaged_book_is_refused(damage: dict[str, Any]) -> None:
    book = Ledger(rw.PromptPool(ids=["a", "b"]), expire_after=3)
    issue(book, 2, 0)
    state = {**book.state_dict(), **damage}
    if damage == {"open": {}}:
        state["open"] = {**book.state_dict()["open"], "id": ["nonsense", "t1"]}
    with pytest.raises(rw.StateError):
        Ledger(rw.PromptPool(ids=["a", "b"]), expire_after=3).load_state_dict(state)


def test_the_oldest_expired_tickets_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "EXPIRED_KEPT", 2)
    book = Ledger(rw.PromptPool(ids=["a", "b", "c"]), expire_after=1)
    tickets = issue(book, 3, 0)
    book.expire(1)
    assert [book.status(t.id) for t in tickets] == ["told", "expired", "expired"]
    with pytest.raises(rw.TicketError, match="too long ago"):
        book.check([rw.Outcome(tickets[0].id, [1])], LEARNER)


def test_a_tag_is_drawn_for_tickets_alone() -> None:
    """A load without an ask leaves the state as it was; two loads of one state issue different ids."""
    one = Incarnations()
    one.issue(3)
    loaded = [Incarnations() for _ in range(2)]
    for incarnations in loaded:
        incarnations.load(one.next, one.state())
        incarnations.renew()
        assert incarnations.state() == one.state()
    first, second = (incarnations.issue(1)[0] for incarnations in loaded)
    assert first[0] == second[0] == 3
    assert first[1] != second[1]
    assert loaded[0].status(second[1]) == loaded[1].status(first[1]) == "foreign"


def test_an_outcome_of_a_prompt_that_has_left_is_refused_with_that_reason() -> None:
    curriculum = rw.Uniform(rw.PromptPool(ids=["stays", "leaves"]), seed=0)
    of = {t.prompt_id: t.id for t in curriculum.ask(2)}
    curriculum.rebind(rw.PromptPool(ids=["stays"]))
    with pytest.raises(rw.TicketError, match="its prompt has left the pool"):
        curriculum.tell([rw.Outcome(of["leaves"], [1.0])])
    assert [curriculum.ticket_status(of[name]) for name in ("stays", "leaves")] == ["open", "told"]
