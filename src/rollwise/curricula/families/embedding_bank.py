"""The prompt bank of Frontier-Curriculum: which prompts resemble the memory most (appendix B.3).

Comparing the whole bank with the whole memory is most of the method's work. Between two retrievals little of the memory
changes, so only that part is compared anew; and in float32, since the few prompts that can be among the best are
compared once more in float64. What is retrieved is therefore the same however it was arrived at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from rollwise.errors import PoolError

_AT_ONCE = 2**19  # similarities held in memory at once: 2 MB of float32, which a core's cache can hold


def best_match(bank: np.ndarray, memory: np.ndarray, priority: np.ndarray) -> np.ndarray:
    """c_m = max_j <e_m, e_j> u_j, (B,), of bank (B, d) against memory (L, d) with priorities (L,); appendix B.3.

    >>> best_match(np.eye(2), np.array([[0.6, 0.8], [1.0, 0.0]]), np.array([1.0, 0.5])).tolist()
    [0.6, 0.8]
    """
    return np.asarray((bank @ memory.T * priority).max(axis=1))


def unit(vectors: np.ndarray) -> np.ndarray:
    """The vectors phi (K, d) at length 1, e = phi / |phi|, in float64; appendix B.2. A vector of zeros stays one.

    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    vectors = np.asarray(vectors, dtype=np.float64)
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1.0))


def sample_bank(tie: np.ndarray, size: int, key: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The bank's slots (B,), one for each key, and each prompt's row in it (N,) int32: its key's; -1 if it has none.

    Args:
        tie: (N,) uint32; the `size` prompts of the least are the sample, and the least stands for its key.
        size: how many prompts are sampled.
        key: (N,) whole numbers, equal where prompts are one instance; None if no two are.
    """
    near = np.arange(len(tie))
    if len(tie) > size:
        near = np.flatnonzero(tie <= np.partition(tie, size - 1)[size - 1])
    near = near[np.argsort(tie[near], kind="stable")][:size]
    row = np.full(len(tie), -1, dtype=np.int32)
    if key is None:
        slots = np.sort(near)
        row[slots] = np.arange(len(slots), dtype=np.int32)
        return slots, row
    slots = np.sort(near[np.unique(key[near], return_index=True)[1]])
    row_of_key = np.full(int(key.max()) + 1, -1, dtype=np.int32)
    row_of_key[key[slots]] = np.arange(len(slots), dtype=np.int32)
    return slots, row_of_key[key]


class Bank:
    """B = {(x_m, e_m, k_m)}: the prompts that can be retrieved, one for each key, and which of them are free.

    Args:
        slots: (B,) the prompts' slots.
        row: (N,) each prompt's row here, by its key; -1 for none.
        embedding: (N, d) of any length.

    Everything is on hold at first.
    """

    def __init__(self, slots: np.ndarray, row: np.ndarray, embedding: np.ndarray) -> None:
        self.slots, self.row, self.embedding = slots, row, embedding
        self.vectors = unit(embedding[slots]).astype(np.float32)
        self.busy: np.ndarray = np.bincount(row[row >= 0], minlength=len(slots))  # prompts of the key on hold
        self.score = np.full(len(slots), -np.inf, dtype=np.float32)  # c_m against the memory last seen, ...
        self.match = np.zeros(len(slots), dtype=np.int64)  # ... and whose similarity it is
        self.memory = np.empty(0, dtype=np.int64)
        self.priority = np.empty(0)

    def hold(self, slots: np.ndarray) -> None:
        """Hold these slots, which were all free."""
        np.add.at(self.busy, self._rows(slots), 1)

    def release(self, slots: np.ndarray) -> None:
        """Free these slots, which were all on hold."""
        np.subtract.at(self.busy, self._rows(slots), 1)

    def retrieve(
        self, n: int, memory: np.ndarray, priority: np.ndarray, ties: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Up to `n` slots, best first, of the greatest c_m among those whose key is neither on hold nor in the memory.

        Args:
            n: how many.
            memory: (L,) slots remembered, rising.
            priority: (L,) u_j.
            ties: gives each slot the number that breaks ties; scores that float32 can't tell apart are ties.
        """
        self._refresh(memory, priority)
        fit = self.busy == 0
        fit[self._rows(memory)] = False
        rows = np.flatnonzero(fit)
        if len(rows) > n:
            score = self.score[rows]
            rows = rows[score >= np.partition(score, -n)[-n] - self._margin(priority)]
        known = unit(self.embedding[memory])
        parts = [
            best_match(unit(self.embedding[self.slots[rows[at]]]), known, priority)
            for at in _parts(len(rows), len(memory))
        ]
        exact = np.concatenate([*parts, np.empty(0)]).astype(np.float32)
        slots = self.slots[rows]
        return np.asarray(slots[np.lexsort((ties(slots), -exact))[:n]])

    def _rows(self, slots: np.ndarray) -> np.ndarray:
        rows = self.row[slots]
        return np.asarray(rows[rows >= 0])

    def _margin(self, priority: np.ndarray) -> float:
        # A float32 dot product of unit vectors is off by at most d 2^-24, rounding them and u by four more; two scores.
        return float((self.vectors.shape[1] + 4) * 2.0**-23 * priority.max())

    def _refresh(self, memory: np.ndarray, priority: np.ndarray) -> None:
        """Update `score` and `match` for the parts of the memory that came, went or changed their priority."""
        at = np.searchsorted(self.memory, memory)
        same = at < len(self.memory)
        same[same] = (self.memory[at[same]] == memory[same]) & (self.priority[at[same]] == priority[same])
        gone = np.ones(len(self.row), dtype=bool)
        gone[memory[same]] = False
        lost = np.flatnonzero(gone[self.match])
        self.score[lost], self.match[lost] = self._compare(self.vectors[lost], memory, priority)
        if len(lost) < len(self.slots) and not same.all():
            score, match = self._compare(self.vectors, memory[~same], priority[~same])
            better = score > self.score
            self.score[better], self.match[better] = score[better], match[better]
        self.memory, self.priority = memory.copy(), priority.copy()

    def _compare(self, vectors: np.ndarray, memory: np.ndarray, priority: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """c_m of `vectors` (K, d) against this memory in float32, and the slot that gives it; both (K,)."""
        weighted = np.ascontiguousarray((unit(self.embedding[memory]) * priority[:, None]).T, dtype=np.float32)
        score, match = np.empty(len(vectors), dtype=np.float32), np.empty(len(vectors), dtype=np.int64)
        for at in _parts(len(vectors), len(memory)):
            similarity = vectors[at] @ weighted
            best = similarity.argmax(axis=1)
            score[at] = similarity[np.arange(len(best)), best]
            match[at] = memory[best]
        return score, match


def _parts(n: int, width: int) -> Iterator[slice]:
    step = max(1, _AT_ONCE // max(1, width))
    return (slice(start, start + step) for start in range(0, n, step))


def check_vectors(made: np.ndarray, prompts: int, name: str) -> None:
    """`PoolError` unless `made` holds finite numbers, (N, d), for each of N prompts."""
    shape_fits = made.ndim == 2 and len(made) == prompts
    if not shape_fits or made.dtype.kind not in "biuf" or not np.isfinite(made).all():
        raise PoolError(
            f"embedding {name!r} must give finite numbers, equally many, for each of {prompts} prompts, got an array "
            f"of shape {made.shape} and type {made.dtype}"
        )


def numbered(values: Iterable[Any]) -> np.ndarray:
    """Whole numbers from 0 up, (N,), equal for values of equal text.

    >>> numbered(["a", "b", "a"]).tolist()
    [0, 1, 0]
    """
    number: dict[str, int] = {}
    return np.array([number.setdefault(str(value), len(number)) for value in values], dtype=np.int64)


def name_of(embedding: str | Callable[..., Any]) -> str:
    """What an embedding is called: a column's name, or a function's."""
    return embedding if isinstance(embedding, str) else getattr(embedding, "__qualname__", type(embedding).__name__)
