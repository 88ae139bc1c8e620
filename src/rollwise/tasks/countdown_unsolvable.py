"""Countdown puzzles that nobody can solve, as real data hold them: unmarked among others, or a kind of their own."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import replace

from rollwise.tasks.countdown_items import Item, draws
from rollwise.tasks.countdown_solver import solve

_FAR = (1000, 9999)
# The numbers of a hard level may reach all of its targets; so many are tried before such a puzzle is left as it is.
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
