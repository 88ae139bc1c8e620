"""A ticket in the book, and many of them as one list for each field, as they are saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from rollwise.tickets.ticket import Ticket

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
