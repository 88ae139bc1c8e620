"""Ticket ids that say which run of a curriculum issued them.

A fresh curriculum issues `t0`, `t1`, ... After a load the numbers go on from the saved state, with a random tag:
`t16.9f3c01ab`. So a worker that outlived a kill can't name a ticket of the resumed curriculum by chance: its own id
was issued after the checkpoint, by another incarnation.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from typing import Literal

TicketStatus = Literal["open", "told", "expired", "foreign", "unknown"]

_ID = re.compile(r"t([0-9]{1,18})(?:\.([0-9a-z]{1,32}))?")


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
