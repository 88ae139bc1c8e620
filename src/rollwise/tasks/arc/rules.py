"""The rules of compact ARC-1D puzzles: each turns a row of cells, 0 for background, into another row."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

Row = tuple[int, ...]
COLOURS = range(1, 10)


@dataclass(frozen=True)
class Rule:
    """A rule with rows to show it on.

    Attributes:
        apply: The output of an input; None for a row that it can't be shown on.
        draw: A random input row of this length.
    """

    apply: Callable[[Row], Row | None]
    draw: Callable[[int, random.Random], Row]


def one_block(length: int, rng: random.Random) -> Row:
    """A row with one block of one colour."""
    size = rng.randint(1, length - 1)
    start = rng.randint(0, length - size)
    return (0,) * start + (rng.choice(COLOURS),) * size + (0,) * (length - size - start)


def two_ends(length: int, rng: random.Random) -> Row:
    """A row with two cells of one colour that do not touch."""
    left = rng.randint(0, length - 3)
    right = rng.randint(left + 2, length - 1)
    colour = rng.choice(COLOURS)
    return tuple(colour if place in (left, right) else 0 for place in range(length))


def scattered(length: int, rng: random.Random) -> Row:
    """A row whose cells are background or any colour, half and half."""
    return tuple(rng.choice(COLOURS) if rng.random() < 0.5 else 0 for _ in range(length))


def moved(row: Row, by: int) -> Row | None:
    """The row with its cells moved to the right; None if a coloured one would fall off.

    >>> moved((0, 3, 3, 0), 1), moved((0, 3, 3, 0), -2)
    ((0, 0, 3, 3), None)
    """
    gone, kept = (row[len(row) - by :], row[: len(row) - by]) if by > 0 else (row[:-by], row[-by:])
    if any(gone):
        return None
    return (0,) * by + kept if by > 0 else kept + (0,) * -by


def hollow(row: Row) -> Row | None:
    """The row with only the ends of its block left; None for a block of fewer than three cells.

    >>> hollow((0, 4, 4, 4))
    (0, 4, 0, 4)
    """
    cells = [place for place, colour in enumerate(row) if colour]
    if len(cells) < 3:
        return None
    return tuple(colour if place in (cells[0], cells[-1]) else 0 for place, colour in enumerate(row))


def filled(row: Row) -> Row | None:
    """The row with the gap between its first and last cell filled; None without a gap.

    >>> filled((0, 4, 0, 4))
    (0, 4, 4, 4)
    """
    cells = [place for place, colour in enumerate(row) if colour]
    if len(cells) != 2 or row[cells[0]] != row[cells[1]] or cells[1] - cells[0] < 2:
        return None
    return tuple(row[cells[0]] if cells[0] <= place <= cells[1] else 0 for place in range(len(row)))


def mirrored(row: Row) -> Row | None:
    """The row backwards; None for one that reads alike both ways."""
    return row[::-1] if row != row[::-1] else None


def fallen(row: Row) -> Row | None:
    """The row with its coloured cells moved to the left end in their order; None if they are there already.

    >>> fallen((0, 4, 0, 5))
    (4, 5, 0, 0)
    """
    cells = tuple(colour for colour in row if colour)
    made = cells + (0,) * (len(row) - len(cells))
    return made if made != row else None


RULES: dict[str, Rule] = {
    "move 1": Rule(lambda row: moved(row, 1), one_block),
    "move 2": Rule(lambda row: moved(row, 2), one_block),
    "move -1": Rule(lambda row: moved(row, -1), one_block),
    "mirror": Rule(mirrored, one_block),
    "hollow": Rule(hollow, one_block),
    "fill": Rule(filled, two_ends),
    "gravity": Rule(fallen, scattered),
}
"""Rules by name. Moves by 1 and 2, hollow and fill are kinds of the 1D-ARC data set (arXiv:2305.18354), whose mirror
turns a block about a marked cell. Ours are the move to the left, the mirror about the row's middle, and gravity."""
