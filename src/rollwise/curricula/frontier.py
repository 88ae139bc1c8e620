"""Frontier-Curriculum: replays prompts that resemble those on which the policy now succeeds and fails."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Unpack

import numpy as np

from rollwise.curricula.families.embedding_bank import Bank, check_vectors, name_of, numbered, sample_bank
from rollwise.curricula.families.frontier_memory import (
    Memory,
    believed_priority,
    checked_range,
    checked_weights,
    memory_priority,
    taxonomy_weights_of,
)
from rollwise.curricula.families.judged.holder import TOLD_COLUMNS, JudgeHolder, described, rate_judge
from rollwise.curricula.families.replay_ratio import AdaptiveRatio
from rollwise.curricula.families.rotation import Uniform
from rollwise.curricula.seam.base import CoreOptions
from rollwise.curricula.seam.picks import Picks
from rollwise.draws import ties
from rollwise.errors import ConfigError
from rollwise.judges import Judge, Prompts
from rollwise.options import Count, Schedule, Share
from rollwise.pool import PromptPool
from rollwise.tickets.evidence import Evidence

logger = logging.getLogger(__name__)

Embedder = Callable[[list[Any]], Any]
_TOLD = {"told_weight": (np.float64, 1.0), "told_step": (np.int64, -1)}


class FrontierReplay(
    JudgeHolder,
    Uniform,
    name="frontier",
    paper="Frontier-Curriculum RLOO, section 3.1, appendices A.2, B.1-B.4",
    needs="an `embedding` column (Countdown brings its own) or an embedder; RLOO",
):
    """Uniform batches, with a share replaced by prompts similar to the frontier: q = (1 - rho) D + rho R(M).

    A prompt is on the frontier when its group has both solved and unsolved rollouts. A memory keeps the most recent
    ones with their priority 4p(1-p); the prompts retrieved are *like* them, never the same. *Frontier-Curriculum RLOO*
    trains with RLOO: `{curriculum: frontier, trainer: rloo}` in a plan. What it leaves open: docs/decisions.md.

    Args:
        pool: needs the column `embedding`, unless that is a callable; each vector is scaled to length 1.
        memory: "frontier"; "failure": prompts with no rollout solved (appendix A.2); "goldilocks": by their rate.
        goldilocks_range: the least and the greatest success rate for "goldilocks", both included, in (0, 1).
        taxonomy_weights: category of failure -> weight (1 if not named): a prompt's priority is multiplied by the mean
            weight of its failed rollouts, given as `Outcome.labels`.
        embedding: the column with the vectors, or a function from the list of all N prompts to an array (N, d).
        replay_ratio: rho, the share of a batch that is retrieved (section 3.1: 0.10).
        memory_size: prompts remembered, the most recent (the paper gives no number; ours).
        least_memory: how many must be remembered before any are retrieved (likewise).
        candidates: retrieved prompts are drawn uniformly from this many best matches (likewise).
        bank_size: number of prompts that can be retrieved, a fixed random sample of the pool; bounds the work.
        belief: who says what is on the frontier, in place of the groups' rollouts: a `Judge` of pass rates, or the name
            of one ("success-head", "text", "frozen", "value-model"). A prompt is on it when a group of `ask`'s
            `n_rollouts` is mixed with a believed chance of one half or more. Ours, for section 6's learned predictors.
        belief_options: options of a judge that is given by name.
        adaptive_ratio: an adaptive rho, at most this: `replay_ratio` times how much oftener replayed groups are mixed
            than uniform ones. None, as in the paper: a constant one. The rule is ours (`AdaptiveRatio`).
        key_column: prompts with equal values here are one instance (appendix B.3); by default the prompt's id.

    >>> pool = PromptPool(ids=["a", "b"], columns={"embedding": [[1.0, 0.0], [0.0, 1.0]]})
    >>> [t.lane for t in FrontierReplay(pool, seed=0).ask(2)]
    ['uniform', 'uniform']
    """

    learns_from = "rewards"
    saved_if_set = frozenset({"belief", "adaptive_ratio"})
    unsaved = frozenset({"belief_options"})  # they stand in the belief's own
    rotates = False
    columns_spec = {
        **Uniform.columns_spec,
        "priority": (np.float64, np.nan),  # of those in the memory; NaN outside it
        "frontier_step": (np.int64, -1),
    }
    extra_lanes = frozenset({"replay"})  # q_t's D is uniform, whatever is retrieved besides
    paper_trainer = "rloo"

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        memory: Memory = "frontier",
        goldilocks_range: tuple[float, float] = (0.25, 0.75),
        taxonomy_weights: Mapping[str, float] | None = None,
        embedding: str | Embedder = "embedding",
        replay_ratio: Share | Schedule = 0.10,
        memory_size: Count = 512,
        least_memory: Count = 32,
        candidates: Count = 64,
        bank_size: Count = 50_000,
        belief: str | Judge | None = None,
        belief_options: Mapping[str, Any] | None = None,
        adaptive_ratio: Share | None = None,
        key_column: str | None = None,
        **core: Unpack[CoreOptions],
    ) -> None:
        if not isinstance(embedding, str) and not callable(embedding):
            raise ConfigError(f"embedding must name a column, or be a function of the prompts, got {embedding!r}")
        if least_memory > memory_size:
            known = f"memory_size={memory_size}, or nothing is ever retrieved"
            raise ConfigError(f"least_memory must be at most {known}, got {least_memory!r}")
        self.criterion: Memory = memory
        self.goldilocks_range = checked_range(goldilocks_range)
        self.taxonomy_weights = checked_weights(taxonomy_weights)
        self.embedding, self.key_column, self.bank_size = embedding, key_column, bank_size
        self.replay_ratio, self.memory_size, self.least_memory = replay_ratio, memory_size, least_memory
        self.candidates, self.adaptive_ratio, self.rollouts = candidates, adaptive_ratio, 8
        self.maker = rate_judge(belief, belief_options, "belief")
        if self.maker is not None:
            self.columns_spec = {**self.columns_spec, **TOLD_COLUMNS, **_TOLD}
        if adaptive_ratio is not None:
            self.columns_spec = {**self.columns_spec, "replayed": (np.bool_, False)}
        self._embedded: tuple[PromptPool, np.ndarray] | None = None
        self._said_unlabelled = False
        super().__init__(pool, **core)
        self.options |= {"goldilocks_range": self.goldilocks_range, "taxonomy_weights": self.taxonomy_weights}
        self.options |= {"embedding": name_of(embedding), **({"belief": described(self.maker)} if self.maker else {})}

    def build(self) -> None:
        super().build()
        self.bank = self._make_bank()
        self.remembered: np.ndarray = np.empty(0, dtype=np.int64)
        self.free = np.zeros(len(self.pool), dtype=bool)
        self.owed, self.ratio = 0.0, AdaptiveRatio()
        self.bind_judge()

    def set_rollouts(self, n: int) -> None:
        self.rollouts = max(2, n)

    @property
    def rho(self) -> float:
        """The present share of a batch that is retrieved."""
        return self.ratio(self.present(self.replay_ratio), most=self.adaptive_ratio)

    def _make_bank(self) -> Bank:
        tie = ties(self.rng.seed, self.id_hashes, np.full(len(self.pool), -1))  # no visit's: no epoch is in this order
        return Bank(*sample_bank(tie, self.bank_size, self._keys()), self._embedding())

    def _embedding(self) -> np.ndarray:
        """(N, d) finite numbers, from the pool's column or made by the embedder: once, for a pool never changes."""
        if isinstance(self.embedding, str):
            made = self.pool.require(self.embedding, "FrontierReplay", "add a vector for each prompt, or an embedder")
        elif self._embedded is not None and self._embedded[0] is self.pool:
            return self._embedded[1]
        else:
            made = np.asarray(self.embedding(list(self.pool.prompts)))
        check_vectors(made, len(self.pool), name_of(self.embedding))
        if not isinstance(self.embedding, str):
            self._embedded = (self.pool, made)
        return made

    def _keys(self) -> np.ndarray | None:
        """(N,) whole numbers from 0 up, equal for prompts of one key; None where each prompt is its own."""
        if self.key_column is None:
            return None
        return numbered(self.pool.require(self.key_column, "FrontierReplay", "or leave out key_column"))

    # ---- ask: appendix B.3 ----

    def select(self, k: int) -> Picks:
        quota = 0
        if len(self.remembered) >= self.least_memory:
            self.owed += self.rho * k
            quota = min(k, int(self.owed + 1e-9))
            self.owed -= quota
        uniform = super().select(k - quota)
        self.hold(uniform.slots)
        replay = self._retrieve(quota)
        self.hold(replay.slots)
        rest = super().select(k - len(uniform) - len(replay))
        return Picks.interleave([uniform, replay, rest], self.rng)

    def _retrieve(self, k: int) -> Picks:
        """Up to `k` prompts of the bank, by resemblance to the memory, of keys neither there nor in flight."""
        if not k:
            return Picks.join([])
        priority = self.columns["priority"][self.remembered]
        best = self.bank.retrieve(max(k, self.candidates), self.remembered, priority, self.ties)
        if not len(best):
            return Picks.join([])
        return Picks.of(self.rng["replay"].choice(best, size=min(k, len(best)), replace=False), "replay")

    # ---- tell: section 3.1 ----

    def mark(self, picks: Picks) -> None:
        super().mark(picks)
        if "replayed" in self.columns_spec:
            self.columns["replayed"][picks.slots] = self.picked_by(self.extra_lanes, picks)

    def chosen_elsewhere(self, slots: np.ndarray) -> None:
        if "replayed" in self.columns_spec:
            self.columns["replayed"][slots] = False

    def observe(self, evidence: Evidence) -> None:
        if self.adaptive_ratio is not None:
            self.ratio.add(self.columns["replayed"][evidence.slots], evidence.mixed)
        weights = self._weights(evidence)
        if self.maker is None:
            priority = memory_priority(evidence.solved, self.criterion, self.goldilocks_range) * weights
            self._remember(evidence.slots, priority, evidence.step)
            return
        self.note_told(evidence.where(evidence.count > 0))
        self.columns["told_weight"][evidence.slots] = weights
        self.columns["told_step"][evidence.slots] = evidence.step

    def end_step(self) -> None:
        """Move the ratio; with a belief, ask it where this step's prompts stand, and let it learn."""
        self.ratio.settle()
        if self.maker is None:
            return
        slots, mean, variance, count = self.take_told(self.ties)
        if not len(slots):
            return
        told = Prompts(self.pool, slots)
        p = np.clip(self.predictions(told), 0.0, 1.0)
        weight, step = self.columns["told_weight"][slots], self.columns["told_step"][slots]
        self._remember(slots, believed_priority(p, self.criterion, self.goldilocks_range, self.rollouts) * weight, step)
        self.judge.learn(told, mean, variance, count)

    def _remember(self, slots: np.ndarray, priority: np.ndarray, step: np.ndarray) -> None:
        """Take those of a priority above 0 into the memory, and let its oldest go."""
        kept = np.flatnonzero(priority > 0)
        slots, priority, step = slots[kept], priority[kept], step[kept]
        known, since = self.columns["priority"], self.columns["frontier_step"]
        newer = (step > since[slots]) | ((step == since[slots]) & (priority > np.nan_to_num(known[slots])))
        known[slots[newer]], since[slots[newer]] = priority[newer], step[newer]
        memory = np.union1d(self.remembered, slots[newer])
        excess = len(memory) - self.memory_size
        if excess > 0:
            oldest = np.lexsort((self.ties(memory), since[memory]))[:excess]
            known[memory[oldest]] = np.nan
            memory = np.delete(memory, oldest)
        self.remembered = memory

    def _weights(self, evidence: Evidence) -> np.ndarray:
        """(M,) the groups' taxonomy weights; 1 without labels, which is logged once."""
        if self.taxonomy_weights is None:
            return np.ones(len(evidence))
        solved_at = self.reward_spec.scores(np.array(self.reward_spec.threshold))
        if not self._said_unlabelled and any(labels is None for labels in evidence.labels):
            self._said_unlabelled = True
            logger.warning(
                "taxonomy_weights count as 1 where an outcome has no labels: tell Outcome(..., labels=[...]), the "
                "category of each rollout's failure"
            )
        return taxonomy_weights_of(evidence, float(solved_at), self.taxonomy_weights)

    def hold(self, slots: np.ndarray) -> None:
        slots = slots[self.free[slots]]
        if len(slots):
            super().hold(slots)
            self.bank.hold(slots)
            self.free[slots] = False

    def release(self, slots: np.ndarray) -> None:
        if len(slots):
            super().release(slots)
            self.bank.release(slots[~self.free[slots]])
            self.free[slots] = True

    # ---- looking inside, saving ----

    def memory(self) -> dict[str, float]:
        """The prompts remembered, with their priorities, by id."""
        priority = self.columns["priority"][self.remembered].tolist()
        return {self.pool.ids[slot]: u for slot, u in zip(self.remembered.tolist(), priority, strict=True)}

    def own_metrics(self) -> dict[str, float]:
        known = self.columns["priority"][self.remembered]
        mean = {"memory_priority": float(known.mean())} if len(known) else {}
        mean |= {} if self.adaptive_ratio is None else {"replay_ratio": self.rho}
        judged = {} if self.maker is None else self.judge.metrics()
        return {**super().own_metrics(), "memory": float(len(known)), **mean, **judged}

    def own_state(self) -> dict[str, Any]:
        ratio = {} if self.adaptive_ratio is None else {"ratio": self.ratio.state_dict()}
        judged = {} if self.maker is None else {**self.judge_state(), "rollouts": self.rollouts}
        return {"owed": self.owed, **ratio, **judged}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        super().load_own_state(state, added)
        self.owed = float(state["owed"])
        if self.adaptive_ratio is not None and "ratio" in state:  # else loaded with strict=False: it begins anew
            self.ratio.load_state_dict(state["ratio"])
        if self.maker is not None and "judge" in state:
            self.rollouts = int(state["rollouts"])
            self.load_judge_state(state)
        self.remembered = np.flatnonzero(~np.isnan(self.columns["priority"]))
        if self.rng.seed != self.seed:  # the saved seed goes on, and it is its sample that is the bank
            self.bank = self._make_bank()
