"""A ticket: one prompt to roll out, and to tell the outcome of. Its id says which run of a curriculum issued it.

A fresh curriculum issues `t0`, `t1`, ... After a load the numbers go on from the saved state, with a random tag:
`t16.9f3c01ab`. So a worker that outlived a kill can't name a ticket of the resumed curriculum by chance: its own id
was issued after the checkpoint, by another incarnation.
"""

from __future__ import annotations

import re
import secrets
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import repeat
from typing import Any, Literal

from rollwise.errors import ConfigError

Purpose = Literal["train", "measure", "screen", "oracle"]
TicketStatus = Literal["open", "told", "expired", "foreign", "unknown"]

_ID = re.compile(r"t([0-9]{1,18})(?:\.([0-9a-z]{1,32}))?")


@dataclass(frozen=True, slots=True)
class Ticket:
    """One prompt chosen by `ask`.

    Attributes:
        id: what an `Outcome` names. Unique within the curriculum that issued it.
        prompt_id: the prompt's durable id.
        prompt: the prompt itself (text or chat messages).
        lane: why it was chosen: `priority`, `explore`, `retest-solved`, `retest-unsolved`, `uniform`, ...
        step: the step it was asked for.
        n_rollouts: how many rollouts to make; None leaves that to the caller.
        predicted: the expected mean score in [0, 1] believed at `ask`; None without a belief.
        propensity: the probability with which the draw picked it, given the picks before it in the same `ask`; None
            where the draw is not random.
        purpose: "train": train on its rollouts; "measure": they are only looked at; "screen": they are looked at first,
            and if the curriculum asks for the prompt again, trained on together with those of that ticket; "oracle":
            they are only looked at, and not charged to the run: for measuring what could be had.
        predicted_variance: the variance of the scores, in [0, 1/4], that a judge predicted; None without one.
    """

    id: str
    prompt_id: str
    prompt: Any
    lane: str
    step: int
    n_rollouts: int | None = None
    predicted: float | None = None
    propensity: float | None = None
    purpose: Purpose = "train"
    predicted_variance: float | None = None


SAVED = tuple(field.name for field in fields(Ticket) if field.name != "prompt")


@dataclass(slots=True)
class Entry:
    """A ticket in the book.

    Attributes:
        slot: its prompt's.
        number: its place in the order of issue.
        asked_at: the clock when it was issued. A worker that is behind has a ticket of a smaller step.
    """

    slot: int
    number: int
    asked_at: int
    ticket: Ticket


def pack(entries: Sequence[Entry]) -> dict[str, list[Any]]:
    """Every field of the tickets but the prompt, as one list a field: small, and quick to write."""
    columns = {name: [getattr(entry.ticket, name) for entry in entries] for name in SAVED}
    return {**columns, "asked_at": [entry.asked_at for entry in entries]}


def unpack(state: Any) -> dict[str, list[Any]]:
    """The lists that `pack` made, of equal lengths, and None for each prompt; states of version 0.1 hold rows."""
    if not isinstance(state, Mapping):
        rows = [{"asked_at": row["step"], **row} for row in state]
        state = {name: [row.get(name) for row in rows] for name in (*SAVED, "asked_at")}
    n = len(state["id"])
    columns = {**{name: [None] * n for name in ("prompt", *SAVED)}, **state}
    if any(len(values) != n for values in columns.values()):
        raise ValueError("its lists are of different lengths")
    return columns


def make_tickets(n: int, **columns: Iterable[Any]) -> list[Ticket]:
    """`n` tickets, each field from a column of `n` values or more: twice as fast as one call of `Ticket` for each.

    >>> constant = dict.fromkeys(("predicted", "propensity", "predicted_variance"), repeat(None))
    >>> fields = {"lane": repeat("uniform"), "step": repeat(1), "n_rollouts": repeat(8), "purpose": repeat("train")}
    >>> tickets = make_tickets(2, id=["t0", "t1"], prompt_id="ab", prompt="ab", **fields, **constant)
    >>> tickets[1] == Ticket("t1", "b", "b", "uniform", step=1, n_rollouts=8)
    True
    """
    tickets = list(map(object.__new__, repeat(Ticket, n)))
    for name in Ticket.__slots__:
        deque(
            map(getattr(Ticket, name).__set__, tickets, columns[name]), maxlen=0
        )  # a frozen class has no other setter
    return tickets


def rollouts_to_make(ticket: Ticket, group_size: int, *, kept: int | None, screens: bool) -> int:
    """How many rollouts to make of a "train" ticket: what it says.

    Of a curriculum that screens, a ticket for fewer than `group_size` goes on with the kept rollouts of its screening.
    Where those were lost (resumed without them), or some of them had no reward, the whole group is made.

    Args:
        ticket: what the curriculum asked for.
        group_size: G, the rollouts of a group whose ticket does not say, and of one that was screened.
        kept: rollouts of the prompt's screening that are still there; None without any.
        screens: whether the curriculum's probes are screenings, see `Ticket.purpose`.

    Raises:
        ConfigError: the ticket's own `n_rollouts` is less than 1, or does not fit its screening.

    >>> ticket = Ticket("t0", "a", "1+1", "continue", step=1, n_rollouts=5)
    >>> [rollouts_to_make(ticket, 8, kept=kept, screens=True) for kept in (3, None)]
    [5, 8]
    >>> rollouts_to_make(ticket, 8, kept=None, screens=False)
    5
    """
    wanted = group_size if ticket.n_rollouts is None else ticket.n_rollouts
    if wanted == group_size or (kept is not None and wanted > 0 and wanted + kept == group_size):
        return wanted
    if screens and 0 < wanted < group_size and (kept is None or wanted + kept > group_size):
        return group_size
    if kept is None and not screens and wanted > 0:
        return wanted
    made = f", and {kept} were screened" if kept is not None else ""
    raise ConfigError(
        f"ticket {ticket.id!r} asks for n_rollouts={ticket.n_rollouts}{made}, of groups of {group_size}: give at least "
        "1, and after a screening what is left of the group; have `ask` give the n_rollouts that it is given"
    )


CONTINUED = "continue"
"""The lane of a ticket whose group was begun by a screening."""


def allotted_rollouts(ticket: Ticket, group_size: int, *, kept: int | None, screened: int) -> int:
    """How many rollouts to make of a "train" ticket whose number an allocator gave: what it says.

    Args:
        ticket: what the curriculum asked for.
        group_size: of a ticket that does not say.
        kept: rollouts of the prompt's screening that are still there; where they were lost, they are made again.
        screened: how many a screening makes.

    >>> ticket = Ticket("t0", "a", "1+1", "continue", step=1, n_rollouts=5)
    >>> [allotted_rollouts(ticket, 8, kept=kept, screened=4) for kept in (4, None)]
    [5, 9]
    """
    wanted = group_size if ticket.n_rollouts is None else ticket.n_rollouts
    if wanted < 1:
        raise ConfigError(f"ticket {ticket.id!r} asks for n_rollouts={ticket.n_rollouts}; give at least 1")
    return wanted + screened if is_continued(ticket) and kept is None else wanted


def is_continued(ticket: Ticket) -> bool:
    """Whether its group was begun by a screening; in a mixture the lane has its own name before."""
    return ticket.lane.rpartition("/")[2] == CONTINUED


def check_sizes(tickets: list[Ticket], sizes: list[int], group: int, *, allocated: bool, screens: bool) -> None:
    """Refuse the `sizes` (K,) of K tickets' groups that a step of as many groups of `group` can't be made of.

    Where some rollouts of a screening have no reward, others are made for them, and the sum is greater.

    Raises:
        ConfigError: sizes differ and no allocator gave them, or their sum is not that of the step.
    """
    odd = next((ticket for ticket, n in zip(tickets, sizes, strict=True) if n != group), None)
    if odd is not None and not allocated:
        raise ConfigError(
            f"ticket {odd.id!r} asks for n_rollouts={odd.n_rollouts}, but every group here has {group} rollouts; give "
            "the curriculum an allocator, or have `ask` give the n_rollouts that it is given"
        )
    if sum(sizes) < len(tickets) * group or (sum(sizes) > len(tickets) * group and not screens):
        raise ConfigError(
            f"the tickets of a step ask for {sum(sizes)} rollouts, but a step trains on {len(tickets) * group}: an "
            "allocator must give away the budget, all of it and no more"
        )


def parse(ticket_id: object) -> tuple[int, str] | None:
    """The number and tag of a ticket's id, "" for none; None if it is no such id.

    >>> parse("t16.9f3c01ab"), parse("t3"), parse("x")
    ((16, '9f3c01ab'), (3, ''), None)
    """
    found = _ID.fullmatch(ticket_id) if isinstance(ticket_id, str) else None
    return None if found is None else (int(found[1]), found[2] or "")


def plain_id(ticket_id: str) -> str:
    """The id without its tag, for files of a run: there a resumed run and an uninterrupted one are the same.

    >>> plain_id("t16.9f3c01ab")
    't16'
    """
    return ticket_id.partition(".")[0]


def line_of(ticket: Ticket, *, step: int, trained: bool) -> dict[str, Any]:
    """What a line of `rollouts.jsonl` says of a ticket: how its prompt was chosen, and what was expected of it."""
    variance = {} if ticket.predicted_variance is None else {"predicted_variance": ticket.predicted_variance}
    return {
        "step": step,
        "ticket": ticket.id,
        "prompt_id": ticket.prompt_id,
        "lane": ticket.lane,
        "purpose": ticket.purpose,
        "trained": trained,
        "predicted": ticket.predicted,
        **variance,
        "propensity": ticket.propensity,
    }


class Incarnations:
    """Counts tickets up, and remembers which numbers each incarnation issued."""

    def __init__(self) -> None:
        self.next = 0
        self._began: dict[str, int] = {}  # tag -> its first number, in the order of time, of those that issued any
        self.tag: str = ""
        """That of the present incarnation; "" for a fresh curriculum."""

    def renew(self) -> None:
        """Issue ids with a new random tag from now on."""
        self.tag = secrets.token_hex(4)

    def issue(self, k: int) -> list[tuple[int, str]]:
        """The next k numbers, and their ids."""
        if k:
            self._began.setdefault(self.tag, self.next)
        numbers, suffix = range(self.next, self.next + k), f".{self.tag}" if self.tag else ""
        self.next += k
        return [(number, f"t{number}{suffix}") for number in numbers]

    def status(self, ticket_id: object) -> Literal["told", "foreign", "unknown"]:
        """Of an id that is neither open nor expired: "told" if it was issued here, "foreign" if elsewhere."""
        parsed = parse(ticket_id)
        if parsed is None:
            return "unknown"
        number, tag = parsed
        if tag == self.tag and number >= self.next:
            return "unknown"  # not issued yet
        tags = list(self._began)
        if tag not in self._began:
            return "foreign"
        ends = [*(self._began[later] for later in tags[1:]), self.next]
        return "told" if self._began[tag] <= number < ends[tags.index(tag)] else "foreign"

    def state(self) -> list[list[str | int]]:
        """Tags and first numbers, JSON-safe; see `load`."""
        return [[tag, first] for tag, first in self._began.items()]

    def load(self, next_number: int, began: Iterable[tuple[str, int]]) -> None:
        """Take over a saved counter, and `state` (states of version 0.1 have none)."""
        self.next = int(next_number)
        self._began = {str(tag): int(first) for tag, first in began}
        if not self._began and self.next:
            self._began = {"": 0}
        self.tag = next(reversed(self._began), "")
