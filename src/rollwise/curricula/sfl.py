"""SFL and LILO: roll prompts out first, and train on those of the greatest learnability p(1-p)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Unpack

import numpy as np

from rollwise.curricula.families.measured_sets import MeasuredSets
from rollwise.curricula.families.rotation import Uniform
from rollwise.curricula.seam.base import CoreOptions
from rollwise.curricula.seam.picks import Picks
from rollwise.options import Count, CountFromTwo, Share
from rollwise.pool import PromptPool
from rollwise.tickets.evidence import Evidence

_BATCH = 64  # LILO's (appendix E.1), where `probe` does not say what the next `ask` will want


class SFL(MeasuredSets, Uniform, name="sfl", paper="Rutherford et al., arXiv 2408.15099", needs="probes"):
    """Every `refresh_every` steps measures random candidates and keeps the most learnable; batches draw on these.

    Sampling For Learnability: Rutherford et al. 2024, *No Regrets* (arXiv 2408.15099), and its release. The measuring
    rollouts come by `probe`, are not trained on, and are counted (`probed`, `probe_rollouts`).

    Args:
        pool: any prompts.
        candidates: N, prompts measured at a refresh (5000), at most the whole pool; None: four times the batch (LILO).
        buffer: K, how many of the most learnable are kept (release, JaxNav: 100; paper, figure 24: 1000); None: all.
        refresh_every: T, steps between refreshes (50).
        share: rho, the share of a batch that comes from the buffer (0.5); the others are uniform.
        order: "uniform" draws from the buffer at random, "best" takes the most learnable first.
        probe_rollouts: rollouts of each candidate (8; the release measures episodes for a fixed time).

    Where it departs:

    - Prompts without any learnability are not kept, though the buffer be not full; uniform ones come in their place.
    - No prompt is twice in a batch, though the release draws with replacement.
    - Learnability is the measured variance of the scores, which is p(1-p) for rewards 0 and 1.
    - A refresh that nobody measured for (`probe` is not called) takes what was trained on: the buffer holds the most
      learnable of the prompts rolled out since the last refresh.

    >>> sfl = SFL(PromptPool(ids=["a", "b", "c"]), candidates=2, seed=0)
    >>> len(sfl.probe(8)), sfl.probe(8)
    (2, [])
    """

    learns_from = "rewards"
    rotates = False
    columns_spec = {
        **Uniform.columns_spec,
        "candidate": (np.int8, 0),  # in states of before: 1 where `wanted`
        "learnability": (np.float64, np.nan),  # as measured for the refresh to come
        "buffered": (np.float64, np.nan),  # learnability of those in the buffer; NaN outside it
    }
    extra_lanes = frozenset({"buffer"})

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        candidates: Count | None = 5000,
        buffer: Count | None = 100,
        refresh_every: Count = 50,
        share: Share = 0.5,
        order: Literal["uniform", "best"] = "uniform",
        probe_rollouts: CountFromTwo = 8,
        **core: Unpack[CoreOptions],
    ) -> None:
        self.candidates, self.buffer, self.refresh_every, self.share = candidates, buffer, refresh_every, share
        self.probe_rollouts, self.buffer_order = probe_rollouts, order
        super().__init__(pool, **core)

    def build(self) -> None:
        super().build()
        self.free = np.zeros(len(self.pool), dtype=bool)
        self.kept = np.empty(0, dtype=np.int64)  # slots of the buffer
        self.owed = 0.0

    # ---- measuring ----

    def next_set(self, free: np.ndarray) -> np.ndarray:
        self.columns["learnability"][:] = np.nan
        many = self.candidates or 4 * (self.next_ask or _BATCH)
        return self.rng["candidates"].choice(free, size=min(many, len(free)), replace=False)

    def observe_probes(self, evidence: Evidence) -> None:
        if self.measuring:  # what comes after the refresh is old news at the next
            self._measure(evidence)

    def observe(self, evidence: Evidence) -> None:
        if not self.measuring:
            self._measure(evidence)

    def _measure(self, evidence: Evidence) -> None:
        judged = evidence.where(evidence.judged)
        self.columns["learnability"][judged.slots] = judged.variance

    def _refresh(self) -> None:
        """The K most learnable of those measured become the buffer; equal ones by chance."""
        learnability = np.nan_to_num(self.columns["learnability"])
        some = np.flatnonzero(learnability > 0)
        best = some[np.lexsort((self.ties_now(some), -learnability[some]))[: self.buffer]]
        self.columns["buffered"][:] = np.nan
        self.columns["buffered"][best] = learnability[best]
        self.columns["learnability"][:] = np.nan
        self.kept = np.sort(best)
        self.end_measuring()

    # ---- choosing ----

    def select(self, k: int) -> Picks:
        if self.measuring or self.due:
            self._refresh()
        kept = self.kept[self.free[self.kept]]
        self.owed += self.share * k
        n = int(self.owed + 1e-9)
        self.owed -= n  # a fraction waits for the next ask; what the buffer can't give is not owed
        chosen = self._from_buffer(kept, min(n, len(kept)))
        self.hold(chosen)
        return Picks.interleave([Picks.of(chosen, "buffer"), super().select(k - len(chosen))], self.rng)

    def _from_buffer(self, kept: np.ndarray, n: int) -> np.ndarray:
        if self.buffer_order == "best":
            return np.asarray(kept[np.lexsort((self.ties_now(kept), -self.columns["buffered"][kept]))[:n]])
        return np.asarray(self.rng["buffer"].choice(kept, size=n, replace=False))

    def hold(self, slots: np.ndarray) -> None:
        super().hold(slots)
        self.free[slots] = False

    def release(self, slots: np.ndarray) -> None:
        super().release(slots)
        self.free[slots] = True

    def own_metrics(self) -> dict[str, float]:
        mean = {"buffer_learnability": float(self.columns["buffered"][self.kept].mean())} if len(self.kept) else {}
        return {**super().own_metrics(), "buffer": float(len(self.kept)), **mean}

    def own_state(self) -> dict[str, Any]:
        return {**super().own_state(), "owed": self.owed}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        super().load_own_state(state, added)
        self.owed = float(state["owed"])
        if "wanted" not in state:
            self.wanted = np.flatnonzero(self.columns["candidate"] == 1)
        self.kept = np.flatnonzero(~np.isnan(self.columns["buffered"]))


class LILO(SFL, name="lilo", paper="Foster et al., arXiv 2502.12272", needs="probes"):
    """Measures four times as many candidates as a batch needs at every step, and trains on the most learnable.

    Foster et al. 2025, *LILO: Learning to Reason at the Frontier of Learnability* (arXiv 2502.12272, version 6),
    Algorithms 1 and 2: SFL with a refresh at every step and batches from the buffer alone. Nothing is remembered from
    one step to the next.

    The chosen prompts are rolled out anew, as in the paper where groups are larger than 8. In its runs with groups of 8
    the paper trains on the measured rollouts instead (section 4), which saves a fifth of all. A gate does that, with
    uniform prompts: docs/decisions.md has the row of a plan.

    Args:
        pool: any prompts.
        candidates: prompts measured at each step; None: four times the batch (section 5). The batch is `probe`'s
            `wanted`, which the trainers give; without it 64.
        probe_rollouts: rollouts of each measured prompt (section 5: 8). They are not trained on.
    """

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        candidates: Count | None = None,
        probe_rollouts: CountFromTwo = 8,
        **core: Unpack[CoreOptions],
    ) -> None:
        super().__init__(
            pool,
            candidates=candidates,
            buffer=candidates,
            refresh_every=1,
            share=1.0,
            order="best",
            probe_rollouts=probe_rollouts,
            **core,
        )
