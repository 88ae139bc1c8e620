"""ADCL: chunks from easy to hard, the next one re-sorted by what the present policy finds hard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Unpack

import numpy as np

from rollwise.acquisition import moment_variance
from rollwise.checks import check_whole
from rollwise.curricula.base import CoreOptions, Curriculum
from rollwise.curricula.picks import Picks
from rollwise.curricula.rails import ROTATING_RAILS
from rollwise.draws import MaxTree, pack, rank_of_fewest, ties
from rollwise.errors import ConfigError, PoolError
from rollwise.evidence import Evidence
from rollwise.pool import PromptPool

_NONE = -1


class ADCL(Curriculum):
    """Sorts the prompts by difficulty into chunks and goes through them; before each, sorts it anew.

    Adaptive Difficulty Curriculum Learning: Zhang et al. 2025, *Learning Like Humans* (arXiv 2505.08364), without its
    expert-guided part, with the numbers of METIS (appendix A.5, table 5). The rollouts that estimate difficulty come by
    `probe`, are not trained on, and are counted (`probed`, `probe_rollouts`): of the whole pool at the start, unless it
    has `column`, and of every chunk but the first.

    Args:
        pool: any prompts; with `column` the first estimate costs nothing.
        chunks: K (METIS: 8).
        probe_rollouts: rollouts of a prompt for its difficulty (METIS: 4).
        rank_by: "pass-rate": difficulty is one minus the mean score; "variance", for continuous rewards: the variance
            of the scores, the lowest first (METIS's extension).
        column: difficulties to begin with, greater for harder.

    Where the paper is silent: the next chunk is estimated when the present one has no more prompts left than the last
    batch had; after the last chunk comes the first again, estimated anew; prompts of equal difficulty come in random
    order; prompts that join later join the last chunk. Who never calls `probe` gets the order of `column`, or, without
    it, a random one; a chunk that is reached before its estimate keeps the one it had.

    >>> pool = PromptPool(ids=["c", "a", "b"], columns={"difficulty": [3, 1, 2]})
    >>> [t.prompt_id for t in ADCL(pool, chunks=2).ask(3)]
    ['a', 'b', 'c']
    """

    columns_spec = {
        "chunk": (np.int64, _NONE),
        "hardness": (np.float64, np.nan),
        "turns": (np.int64, 0),
        "estimated": (np.int64, _NONE),  # the turn for which its hardness was last asked for
    }
    default_rails = ROTATING_RAILS
    lane = "chunk"

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        chunks: int = 8,
        probe_rollouts: int = 4,
        rank_by: Literal["pass-rate", "variance"] = "pass-rate",
        column: str = "difficulty",
        **core: Unpack[CoreOptions],
    ) -> None:
        self.chunks = check_whole("chunks", chunks, least=1)
        self.probe_rollouts = check_whole("probe_rollouts", probe_rollouts, least=1)
        if rank_by not in ("pass-rate", "variance"):
            raise ConfigError(f"rank_by must be 'pass-rate' or 'variance', got {rank_by!r}")
        self.rank_by, self.column = rank_by, column
        own = {"chunks": chunks, "probe_rollouts": probe_rollouts, "rank_by": rank_by, "column": column}
        super().__init__(pool, options=own, **core)

    def build(self) -> None:
        n = len(self.pool)
        self.queue = MaxTree(n)
        self.free = np.zeros(n, dtype=bool)
        self.place: np.ndarray = np.zeros(n, dtype=np.uint32)
        self.last_asked = 1
        self.changed: set[int] = set()  # chunks with prompts measured since they were sorted
        if self.column in self.pool.columns:
            values = self.pool.columns[self.column]
            if values.dtype.kind not in "biuf" or values.ndim != 1 or not np.isfinite(values).all():
                raise PoolError(f"ADCL needs one finite number for each prompt in column {self.column!r}")
            self.columns["hardness"][:] = values
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
        self.columns["chunk"][order] = np.arange(n) * self.chunks // n
        self.columns["estimated"][:] = np.where(self.columns["chunk"] == 0, 0, _NONE)
        self.place[order] = np.arange(n, 0, -1, dtype=np.uint32)
        self._requeue(np.flatnonzero(self.free))

    def _sort_chunk(self, chunk: int) -> None:
        """Sort the prompts of one chunk among the places that the chunk has."""
        members = np.flatnonzero(self.columns["chunk"] == chunk)
        places = np.sort(self.place[members])[::-1]
        self.place[self._sorted(members)] = places
        self._requeue(members[self.free[members]])

    def _sorted(self, slots: np.ndarray) -> np.ndarray:
        """The slots, the easiest first; those never measured last."""
        chance = ties(self.rng.seed, self.id_hashes[slots], np.zeros(len(slots), dtype=np.int64))
        hardness = np.nan_to_num(self.columns["hardness"][slots], nan=np.inf)
        return np.asarray(slots[np.lexsort((chance, hardness))])

    def _requeue(self, slots: np.ndarray) -> None:
        self.queue.set(slots, pack(rank_of_fewest(self.columns["turns"][slots]), self.place[slots]))

    # ---- measuring ----

    def select_probes(self, k: int) -> Picks:
        turn, members = self._due()
        due = members[self.free[members] & (self.columns["estimated"][members] < turn)][:k]
        self.columns["estimated"][due] = turn
        return Picks.of(due, "probe")

    def _due(self) -> tuple[int, np.ndarray]:
        """The turn that is to be prepared, and the prompts to be measured for it: the next chunk, or at first all."""
        chunk, turns = self.columns["chunk"], self.columns["turns"]
        if not self.divided:
            return 0, np.arange(len(chunk))
        turn = int(turns.min())
        waiting = turns == turn
        present = int(chunk[waiting].min())
        if np.count_nonzero(waiting & (chunk == present)) > self.last_asked:
            return turn, np.empty(0, dtype=np.int64)
        following = (present + 1) % self.chunks
        return turn + (following <= present), np.flatnonzero(chunk == following)

    def observe_probes(self, evidence: Evidence) -> None:
        judged = evidence.where(evidence.judged)
        hardness = 1.0 - judged.mean if self.rank_by == "pass-rate" else moment_variance(judged.mean, judged.square)
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
        return Picks.of(self.queue.pop(k), self.lane)

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
        turns, chunk = self.columns["turns"], self.columns["chunk"]
        return {"epoch": float(turns.mean()), "chunk": float(chunk[turns == turns.min()].min())}

    def own_state(self) -> dict[str, Any]:
        return {"last_asked": self.last_asked, "changed": sorted(self.changed)}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        self.last_asked, self.changed = int(state["last_asked"]), {int(chunk) for chunk in state["changed"]}
        self.columns["turns"][added] = np.delete(self.columns["turns"], added).min()
        chunk = self.columns["chunk"]
        if np.delete(chunk, added).max() == _NONE:
            chunk[:] = _NONE
            return
        chunk[added] = self.chunks - 1
        order = self._sorted(np.arange(len(chunk)))
        self.place[order[np.argsort(chunk[order], kind="stable")]] = np.arange(len(chunk), 0, -1, dtype=np.uint32)
