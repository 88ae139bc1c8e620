"""The book of tickets: which are open, which have expired, which were told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import repeat
from typing import Any

import numpy as np

from rollwise.errors import RewardError, StateError, TicketError
from rollwise.options.checks import shown
from rollwise.pool import PromptPool
from rollwise.snapshot import deferred
from rollwise.tickets.outcome import Outcome, outcomes_of
from rollwise.tickets.ticket import (
    Entry,
    Incarnations,
    Purpose,
    Ticket,
    TicketStatus,
    make_tickets,
    pack,
    parse,
    unpack,
)
from rollwise.tickets.told import Checked, Learner, Refused, Told, read_each, read_outcome, read_plain

EXPIRED_KEPT = 65_536
"""How many expired tickets are remembered, so that late evidence can still be taken."""

Rows = dict[str, tuple[Entry, Outcome, Told]]
"""Ticket id -> its entry, its outcome, and what this says."""


class Ledger:
    """Issues tickets for slots of one pool, checks outcomes against them, and lets old ones expire.

    Args:
        pool: the pool whose slots the tickets are for.
        expire_after: a ticket still open this many steps after it was asked expires; None keeps it for ever.
    """

    def __init__(self, pool: PromptPool, *, expire_after: int | None) -> None:
        self._pool = pool
        self._expire_after = expire_after
        self._open: dict[str, Entry] = {}
        self._open_of: dict[int, Entry] = {}  # the same by slot
        self._expired: dict[str, Entry] = {}
        self.incarnations = Incarnations()
        self.open = np.zeros(len(pool), dtype=bool)
        """(N,) whether each prompt has an open ticket."""

    @property
    def n_open(self) -> int:
        """How many tickets are open."""
        return len(self._open)

    @property
    def open_slots(self) -> np.ndarray:
        """The slots with an open ticket, (K,) int64, in any order."""
        return np.fromiter(self._open_of, dtype=np.int64, count=len(self._open_of))

    def open_tickets(self) -> list[Ticket]:
        """Those in flight, in the order issued."""
        return [self._whole(entry) for entry in list(self._open.values())]

    def open_ticket_of(self, slot: int) -> Ticket | None:
        """That of one prompt; None if it is not in flight."""
        entry = self._open_of.get(slot)
        return None if entry is None else self._whole(entry)

    def outstanding(self, ticket_ids: Iterable[str]) -> list[Ticket]:
        """Those of these tickets that can still be told, open or expired, in the order issued."""
        found = [self._open.get(id_) or self._expired.get(id_) for id_ in dict.fromkeys(ticket_ids)]
        return [self._whole(entry) for entry in sorted(filter(None, found), key=lambda entry: entry.number)]

    def status(self, ticket_id: Any) -> TicketStatus:
        """See `Curriculum.ticket_status`."""
        if isinstance(ticket_id, str) and ticket_id in self._open:
            return "open"
        if isinstance(ticket_id, str) and ticket_id in self._expired:
            return "expired"
        return self.incarnations.status(ticket_id)

    def issue(
        self,
        slots: np.ndarray,
        *,
        lanes: Sequence[str],
        predicted: np.ndarray,
        propensity: np.ndarray,
        step: int,
        clock: int,
        n_rollouts: Sequence[int | None],
        variance: np.ndarray,
        purpose: Purpose = "train",
    ) -> list[Ticket]:
        """Open a ticket for each of the K slots; NaN in `predicted`, `propensity`, `variance` (K,) stands for None."""
        lengths = set(map(len, (slots, lanes, predicted, propensity, n_rollouts, variance)))
        if len(lengths) > 1:
            raise ValueError(f"the columns of the tickets have different lengths: {sorted(lengths)}")
        rows = slots.tolist()
        issued = self.incarnations.issue(len(rows))
        ids = [id_ for _, id_ in issued]
        tickets = make_tickets(
            len(rows),
            id=ids,
            prompt_id=map(self._pool.ids.__getitem__, rows),
            prompt=map(self._pool.prompts.__getitem__, rows),
            lane=lanes,
            step=repeat(step),
            n_rollouts=n_rollouts,
            predicted=_with_none(predicted),
            propensity=_with_none(propensity),
            purpose=repeat(purpose),
            predicted_variance=_with_none(variance),
        )
        entries = list(map(Entry, rows, [number for number, _ in issued], repeat(clock), tickets))
        self._open.update(zip(ids, entries, strict=True))
        self._open_of.update(zip(rows, entries, strict=True))
        self.open[slots] = True
        return tickets

    def due(self, clock: int) -> list[Entry]:
        """The open tickets that expire when the clock comes to `clock`."""
        due: list[Entry] = []
        for entry in self._open.values():  # in the order issued, so the first young one ends the search
            if self._expire_after is None or clock - entry.asked_at < self._expire_after:
                break
            due.append(entry)
        return due

    def expire(self, clock: int) -> np.ndarray:
        """Close every ticket that is too old at `clock`; the slots so freed, (K,) int64."""
        return self._close_late(self.due(clock))

    def expire_these(self, ticket_ids: Iterable[str]) -> np.ndarray:
        """Close those of these tickets that are open; the slots so freed, (K,) int64."""
        return self._close_late([self._open[id_] for id_ in dict.fromkeys(ticket_ids) if id_ in self._open])

    def _close_late(self, due: list[Entry]) -> np.ndarray:
        for entry in due:
            self._expired[entry.ticket.id] = self._open.pop(entry.ticket.id)
            del self._open_of[entry.slot]
        while len(self._expired) > EXPIRED_KEPT:
            del self._expired[next(iter(self._expired))]
        slots = np.array([entry.slot for entry in due], dtype=np.int64)
        self.open[slots] = False
        return slots

    # ---- tell ----

    def check(self, outcomes: Iterable[Outcome], learner: Learner) -> Checked:
        """Validate outcomes, changing nothing.

        Raises:
            TicketError: a ticket is unknown, of another incarnation, told already, or named twice.
            RewardError: see `read_outcome`.
        """
        listed = outcomes_of(outcomes)
        checked = self._check_plain(listed, learner)
        if checked is not None:
            return checked
        rows: Rows = {}
        for outcome in listed:
            self._check_one(outcome, learner, rows)
        return read_each(rows.values(), learner, self._expired)

    def sift(self, outcomes: Iterable[Outcome], learner: Learner) -> tuple[Checked, list[Refused]]:
        """The valid outcomes, and the others with their reasons; nothing changes."""
        listed = outcomes_of(outcomes)
        if (plain := self._check_plain(listed, learner)) is not None:
            return plain, []
        rows: Rows = {}
        refused: list[Refused] = []
        for outcome in listed:
            id_ = getattr(outcome, "ticket_id", None)
            try:
                self._check_one(outcome, learner, rows)
            except RewardError as error:
                refused.append(Refused(outcome, "invalid", str(error)))
            except TicketError as error:
                twice = isinstance(id_, str) and id_ in rows
                status = self.status(id_) if isinstance(outcome, Outcome) else "invalid"
                refused.append(Refused(outcome, "told" if twice else status, str(error)))
        return read_each(rows.values(), learner, self._expired), refused

    def _check_plain(self, outcomes: list[Any], learner: Learner) -> Checked | None:
        """All of them at once; None where one is wrong, or of another form than `read_plain` takes."""
        if set(map(type, outcomes)) != {Outcome}:
            return None
        ids = [outcome.ticket_id for outcome in outcomes]
        if set(map(type, ids)) != {str} or len(set(ids)) < len(ids):
            return None
        entries = [entry for id_ in ids if (entry := self._open.get(id_) or self._expired.get(id_))]
        if len(entries) < len(ids):
            return None
        numbers = [entry.number for entry in entries]
        if numbers != sorted(numbers):
            order = sorted(range(len(numbers)), key=numbers.__getitem__)
            entries, outcomes = [entries[i] for i in order], [outcomes[i] for i in order]
        return read_plain(entries, outcomes, learner, self._expired)

    def _check_one(self, outcome: Any, learner: Learner, rows: Rows) -> None:
        if not isinstance(outcome, Outcome):
            raise TicketError(f"tell takes Outcome objects, got {type(outcome).__name__}: {shown(outcome)}")
        entry = self._find(outcome.ticket_id)
        if outcome.ticket_id in rows:
            raise TicketError(f"ticket {outcome.ticket_id!r} is named twice in one tell")
        rows[outcome.ticket_id] = entry, outcome, read_outcome(outcome, entry.ticket, learner)

    def close(self, checked: Checked) -> None:
        """Take checked outcomes off the book."""
        for entry in checked.entries:
            if self._expired.pop(entry.ticket.id, None) is None:
                del self._open[entry.ticket.id], self._open_of[entry.slot]
        self.open[checked.evidence.slots[~checked.evidence.late]] = False

    def _find(self, ticket_id: Any) -> Entry:
        entry = self._open.get(ticket_id) or self._expired.get(ticket_id) if isinstance(ticket_id, str) else None
        if entry is not None:
            return entry
        name, status = shown(ticket_id), self.status(ticket_id)
        if status == "told":
            raise TicketError(
                f"ticket {name} has been told already, or expired too long ago to be remembered, or its prompt has "
                "left the pool: drop its outcome"
            )
        if status == "foreign":
            raise TicketError(
                f"ticket {name} was issued by another incarnation of this curriculum, after the state that was loaded "
                "had been saved (or by another run): drop its outcome, its prompt is asked for again"
            )
        raise TicketError(f"unknown ticket {name}: this curriculum has not issued it; pass the `id` of a Ticket")

    # ---- saving ----

    def state_dict(self) -> dict[str, Any]:
        """The counter, the incarnations, the open and the expired tickets, JSON-safe."""
        return {
            "next": self.incarnations.next,
            "incarnations": self.incarnations.state(),
            "open": deferred(pack, tuple(self._open.values())),
            "expired": deferred(pack, tuple(self._expired.values())),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> int:
        """Take over a saved book; tickets of prompts that the pool no longer has are dropped and counted.

        Raises:
            StateError: the state is malformed. Call this on a fresh ledger: it may be half loaded then.
        """
        try:
            self.incarnations.load(state["next"], state.get("incarnations", ()))
            dropped = self._load(self._open, state["open"]) + self._load(self._expired, state["expired"])
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the tickets in the state can't be read: {error!r}") from error
        self._open_of = {entry.slot: entry for entry in self._open.values()}
        self.open[list(self._open_of)] = True
        return dropped

    def _load(self, book: dict[str, Entry], state: Any) -> int:
        """Fill `book` from what `pack` made; how many tickets were dropped."""
        columns = unpack(state)
        slots = self._pool.slots_of(columns["prompt_id"]).tolist()
        parsed = list(map(parse, columns["id"]))
        if None in parsed:
            raise ValueError(f"no ticket id: {columns['id'][parsed.index(None)]!r}")
        numbers = [found[0] for found in parsed if found is not None]
        tickets = map(Ticket, *(columns[field.name] for field in fields(Ticket)))
        entries = map(Entry, slots, numbers, columns["asked_at"], tickets)
        book.update((entry.ticket.id, entry) for entry in entries if entry.slot >= 0)
        return int(slots.count(-1))

    def _whole(self, entry: Entry) -> Ticket:
        """Its ticket with the prompt: a load reads none, as there may be very many on disk."""
        if entry.ticket.prompt is None:
            entry.ticket = replace(entry.ticket, prompt=self._pool.prompts[entry.slot])
        return entry.ticket


def _with_none(numbers: np.ndarray) -> list[float | None]:
    return [None if number != number else number for number in numbers.tolist()]
