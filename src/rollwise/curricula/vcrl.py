"""VCRL: prompts of high reward variance train, and come back from a memory in place of those of low variance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from rollwise.curricula.families.rotation import Uniform
from rollwise.curricula.seam.base import CoreOptions
from rollwise.curricula.seam.picks import Picks
from rollwise.draws import MaxTree, pack, rank_of_scores
from rollwise.options import Count, CountOrZero, Share
from rollwise.pool import PromptPool
from rollwise.tickets.evidence import Evidence

_SLACK = 1e-9  # of a comparison of p with kappa: p is rounded, 4 q (1 - q) of a tenth is not quite 0.36


def next_priority(priority: np.ndarray, waited: np.ndarray, momentum: float) -> np.ndarray:
    """P <- alpha P + (1 - alpha) beta, (K,), with beta the steps waited; VCRL, equation 11.

    >>> next_priority(np.array([0.75]), np.array([3]), 0.9).round(6).tolist()
    [0.975]
    """
    return np.asarray(momentum * priority + (1.0 - momentum) * waited)


class VCRL(Uniform, name="vcrl", paper="Jiang et al., arXiv 2509.19803", needs="its gate, `VarianceThreshold`"):
    """Uniform prompts; for each whose variance falls below a threshold, one from a memory of those above it.

    Jiang et al. 2025, *VCRL: Variance-based Curriculum Reinforcement Learning for LLMs* (arXiv 2509.19803). This class
    chooses prompts; the gate `DynamicSampling(VarianceThreshold())` keeps groups below the threshold out of training
    and refills the batch within the step: `{curriculum: vcrl, gate: variance}` in a plan. Without the gate all groups
    train, and replays come in the next step: half of the paper. What was decided where it is silent is in
    docs/decisions.md.

    Args:
        pool: any prompts.
        threshold: kappa, the threshold, after the first steps (0.8).
        first_threshold: the threshold during the first steps (0.3).
        first_steps: number of first steps (20).
        momentum: alpha of the memory's priorities (0.9).
        most_replays: how often a prompt comes back before it leaves the memory (2).

    >>> pool = PromptPool(ids=["a", "b"])
    >>> vcrl = VCRL(pool, seed=0)
    >>> [t.lane for t in vcrl.ask(2)]
    ['uniform', 'uniform']
    """

    learns_from = "rewards"
    rotates = False
    columns_spec = {
        **Uniform.columns_spec,
        "priority": (np.float64, np.nan),  # of those in the memory; NaN outside it
        "last_told": (np.int64, 0),
        "replays": (np.int64, 0),
        "replayed": (np.int8, 0),  # whether its last ticket was a replay
    }
    extra_lanes = frozenset({"replay"})
    paper_gate = ("variance", {})

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        threshold: Share = 0.8,
        first_threshold: Share = 0.3,
        first_steps: CountOrZero = 20,
        momentum: Share = 0.9,
        most_replays: Count = 2,
        **core: Unpack[CoreOptions],
    ) -> None:
        self.threshold, self.first_threshold, self.first_steps = threshold, first_threshold, first_steps
        self.momentum, self.most_replays = momentum, most_replays
        super().__init__(pool, **core)

    def build(self) -> None:
        super().build()
        self.memory = MaxTree(len(self.pool))  # of prompts in the memory that are free, by priority
        self.owed = 0  # replays due for groups below the threshold

    def kappa(self, steps: np.ndarray) -> np.ndarray:
        """The threshold of each of the steps, (M,)."""
        return np.where(steps <= self.first_steps, self.first_threshold, self.threshold)

    def select(self, k: int) -> Picks:
        due = min(self.owed, k)
        self.owed -= due
        replays = self.memory.pop(due) if due else np.empty(0, dtype=np.int64)
        self.hold(replays)
        return Picks.interleave([Picks.of(replays, "replay"), super().select(k - len(replays))], self.rng)

    def mark(self, picks: Picks) -> None:
        super().mark(picks)
        replay = self.picked_by(self.extra_lanes, picks)
        self.columns["replayed"][picks.slots] = replay
        again = picks.slots[replay]
        self.columns["replays"][again] += 1
        self.columns["priority"][again[self.columns["replays"][again] >= self.most_replays]] = np.nan

    def chosen_elsewhere(self, slots: np.ndarray) -> None:
        self.columns["replayed"][slots] = 0

    def observe(self, evidence: Evidence) -> None:
        judged = evidence.where(evidence.judged)
        slots, p = judged.slots, judged.normalised_variance
        self.columns["last_told"][slots] = self.step
        fresh = self.columns["replayed"][slots] == 0
        kept = p >= self.kappa(judged.step) - _SLACK
        self.owed += int(np.count_nonzero(fresh & ~kept))
        into = slots[fresh & kept]
        self.columns["priority"][into], self.columns["replays"][into] = p[fresh & kept], 0

    def end_step(self) -> None:
        memory = np.flatnonzero(~np.isnan(self.columns["priority"]))
        waited = self.step - self.columns["last_told"][memory]
        self.columns["priority"][memory] = next_priority(self.columns["priority"][memory], waited, self.momentum)
        self._remember(memory[self.memory.get(memory) > 0])  # those in flight are ranked when they are back

    def _remember(self, slots: np.ndarray) -> None:
        self.memory.set(slots, pack(rank_of_scores(self.columns["priority"][slots]), self.ties(slots)))

    def hold(self, slots: np.ndarray) -> None:
        super().hold(slots)
        self.memory.set(slots[self.memory.get(slots) > 0], 0)

    def release(self, slots: np.ndarray) -> None:
        super().release(slots)
        if len(there := slots[~np.isnan(self.columns["priority"][slots])]):
            self._remember(there)

    def own_metrics(self) -> dict[str, float]:
        memory = float(np.count_nonzero(~np.isnan(self.columns["priority"])))
        threshold = float(self.kappa(np.array(self.step)))
        return {**super().own_metrics(), "memory": memory, "threshold": threshold, "owed": float(self.owed)}

    def own_state(self) -> dict[str, Any]:
        return {"owed": self.owed}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        super().load_own_state(state, added)
        self.owed = int(state["owed"])
