"""Countdown puzzles: what one is, how a level makes them, and what a careless demonstrator would answer."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from rollwise.errors import TaskError
from rollwise.options import Range
from rollwise.tasks.countdown.solver import Expr, combine, number, solve


@dataclass(frozen=True)
class Level:
    """How hard a generated puzzle is: how many numbers, up to what, joined by which operators, to which targets."""

    count: int
    highest: int
    operators: str
    targets: tuple[int, int] = (1, 999)


# 1 is trivially easy. 6 is of the public data set's kind, out of a tiny policy's reach. 7 to 10 are SEC's
# (section 3.1), with the ranges of reasoning-gym, which made its puzzles.
LEVELS: dict[int, Level] = {
    1: Level(2, 9, "+-*"),
    2: Level(3, 9, "+-"),
    3: Level(3, 20, "+-*"),
    4: Level(3, 50, "+-*"),
    5: Level(4, 20, "+-*"),
    6: Level(4, 99, "+-*/", (10, 100)),
    **{level: Level(level - 4, 100, "+-*/", (100, 999)) for level in (7, 8, 9, 10)},
}
LevelNumber = Annotated[int, Range(1, len(LEVELS))]


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


_PADDED = 4


def countdown_embedding(nums: Sequence[int], target: int) -> list[float]:
    """The 14-dimensional e(x) of appendix B.2, of length 1: puzzles of like shape have a dot product near 1.

    phi(x) = [t/100, n/4, min/100, max/100, mean/100, std/100, S/300, (S - t)/300, |S - t|/300, share of odd numbers,
    the four numbers in rising order/100], padded with zeros, over its length. The paper does not say which standard
    deviation; it is the population's. Its puzzles have at most four numbers; of more, the four least are listed.

    Raises:
        TaskError: no numbers.

    >>> [round(x, 3) for x in countdown_embedding([3, 1], 4)[:3]]
    [0.036, 0.446, 0.009]
    """
    n = len(nums)
    if not n:
        raise TaskError("a puzzle without numbers has no embedding")
    total = sum(nums)
    mean = total / n
    std = math.sqrt(sum((a - mean) ** 2 for a in nums) / n)
    padded = [*sorted(nums), *[0] * _PADDED][:_PADDED]
    phi = [target / 100, n / 4, min(nums) / 100, max(nums) / 100, mean / 100, std / 100]
    phi += [total / 300, (total - target) / 300, abs(total - target) / 300, sum(a % 2 for a in nums) / n]
    phi += [a / 100 for a in padded]
    length = math.sqrt(sum(x * x for x in phi))
    return [x / length for x in phi]


_FAR = (1000, 9999)
# The numbers of a hard level may reach all of its targets; after this many tries a puzzle is left as it is.
_TRIES = 500


def spoil(item: Item, broken: float, foreign: float, wanted: Callable[[Item], bool], rng: random.Random) -> Item:
    """A generated puzzle, or what becomes of it where chance makes it one that can't be solved.

    Args:
        item: A puzzle of one of the levels.
        broken: The chance that it gets the target of another one of its level, and nothing else differs.
        foreign: The chance that it gets a target of four digits, and a category that says so.
        wanted: Whether the changed puzzle may be used.
        rng: What is drawn from, always first the kind.

    Returns:
        A puzzle whose target its numbers can't reach, or `item` itself.
    """
    kind = rng.random()
    if kind >= broken + foreign:
        return item
    made = _broken(item, rng) if kind < broken else _foreign(item, rng)
    unreachable = (new for new in itertools.islice(made, _TRIES) if wanted(new) and solve(new.nums, new.target) is None)
    return next(unreachable, item)


def _broken(item: Item, rng: random.Random) -> Iterator[Item]:
    level = int(item.difficulty)
    return (replace(item, target=other.target) for other in draws(level, rng))


def _foreign(item: Item, rng: random.Random) -> Iterator[Item]:
    while True:
        yield replace(item, target=rng.randint(*_FAR), category=f"{item.category} far")
