"""Prompts: their ids, given or made from their content, and rows of prompts that stay on disk."""

from __future__ import annotations

import hashlib
import json
import logging
import zlib
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any, Literal, overload

import numpy as np

from rollwise.errors import ConfigError, PoolError

logger = logging.getLogger(__name__)

Duplicates = Literal["error", "drop", "number"]

_AT_ONCE = 1000
"""Prompts read at a time, where they are on disk."""


def content_id(content: Any) -> str:
    """The first 80 bits, in hex, of the SHA-256 of `content` (text, chat messages, or any JSON value).

    >>> content_id("2+2=") == content_id("2+2=") != content_id("2+3=")
    True
    """
    text = content if isinstance(content, str) else json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]


def assign_ids(
    given: Sequence[Any], prompts: Sequence[Any], *, on_duplicate: Duplicates = "error"
) -> tuple[list[str], list[int]]:
    """Ids for N prompts and the rows kept: the given id, or else the content's hash.

    Where every id is given, no prompt is read.

    Raises:
        PoolError: an id that is not text, a row with neither id nor prompt, or a duplicate that may not be.
    """
    if on_duplicate not in ("error", "drop", "number"):
        raise ConfigError(f"on_duplicate must be 'error', 'drop' or 'number', got {on_duplicate!r}")
    ids: list[str] = []
    keep: list[int] = []
    seen: dict[str, int] = {}
    repeated = 0
    texts = _read(prompts) if any(own is None for own in given) else repeat(None, len(prompts))
    for row, (own, prompt) in enumerate(zip(given, texts, strict=True)):
        if own is None and prompt is None:
            raise PoolError(f"record {row} has neither an id nor a prompt")
        id_ = content_id(prompt) if own is None else str(own) if isinstance(own, int | np.integer) else own
        if not isinstance(id_, str):
            raise PoolError(f"ids must be non-empty strings, got {id_!r:.80} at row {row}")
        times = seen[id_] = seen.get(id_, 0) + 1
        if times > 1 and own is None:
            repeated += 1
            if on_duplicate == "error":
                raise PoolError(
                    f"record {row} repeats the prompt of an earlier one: {str(prompt)[:80]!r}; give the records ids of "
                    "their own, or say on_duplicate='drop' or 'number'"
                )
            if on_duplicate == "drop":
                continue
            id_ = f"{id_}#{times}"
        ids.append(id_)
        keep.append(row)
    if repeated:
        kept = (
            "are left out"
            if on_duplicate == "drop"
            else "are kept, as prompts of their own with ids that end in #2, #3, ..."
        )
        logger.warning("%d of %d prompts have the text of an earlier one; they %s", repeated, len(given), kept)
    return ids, keep


def index_ids(ids: list[str]) -> dict[str, int]:
    """Id -> row.

    Raises:
        PoolError: no ids, or one that is empty, no text, or there twice.
    """
    if not ids:
        raise PoolError("the pool is empty; a curriculum needs at least one prompt")
    slots = {id_: slot for slot, id_ in enumerate(ids) if isinstance(id_, str) and id_}
    if len(slots) == len(ids):
        return slots
    seen: set[Any] = set()
    for row, id_ in enumerate(ids):
        if not isinstance(id_, str) or not id_:
            raise PoolError(f"ids must be non-empty strings, got {id_!r} at row {row}")
        if id_ in seen:
            raise PoolError(f"duplicate id {id_!r} at row {row}; ids must be distinct")
        seen.add(id_)
    raise AssertionError("unreachable: lengths differ only for a bad or a repeated id")


def hash_ids(ids: Sequence[str]) -> np.ndarray:
    """A uint32 hash of each id, (N,).

    >>> hash_ids(["a", "b"]).tolist() == [zlib.crc32(b"a"), zlib.crc32(b"b")]
    True
    """
    try:
        return np.fromiter(map(zlib.crc32, map(str.encode, ids)), dtype=np.uint32, count=len(ids))
    except UnicodeEncodeError:  # half a surrogate pair
        encoded = (id_.encode("utf-8", "surrogatepass") for id_ in ids)
        return np.fromiter(map(zlib.crc32, encoded), dtype=np.uint32, count=len(ids))


def _read(prompts: Sequence[Any]) -> Iterator[Any]:
    """The prompts one by one; by slices, as a column on disk reads a thousand rows as fast as ten single ones."""
    for start in range(0, len(prompts), _AT_ONCE):
        yield from prompts[start : start + _AT_ONCE]


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
