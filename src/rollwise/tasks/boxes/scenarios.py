"""Scenarios of the task Boxes: what the boxes hold at first and what is asked turn by turn, and their short names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollwise.errors import TaskError

NAMES = "abcd"
MOST = 9
PUT, TAKE, EMPTY = "put", "take", "empty"


@dataclass(frozen=True)
class Order:
    """One thing to do: `put` or `take` an amount, or `empty` a box."""

    verb: str
    box: str
    amount: int = 0

    @property
    def words(self) -> str:
        """As the user says it."""
        if self.verb == EMPTY:
            return f"Empty {self.box}."
        return f"Put {self.amount} in {self.box}." if self.verb == PUT else f"Take {self.amount} from {self.box}."

    @property
    def key(self) -> str:
        """As ids write it: `+a2`, `-b1`, `~c`."""
        sign = {PUT: "+", TAKE: "-", EMPTY: "~"}[self.verb]
        return f"{sign}{self.box}{self.amount or ''}"

    def apply(self, contents: dict[str, int]) -> None:
        """Carry it out on `contents`."""
        if self.verb == EMPTY:
            contents[self.box] = 0
        else:
            contents[self.box] += self.amount if self.verb == PUT else -self.amount


@dataclass(frozen=True)
class Scenario:
    """What the boxes hold at first, and the orders of each turn."""

    contents: tuple[int, ...]
    turns: tuple[tuple[Order, ...], ...]

    @property
    def key(self) -> str:
        """The scenario's identity, from which it can be read again.

        >>> read_scenario("3502|+a2-b1|~c").key
        '3502|+a2-b1|~c'
        """
        turns = ["".join(order.key for order in turn) for turn in self.turns]
        return "|".join(["".join(map(str, self.contents)), *turns])

    @property
    def requests(self) -> list[str]:
        """What the user says in each turn."""
        return [" ".join(order.words for order in turn) for turn in self.turns]


def read_scenario(key: str) -> Scenario:
    """The scenario that `Scenario.key` wrote.

    Raises:
        TaskError: it is none.
    """
    first, *turns = key.split("|")
    verbs = {"+": PUT, "-": TAKE, "~": EMPTY}
    try:
        orders = [[_read_order(verbs, part) for part in _parts(turn, verbs)] for turn in turns]
        scenario = Scenario(tuple(int(digit) for digit in first), tuple(tuple(turn) for turn in orders))
    except (KeyError, ValueError):
        raise TaskError(f"{key!r:.80} is no scenario of 'boxes', such as '3502|+a2-b1|~c'") from None
    if len(scenario.contents) != len(NAMES) or not turns:
        raise TaskError(f"{key!r:.80} is no scenario of 'boxes': {len(NAMES)} boxes and a turn are needed")
    return scenario


def _parts(turn: str, verbs: Mapping[str, str]) -> list[str]:
    starts = [at for at, sign in enumerate(turn) if sign in verbs]
    if not starts or starts[0]:
        raise ValueError(turn)
    return [turn[a:b] for a, b in zip(starts, [*starts[1:], len(turn)], strict=True)]


def _read_order(verbs: Mapping[str, str], part: str) -> Order:
    if part[1] not in NAMES:
        raise ValueError(part)
    return Order(verbs[part[0]], part[1], int(part[2:] or 0))
