"""Makes compact zebra puzzles: clues of which each is needed, and which together leave one assignment."""

from __future__ import annotations

import functools
import itertools
import random
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NAMES = ("ABCDE", "abcde", "vwxyz")
"""Values of each characteristic."""


@dataclass(frozen=True)
class Size:
    """How many houses there are, and how many characteristics; a value of each lives in every house."""

    houses: int
    characteristics: int

    @property
    def values(self) -> str:
        """All values, characteristic by characteristic."""
        return "".join(names[: self.houses] for names in NAMES[: self.characteristics])


@functools.cache
def assignments(size: Size) -> NDArray[np.int8]:
    """Every way to assign the values to houses, (N, values): the house of each, from 1."""
    orders = list(itertools.permutations(range(1, size.houses + 1)))
    every = itertools.product(orders, repeat=size.characteristics)
    return np.array([list(itertools.chain.from_iterable(one)) for one in every], dtype=np.int8)


def true_clues(size: Size, houses: NDArray[np.int8], rng: random.Random) -> list[str]:
    """What can be said of an assignment, `houses` (values,).

    As in reasoning-gym: where each value lives (`A2`), who shares a house (`Aa`), and of two that live next door
    either that, or on which side, by chance (`A~b`, `A<b`).
    """
    where = dict(zip(size.values, houses.tolist(), strict=True))
    clues = [f"{value}{house}" for value, house in where.items()]
    clues += [f"{a}{b}" for a, b in itertools.combinations(where, 2) if where[a] == where[b]]
    doors = [(a, b) for a, b in itertools.product(where, repeat=2) if where[b] - where[a] == 1]
    return clues + [f"{a}{rng.choice('<~')}{b}" for a, b in doors]


def satisfies(size: Size, clue: str) -> NDArray[np.bool_]:
    """Which of all `assignments` a clue is true of, (N,)."""
    every, last = assignments(size), clue[-1]
    first = every[:, size.values.index(clue[0])]
    if last.isdigit():
        return np.equal(first, int(last))
    difference = every[:, size.values.index(last)] - first
    wanted = {"<": (1,), "~": (1, -1)}.get(clue[1], (0,))
    return np.isin(difference, wanted)


def needed(size: Size, clues: list[str]) -> list[str]:
    """Of clues that leave one assignment those that are left when each that can be spared is taken out, in order."""
    wrong = ~np.array([satisfies(size, clue) for clue in clues])
    against = wrong.sum(axis=0)
    kept = []
    for clue, excluded in zip(clues, wrong, strict=True):
        if np.count_nonzero(against == excluded) == 1:
            against = against - excluded
        else:
            kept.append(clue)
    return kept


def written(size: Size, houses: NDArray[np.int8]) -> str:
    """An assignment as each value with its house, in the order of the values."""
    return "".join(f"{value}{house}" for value, house in zip(size.values, houses.tolist(), strict=True))


def make(size: Size, rng: random.Random) -> tuple[list[str], str]:
    """Clues, and the assignment that they leave, as `written`."""
    houses = assignments(size)[rng.randrange(len(assignments(size)))]
    clues = true_clues(size, houses, rng)
    rng.shuffle(clues)
    return needed(size, clues), written(size, houses)
