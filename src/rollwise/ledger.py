"""The book of tickets: which are open, which have expired, which were told.

Ticket ids count up (`t0`, `t1`, ...), so an id below the counter that is neither open nor expired has been told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rollwise.errors import RewardError, StateError, TicketError
from rollwise.evidence import Evidence
from rollwise.outcome import LARGEST_ADVANTAGE, Outcome, RewardSpec, read_numbers, shown
from rollwise.pool import PromptPool
from rollwise.ticket import Purpose, Ticket

EXPIRED_KEPT = 65_536
"""How many expired tickets are remembered, so that late evidence can still be taken."""


_MOST = 2**53
"""The greatest step or count that is taken: beyond it float64 skips numbers."""


@dataclass(frozen=True, slots=True)
class _Entry:
    slot: int
    ticket: Ticket


@dataclass(frozen=True, slots=True)
class _Told:
    entry: _Entry
    outcome: Outcome
    late: bool
    rewards: np.ndarray
    advantages: np.ndarray | None
    labels: tuple[str, ...] | None


class Ledger:
    """Issues tickets for slots of one pool, checks outcomes against them, and lets old ones expire.

    Args:
        pool: the pool whose slots the tickets are for.
        expire_after: a ticket still open this many steps after it was asked expires; None keeps it for ever.
    """

    def __init__(self, pool: PromptPool, *, expire_after: int | None) -> None:
        self._pool = pool
        self._expire_after = expire_after
        self._next = 0
        self._open: dict[str, _Entry] = {}
        self._expired: dict[str, _Entry] = {}
        self.open = np.zeros(len(pool), dtype=bool)
        """(N,) whether each prompt has an open ticket."""

    @property
    def n_open(self) -> int:
        """How many tickets are open."""
        return len(self._open)

    def issue(
        self,
        slots: np.ndarray,
        *,
        lanes: Sequence[str],
        predicted: np.ndarray,
        propensity: np.ndarray,
        step: int,
        n_rollouts: Sequence[int | None],
        variance: np.ndarray,
        purpose: Purpose = "train",
    ) -> list[Ticket]:
        """Open a ticket for each of the K slots; NaN in `predicted`, `propensity`, `variance` (K,) stands for None."""
        tickets = []
        numbers = (array.tolist() for array in (predicted, propensity, variance))
        rows = zip(slots.tolist(), lanes, n_rollouts, *numbers, strict=True)
        for slot, lane, wanted, belief, chance, spread in rows:
            ticket = Ticket(
                id=f"t{self._next}",
                prompt_id=self._pool.ids[slot],
                prompt=self._pool.prompts[slot],
                lane=lane,
                step=step,
                n_rollouts=wanted,
                predicted=None if belief != belief else belief,
                propensity=None if chance != chance else chance,
                purpose=purpose,
                predicted_variance=None if spread != spread else spread,
            )
            self._next += 1
            self._open[ticket.id] = _Entry(slot, ticket)
            tickets.append(ticket)
        self.open[slots] = True
        return tickets

    def expire(self, step: int) -> np.ndarray:
        """Close every ticket that is too old at `step`; the slots so freed, (K,) int64."""
        if self._expire_after is None:
            return np.empty(0, dtype=np.int64)
        old = []
        for id_, entry in self._open.items():  # in the order issued, so the first young one ends the search
            if step - entry.ticket.step < self._expire_after:
                break
            old.append(id_)
        for id_ in old:
            self._expired[id_] = self._open.pop(id_)
        while len(self._expired) > EXPIRED_KEPT:
            del self._expired[next(iter(self._expired))]
        slots = np.array([self._expired[id_].slot for id_ in old], dtype=np.int64)
        self.open[slots] = False
        return slots

    def check(self, outcomes: Iterable[Outcome], spec: RewardSpec) -> list[_Told]:
        """Validate outcomes, changing nothing; in the order their tickets were issued.

        Raises:
            TicketError: a ticket is unknown, told already, or named twice.
            RewardError: rewards, advantages, labels or counts are wrong.
        """
        checked: dict[str, _Told] = {}
        try:
            rows = iter(outcomes)
        except TypeError:
            raise TicketError(f"tell takes an Outcome or a list of them, got {shown(outcomes)}") from None
        for outcome in rows:
            if not isinstance(outcome, Outcome):
                raise TicketError(f"tell takes Outcome objects, got {type(outcome).__name__}: {shown(outcome)}")
            entry = self._find(outcome.ticket_id)
            if outcome.ticket_id in checked:
                raise TicketError(f"ticket {outcome.ticket_id!r} is named twice in one tell")
            rewards = spec.check(outcome.rewards, outcome.ticket_id)
            advantages = _check_counts(outcome, entry.ticket, len(rewards))
            late = outcome.ticket_id in self._expired
            labels = _check_labels(outcome, len(rewards))
            checked[outcome.ticket_id] = _Told(entry, outcome, late, rewards, advantages, labels)
        return sorted(checked.values(), key=lambda told: int(told.entry.ticket.id[1:]))

    def close(self, told: Sequence[_Told], spec: RewardSpec) -> Evidence:
        """Take checked outcomes off the book and return what they say."""
        evidence = Evidence.from_groups(
            slots=[one.entry.slot for one in told],
            scores=[spec.scores(one.rewards) for one in told],
            solved=[one.rewards >= spec.threshold for one in told],
            advantages=[one.advantages for one in told],
            failed=[one.outcome.failed for one in told],
            step=[one.entry.ticket.step if one.outcome.step is None else one.outcome.step for one in told],
            late=[one.late for one in told],
            probe=[one.entry.ticket.purpose != "train" for one in told],
            labels=[one.labels for one in told],
        )
        for one in told:
            id_ = one.entry.ticket.id
            if one.late:
                del self._expired[id_]
            else:
                del self._open[id_]
                self.open[one.entry.slot] = False
        return evidence

    def _find(self, ticket_id: Any) -> _Entry:
        entry = self._open.get(ticket_id) or self._expired.get(ticket_id) if isinstance(ticket_id, str) else None
        if entry is not None:
            return entry
        number = ticket_id[1:] if isinstance(ticket_id, str) and ticket_id[:1] == "t" else ""
        name = shown(ticket_id)
        if number.isdecimal() and len(number) <= len(str(self._next)) and int(number) < self._next:
            raise TicketError(f"ticket {name} has been told already, or expired too long ago to be remembered")
        raise TicketError(f"unknown ticket {name}: this curriculum has not issued it; pass the `id` of a Ticket")

    def state_dict(self) -> dict[str, Any]:
        """The counter, the open and the expired tickets, JSON-safe."""
        return {
            "next": self._next,
            "open": [_pack(entry.ticket) for entry in self._open.values()],
            "expired": [_pack(entry.ticket) for entry in self._expired.values()],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> int:
        """Take over a saved book; tickets of prompts that the pool no longer has are dropped and counted.

        Raises:
            StateError: the state is malformed. Call this on a fresh ledger: it may be half loaded then.
        """
        dropped = 0
        try:
            self._next = int(state["next"])
            for book, rows in ((self._open, state["open"]), (self._expired, state["expired"])):
                for row in rows:
                    if row["prompt_id"] not in self._pool:
                        dropped += 1
                        continue
                    slot = self._pool.slot(row["prompt_id"])
                    ticket = Ticket(prompt=self._pool.prompts[slot], **row)
                    book[ticket.id] = _Entry(slot, ticket)
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(f"the tickets in the state can't be read: {error!r}") from error
        self.open[[entry.slot for entry in self._open.values()]] = True
        return dropped


def _check_counts(outcome: Outcome, ticket: Ticket, k: int) -> np.ndarray | None:
    for name, value in (("failed", outcome.failed), ("step", 0 if outcome.step is None else outcome.step)):
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)
        if not whole or not 0 <= value <= _MOST:
            raise RewardError(f"{name} of ticket {ticket.id!r} must be a whole number in [0, 2^53], got {shown(value)}")
    if ticket.n_rollouts is not None and k + outcome.failed > ticket.n_rollouts:
        raise RewardError(
            f"ticket {ticket.id!r} asked for {ticket.n_rollouts} rollouts but was told {k} rewards and "
            f"{outcome.failed} failures"
        )
    if outcome.advantages is None:
        return None
    advantages = read_numbers("advantages", outcome.advantages, ticket.id)
    if advantages.shape != (k,) or not (np.abs(advantages) <= LARGEST_ADVANTAGE).all():
        raise RewardError(
            f"advantages of ticket {ticket.id!r} must be {k} finite numbers of size at most {LARGEST_ADVANTAGE:g}, one "
            f"a reward, got {shown(advantages.tolist())}; without any, they are taken from the rewards"
        )
    return advantages


def _check_labels(outcome: Outcome, k: int) -> tuple[str, ...] | None:
    if outcome.labels is None:
        return None
    flat = isinstance(outcome.labels, Iterable) and not isinstance(outcome.labels, str)
    listed = tuple(outcome.labels) if flat else ()
    if not flat or len(listed) != k or not all(label is None or isinstance(label, str) for label in listed):
        raise RewardError(
            f"labels of ticket {outcome.ticket_id!r} must be {k} texts (or None), one a reward, got "
            f"{shown(outcome.labels)}"
        )
    return tuple(str(label or "") for label in listed)


def _pack(ticket: Ticket) -> dict[str, Any]:
    names = ("id", "prompt_id", "lane", "step", "n_rollouts", "predicted", "propensity", "purpose")
    return {name: getattr(ticket, name) for name in names}
