"""Countdown puzzles: what one is, how a level makes them, and what a careless demonstrator would answer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rollwise.tasks.countdown_solver import Expr, combine, number


@dataclass(frozen=True)
class Level:
    """How hard a generated puzzle is: how many numbers, up to what, joined by which operators, to which targets."""

    count: int
    highest: int
    operators: str
    targets: tuple[int, int] = (1, 999)


# 1 is trivially easy. 6 is of the public data set's kind, out of a tiny policy's reach.
LEVELS: dict[int, Level] = {
    1: Level(2, 9, "+-*"),
    2: Level(3, 9, "+-"),
    3: Level(3, 20, "+-*"),
    4: Level(3, 50, "+-*"),
    5: Level(4, 20, "+-*"),
    6: Level(4, 99, "+-*/", (10, 100)),
}


@dataclass(frozen=True)
class Item:
    """One puzzle: reach `target` with each of `nums` once.

    Two items with the same multiset of numbers and the same target are the same puzzle, whatever the order.
    """

    nums: tuple[int, ...]
    target: int
    category: str
    difficulty: float
    operators: str = field(default="+-*/", compare=False)

    @property
    def key(self) -> str:
        """The puzzle's identity: `target|sorted numbers`."""
        return canonical_key(self.nums, self.target)


def canonical_key(nums: Sequence[int], target: int) -> str:
    """The identity of a puzzle: the same for every order of its numbers (Frontier paper, appendix B.3).

    >>> canonical_key([7, 3, 5], 22)
    '22|3,5,7'
    """
    return f"{target}|{','.join(map(str, sorted(nums)))}"


def draws(level: int, rng: random.Random) -> Iterator[Item]:
    """Puzzles of a level without end; each can be solved, and repeats come."""
    spec = LEVELS[level]
    while True:
        nums = tuple(rng.randint(1, spec.highest) for _ in range(spec.count))
        made = random_expression(nums, spec.operators, rng)
        low, high = spec.targets
        if made is not None and isinstance(made.value, int) and low <= made.value <= high:
            yield Item(nums, made.value, f"L{level}", float(level), spec.operators)


def random_expression(nums: Sequence[int], operators: str, rng: random.Random) -> Expr | None:
    """A random well-formed expression over all of `nums`, or None if it divides by zero."""
    parts = [number(n) for n in rng.sample(nums, len(nums))]
    while len(parts) > 1:
        at = rng.randrange(len(parts) - 1)
        made = combine(parts[at], rng.choice(operators), parts[at + 1])
        if made is None:
            return None
        parts[at : at + 2] = [made]
    return parts[0]
