"""Prompts that stay where they are, on disk for example: rows of one sequence or several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np


class PromptRows(Sequence[Any]):
    """Rows of sequences, one sequence after the other; a prompt is read when it is asked for.

    Args:
        parts: sequences, and of each the rows (K,) that are here, in this order.

    >>> rows = PromptRows([("abc", np.array([2, 0])), ("xy", np.array([1]))])
    >>> list(rows), rows[-1], rows[1:]
    (['c', 'a', 'y'], 'y', ['a', 'y'])
    """

    def __init__(self, parts: Sequence[tuple[Sequence[Any], np.ndarray]]) -> None:
        self.parts = list(parts)
        self.ends = np.cumsum([len(rows) for _, rows in self.parts], dtype=np.int64)

    def __len__(self) -> int:
        return int(self.ends[-1])

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(f"row {index} of {len(self)} prompts")
        part = int(np.searchsorted(self.ends, place, side="right"))
        sequence, rows = self.parts[part]
        return sequence[int(rows[place - self.ends[part]])]


def join_rows(first: Sequence[Any], second: Sequence[Any]) -> Sequence[Any]:
    """The prompts of both: a list of lists, else rows of the two sequences, of which nothing is read."""
    if isinstance(first, list) and isinstance(second, list):
        return first + second
    return PromptRows([*_parts(first), *_parts(second)])


def take_rows(prompts: Sequence[Any], kept: np.ndarray) -> Sequence[Any]:
    """The prompts of the rows `kept` (K,), rising: a list of a list, else rows of the sequence.

    >>> take_rows(["a", "b", "c"], np.array([0, 2]))
    ['a', 'c']
    """
    if len(kept) == len(prompts):
        return prompts
    if isinstance(prompts, list):
        return [prompts[row] for row in kept.tolist()]
    taken: list[tuple[Sequence[Any], np.ndarray]] = []
    start = 0
    for sequence, rows in _parts(prompts):
        some = rows[kept[np.searchsorted(kept, start) : np.searchsorted(kept, start + len(rows))] - start]
        start += len(rows)
        if isinstance(sequence, list):  # let go of the others
            sequence, some = take_rows(sequence, some), np.arange(len(some))
        if len(some):
            taken.append((sequence, some))
    return PromptRows(taken)


def _parts(prompts: Sequence[Any]) -> Sequence[tuple[Sequence[Any], np.ndarray]]:
    return prompts.parts if isinstance(prompts, PromptRows) else [(prompts, np.arange(len(prompts)))]
