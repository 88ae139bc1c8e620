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
from rollwise.tickets.contrast import RANDOM_LANES
from rollwise.tickets.evidence import Evidence
from rollwise.tickets.outcome import Outcome, outcomes_of
from rollwise.tickets.ticket import (
    Entry,
    Incarnations,
    Purpose,
    Ticket,
    TicketStatus,
    is_continued,
    make_tickets,
    pack,
    parse,
    unpack,
)
from rollwise.tickets.told import Checked, Flat, Learner, Refused, Told, one_after_another, read_outcome, read_plain

EXPIRED_KEPT = 65_536
"""How many expired tickets are remembered, so that late evidence can still be taken."""


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

    def check(self, outcomes: Iterable[Outcome], learner: Learner, refused: list[Refused] | None = None) -> Checked:
        """Validate outcomes, changing nothing; where `refused` is given, the wrong ones are put there and left out.

        Raises:
            TicketError: a ticket is unknown, of another incarnation, told already, or named twice.
            RewardError: see `read_outcome`.
        """
        given, spec = outcomes_of(outcomes), learner.spec
        told, entries = given, self._entries_of(given)
        numbers = [entry.number for entry in entries]
        if numbers != sorted(numbers):
            order = sorted(range(len(numbers)), key=numbers.__getitem__)
            told, entries = [given[i] for i in order], [entries[i] for i in order]
        flat = read_plain(entries, told, spec) if entries else None
        if flat is None:
            told, entries, flat = self._read_each(given, learner, refused)
        tickets = [entry.ticket for entry in entries]
        evidence = Evidence.from_flat(
            slots=[entry.slot for entry in entries],
            count=flat.sizes,
            scores=spec.scores(flat.rewards),
            solved=flat.rewards >= spec.threshold,
            failed=[outcome.failed for outcome in told],
            step=[t.step if o.step is None else o.step for t, o in zip(tickets, told, strict=True)],
            late=[ticket.id in self._expired for ticket in tickets],
            probe=[ticket.purpose != "train" for ticket in tickets],
            advantages=flat.advantages,
            labels=flat.labels,
            known=flat.known,
            at_random=[ticket.lane in RANDOM_LANES for ticket in tickets],
            continued=[is_continued(ticket) for ticket in tickets],
        )
        return Checked(entries, evidence)

    def _entries_of(self, outcomes: list[Any]) -> list[Entry]:
        """The entries of outcomes of different tickets; none where one is no `Outcome`, or of no ticket in the book."""
        if set(map(type, outcomes)) != {Outcome}:
            return []
        ids = [outcome.ticket_id for outcome in outcomes]
        if set(map(type, ids)) != {str} or len(set(ids)) < len(ids):
            return []
        entries = [entry for id_ in ids if (entry := self._open.get(id_) or self._expired.get(id_))]
        return entries if len(entries) == len(ids) else []

    def _read_each(
        self, outcomes: list[Any], learner: Learner, refused: list[Refused] | None
    ) -> tuple[list[Outcome], list[Entry], Flat]:
        """The right outcomes of any form, in the order in which their tickets were issued, and what they say."""
        told: dict[str, tuple[Outcome, Entry, Told]] = {}
        for outcome in outcomes:
            try:
                entry = self._find(outcome)
                if outcome.ticket_id in told:
                    raise TicketError(f"ticket {outcome.ticket_id!r} is named twice in one tell")
                told[outcome.ticket_id] = outcome, entry, read_outcome(outcome, entry.ticket, learner)
            except (RewardError, TicketError) as error:
                if refused is None:
                    raise
                of_ticket = isinstance(outcome, Outcome) and isinstance(error, TicketError)
                status = self.status(outcome.ticket_id) if of_ticket else "invalid"
                twice = status in ("open", "expired")
                refused.append(Refused(outcome, "told" if twice else status, str(error)))
        rows = sorted(told.values(), key=lambda row: row[1].number)
        return [row[0] for row in rows], [row[1] for row in rows], one_after_another([row[2] for row in rows])

    def close(self, checked: Checked) -> None:
        """Take checked outcomes off the book."""
        for entry in checked.entries:
            if self._open.pop(entry.ticket.id, None) is None:
                del self._expired[entry.ticket.id]
            else:
                del self._open_of[entry.slot]
        self.open[checked.evidence.slots[~checked.evidence.late]] = False

    def _find(self, outcome: Any) -> Entry:
        """The entry of an outcome's ticket; `TicketError` where there is none."""
        if not isinstance(outcome, Outcome):
            raise TicketError(f"tell takes Outcome objects, got {type(outcome).__name__}: {shown(outcome)}")
        ticket_id: Any = outcome.ticket_id
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
