"""ADCL: chunks from easy to hard, the next one re-sorted by what the current policy finds hard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Unpack

import numpy as np

from rollwise.curricula.seam.base import CoreOptions, Curriculum
from rollwise.curricula.seam.picks import Picks
from rollwise.draws import MaxTree, pack, rank_of_fewest, ties
from rollwise.errors import PoolError
from rollwise.options import Count
from rollwise.pool import PromptPool
from rollwise.tickets.evidence import Evidence

_NONE = -1


class ADCL(
    Curriculum,
    name="adcl",
    paper="Zhang et al., arXiv 2505.08364, with METIS's table 5",
    needs="probes, of the whole pool first",
):
    """Sorts the prompts by difficulty into chunks and trains on chunk after chunk; before each, sorts it anew.

    Adaptive Difficulty Curriculum Learning: Zhang et al. 2025, *Learning Like Humans* (arXiv 2505.08364), without its
    expert-guided part, with the numbers of METIS (appendix A.5, table 5). The rollouts that estimate difficulty come by
    `probe`, are not trained on, and are counted (`probed`, `probe_rollouts`): of the whole pool before training, and of
    every chunk but the first. What was decided where the paper is silent is in docs/decisions.md.

    Args:
        pool: any prompts; with `difficulty="column"` it needs `column`.
        chunks: K, the number of chunks (METIS: 8).
        probe_rollouts: rollouts of a prompt for its difficulty (METIS: 4). The first pass costs this many times N.
        rank_by: "pass-rate": difficulty is one minus the mean score; "variance", for continuous rewards: the variance
            of the scores, the lowest first (METIS's extension).
        difficulty: how chunks are made: "measured" rolls the whole pool out first (A.5); "column" costs nothing.
        column: the difficulties of "column", greater for harder. "measured" does not look at it.

    >>> pool = PromptPool(ids=["c", "a", "b"], columns={"difficulty": [3, 1, 2]})
    >>> [t.prompt_id for t in ADCL(pool, chunks=2, difficulty="column").ask(3)]
    ['a', 'b', 'c']
    >>> len(ADCL(pool, chunks=2).probe(100))
    3
    """

    columns_spec = {
        "chunk": (np.int64, _NONE),
        "hardness": (np.float64, np.nan),  # as last measured
        "turns": (np.int64, 0),
        "estimated": (np.int64, _NONE),  # the turn for which its hardness was last asked for
    }
    lane = "chunk"

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        chunks: Count = 8,
        probe_rollouts: Count = 4,
        rank_by: Literal["pass-rate", "variance"] = "pass-rate",
        difficulty: Literal["measured", "column"] = "measured",
        column: str = "difficulty",
        **core: Unpack[CoreOptions],
    ) -> None:
        self.chunks, self.probe_rollouts, self.rank_by = chunks, probe_rollouts, rank_by
        self.difficulty, self.column = difficulty, column
        self.learns_from = "means" if rank_by == "pass-rate" else "rewards"
        super().__init__(pool, **core)

    def build(self) -> None:
        n = len(self.pool)
        self.queue = MaxTree(n)
        self.free = np.zeros(n, dtype=bool)
        self.place: np.ndarray = np.zeros(n, dtype=np.uint32)
        self.last_asked = 1
        self.begun = _NONE  # the last chunk that a batch has reached: turn * K + chunk
        self.changed: set[int] = set()  # chunks with prompts measured since they were sorted
        self.given: np.ndarray = np.zeros(n)  # difficulties that the pool came with
        if self.difficulty == "column":
            values = self.pool.require(
                self.column, "ADCL", 'add difficulties, greater for harder, or leave out difficulty="column"'
            )
            if values.dtype.kind not in "biuf" or values.ndim != 1 or not np.isfinite(values).all():
                raise PoolError(f"ADCL needs one finite number for each prompt in column {self.column!r}")
            self.given = values.astype(np.float64)
            self._partition()

    # ---- chunks ----

    @property
    def divided(self) -> bool:
        """Whether the prompts are sorted into chunks yet."""
        return bool(self.columns["chunk"][0] != _NONE)

    def _partition(self) -> None:
        """Sort all prompts, and cut them into K chunks that they keep."""
        n = len(self.pool)
        order = self._sorted(np.arange(n))
        self.columns["chunk"][order] = np.arange(n) * min(self.chunks, n) // n
        self.columns["estimated"][:] = np.where(self.columns["chunk"] == 0, 0, _NONE)
        self.place[order] = np.arange(n, 0, -1, dtype=np.uint32)
        self._requeue(np.flatnonzero(self.free))

    def _count(self) -> tuple[int, np.ndarray, np.ndarray]:
        """Which turn it is, how many prompts of each chunk wait for it (K,), and how many each has (K,).

        Prompts that are set aside for want of rewards, which are neither free nor in flight, do not count.
        """
        there = self.free | self.ledger.open
        chunk, turns = self.columns["chunk"][there], self.columns["turns"][there]
        turn = int(turns.min()) if len(turns) else 0
        waiting = np.bincount(chunk[turns == turn], minlength=self.chunks)
        return turn, waiting, np.bincount(chunk, minlength=self.chunks)

    def _sort_chunk(self, chunk: int) -> None:
        """Sort the prompts of one chunk within the chunk's places."""
        members = np.flatnonzero(self.columns["chunk"] == chunk)
        places = np.sort(self.place[members])[::-1]
        self.place[self._sorted(members)] = places
        self._requeue(members[self.free[members]])

    def _sorted(self, slots: np.ndarray) -> np.ndarray:
        """The slots, the easiest first; those never measured last, in the order of the given difficulties."""
        chance = ties(self.rng.seed, self.id_hashes[slots], np.zeros(len(slots), dtype=np.int64))
        hardness = np.nan_to_num(self.columns["hardness"][slots], nan=np.inf)
        return np.asarray(slots[np.lexsort((chance, self.given[slots], hardness))])

    def _requeue(self, slots: np.ndarray) -> None:
        self.queue.set(slots, pack(rank_of_fewest(self.columns["turns"][slots]), self.place[slots]))

    # ---- measuring ----

    def select_probes(self, k: int) -> Picks:
        parts: list[np.ndarray] = [np.empty(0, dtype=np.int64)]
        for turn, members in self._due():
            due = members[self.free[members] & (self.columns["estimated"][members] < turn)]
            parts.append(due[: k - sum(map(len, parts))])
            self.columns["estimated"][parts[-1]] = turn
        return Picks.of(np.concatenate(parts), "probe")

    def _due(self) -> Iterator[tuple[int, np.ndarray]]:
        """Turn and prompts of each chunk that the next batch will begin; at first, all prompts."""
        if not self.divided:
            yield 0, np.arange(len(self.pool))
            return
        chunks, left = self.chunks, self.last_asked
        now, waiting, sizes = self._count()
        present = int(np.argmax(waiting > 0))
        for place in range(present, present + chunks):
            turn, chunk = now + place // chunks, place % chunks
            if turn * chunks + chunk > self.begun:
                yield turn, np.flatnonzero(self.columns["chunk"] == chunk)
            left -= int(waiting[chunk] if turn == now else sizes[chunk])
            if left <= 0:
                return

    def observe_probes(self, evidence: Evidence) -> None:
        judged = evidence.where(evidence.judged)
        hardness = 1.0 - judged.mean if self.rank_by == "pass-rate" else judged.variance
        self.columns["hardness"][judged.slots] = hardness
        if self.divided:
            self.changed |= set(self.columns["chunk"][judged.slots].tolist())

    # ---- choosing ----

    def select(self, k: int) -> Picks:
        if not self.divided:
            self._partition()
        for chunk in sorted(self.changed):
            self._sort_chunk(chunk)
        self.changed = set()
        self.last_asked = k
        slots = self.queue.pop(k)
        if len(slots):
            reached = self.columns["turns"][slots] * self.chunks + self.columns["chunk"][slots]
            self.begun = max(self.begun, int(reached.max()))
        return Picks.of(slots, self.lane)

    def mark(self, picks: Picks) -> None:
        super().mark(picks)
        self.columns["turns"][picks.slots] += 1

    def hold(self, slots: np.ndarray) -> None:
        self.free[slots] = False
        self.queue.set(slots, 0)

    def release(self, slots: np.ndarray) -> None:
        self.free[slots] = True
        self._requeue(slots)

    # ---- looking inside, saving ----

    def own_metrics(self) -> dict[str, float]:
        chunk = float(np.argmax(self._count()[1] > 0)) if self.divided else float(_NONE)
        return {"epoch": float(self.columns["turns"].mean()), "chunk": chunk}

    def own_state(self) -> dict[str, Any]:
        numbers = {"chunks": self.chunks, "last_asked": self.last_asked, "begun": self.begun}
        return {**numbers, "changed": sorted(self.changed)}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        self.last_asked, self.begun = int(state["last_asked"]), int(state["begun"])
        self.changed = {int(chunk) for chunk in state["changed"]}
        self.columns["turns"][added] = np.delete(self.columns["turns"], added).min()
        chunk = self.columns["chunk"]
        if np.delete(chunk, added).max() == _NONE:
            chunk[:] = _NONE
            return
        if state.get("chunks", self.chunks) != self.chunks:  # loaded with strict=False: divided anew, as at first
            chunk[:], self.columns["turns"][:], self.changed, self.begun = _NONE, 0, set(), _NONE
            self._partition()
            return
        chunk[added], self.columns["estimated"][added] = self.chunks - 1, _NONE
        order = self._sorted(np.arange(len(chunk)))
        self.place[order[np.argsort(chunk[order], kind="stable")]] = np.arange(len(chunk), 0, -1, dtype=np.uint32)
