"""Frontier-Curriculum: replays prompts that resemble those on which the policy now succeeds and fails."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Unpack

import numpy as np

from rollwise.curricula.families.embedding_bank import Bank, sample_bank
from rollwise.curricula.families.rotation import Uniform
from rollwise.curricula.seam.base import CoreOptions
from rollwise.curricula.seam.picks import Picks
from rollwise.draws import ties
from rollwise.errors import ConfigError, PoolError
from rollwise.options import Count, Schedule, Share, check_number
from rollwise.pool import PromptPool
from rollwise.tickets.evidence import Evidence

logger = logging.getLogger(__name__)

Memory = Literal["frontier", "failure", "goldilocks"]
Embedder = Callable[[list[Any]], Any]


def frontier_priority(p: np.ndarray) -> np.ndarray:
    """The priority f = 4 p (1 - p), (K,), at most 1; Frontier-Curriculum RLOO, section 3.1.

    >>> frontier_priority(np.array([0.5, 0.25, 1.0])).tolist()
    [1.0, 0.75, 0.0]
    """
    return np.asarray(4.0 * p * (1.0 - p))


def memory_priority(p: np.ndarray, memory: Memory, goldilocks: tuple[float, float]) -> np.ndarray:
    """Priorities u of groups with success rates p (K,), 0 for those not remembered; section 3.1, appendix A.2.

    "frontier": 0 < p < 1; "goldilocks": p in the closed range; both with f(p). "failure": p = 0, with 1, for f is 0.

    >>> memory_priority(np.array([0.0, 0.125, 0.5]), "goldilocks", (0.25, 0.75)).tolist()
    [0.0, 0.0, 1.0]
    """
    if memory == "failure":
        return np.asarray(p == 0, dtype=np.float64)
    low, high = goldilocks if memory == "goldilocks" else (0.0, 1.0)
    return np.where((p >= low) & (p <= high), frontier_priority(p), 0.0)


def taxonomy_weight(labels: Sequence[str], weights: Mapping[str, float]) -> float:
    """The mean weight of a group's failed rollouts by their categories, 1 where none is given; appendix A.2.

    >>> taxonomy_weight(["format", "wrong-target", ""], {"wrong-target": 4.0})
    2.0
    """
    return sum(weights.get(label, 1.0) for label in labels) / len(labels) if labels else 1.0


class FrontierReplay(
    Uniform,
    name="frontier",
    paper="Frontier-Curriculum RLOO, section 3.1, appendices A.2, B.1-B.4",
    needs="an `embedding` column (Countdown brings its own) or an embedder; RLOO",
):
    """Uniform batches, with a share replaced by prompts similar to the frontier: q = (1 - rho) D + rho R(M).

    A prompt is on the frontier when its group has both solved and unsolved rollouts. A memory keeps the most recent
    ones with their priority 4p(1-p); the prompts retrieved are *like* them, never the same. *Frontier-Curriculum RLOO*
    trains with RLOO: `{curriculum: frontier, trainer: rloo}` in a plan. What it leaves open: docs/curricula.md.

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
        key_column: prompts with equal values here are one instance (appendix B.3); by default the prompt's id.

    >>> pool = PromptPool(ids=["a", "b"], columns={"embedding": [[1.0, 0.0], [0.0, 1.0]]})
    >>> [t.lane for t in FrontierReplay(pool, seed=0).ask(2)]
    ['uniform', 'uniform']
    """

    learns_from = "rewards"
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
        key_column: str | None = None,
        **core: Unpack[CoreOptions],
    ) -> None:
        if not isinstance(embedding, str) and not callable(embedding):
            raise ConfigError(f"embedding must name a column, or be a function of the prompts, got {embedding!r}")
        if least_memory > memory_size:
            raise ConfigError(
                f"least_memory must be at most memory_size={memory_size}, or nothing is ever retrieved, got "
                f"{least_memory!r}"
            )
        self.criterion: Memory = memory
        self.goldilocks_range = _checked_range(goldilocks_range)
        self.taxonomy_weights = _checked_weights(taxonomy_weights)
        self.embedding, self.key_column, self.bank_size = embedding, key_column, bank_size
        self.replay_ratio, self.memory_size, self.least_memory = replay_ratio, memory_size, least_memory
        self.candidates = candidates
        self._embedded: tuple[PromptPool, np.ndarray] | None = None
        self._said_unlabelled = False
        super().__init__(pool, **core)
        self.options["goldilocks_range"] = self.goldilocks_range
        self.options |= {"taxonomy_weights": self.taxonomy_weights, "embedding": _name(embedding)}

    def build(self) -> None:
        super().build()
        self.bank = self._make_bank()
        self.remembered: np.ndarray = np.empty(0, dtype=np.int64)
        self.free = np.zeros(len(self.pool), dtype=bool)
        self.owed = 0.0

    def _make_bank(self) -> Bank:
        tie = ties(self.rng.seed, self.id_hashes, np.zeros(len(self.pool), dtype=np.int64))
        slots, row = sample_bank(tie, self.bank_size, self._keys())
        return Bank(slots, row, self._embedding())

    def _embedding(self) -> np.ndarray:
        """(N, d) finite numbers, from the pool's column or made by the embedder: once, for a pool never changes."""
        if isinstance(self.embedding, str):
            made = self.pool.require(self.embedding, "FrontierReplay", "add a vector for each prompt, or an embedder")
        elif self._embedded is not None and self._embedded[0] is self.pool:
            return self._embedded[1]
        else:
            made = np.asarray(self.embedding(list(self.pool.prompts)))
        shape_fits = made.ndim == 2 and len(made) == len(self.pool)
        if not shape_fits or made.dtype.kind not in "biuf" or not np.isfinite(made).all():
            raise PoolError(
                f"embedding {_name(self.embedding)!r} must give finite numbers, equally many, for each of "
                f"{len(self.pool)} prompts, got an array of shape {made.shape} and type {made.dtype}"
            )
        if not isinstance(self.embedding, str):
            self._embedded = (self.pool, made)
        return made

    def _keys(self) -> np.ndarray | None:
        """(N,) whole numbers from 0 up, equal for prompts of one key; None where each prompt is its own."""
        if self.key_column is None:
            return None
        number: dict[str, int] = {}
        values = self.pool.require(self.key_column, "FrontierReplay", "or leave out key_column")
        return np.array([number.setdefault(str(value), len(number)) for value in values], dtype=np.int64)

    # ---- ask: appendix B.3 ----

    def select(self, k: int) -> Picks:
        quota = 0
        if len(self.remembered) >= self.least_memory:
            self.owed += self.present(self.replay_ratio) * k
            quota = min(k, int(self.owed + 1e-9))
            self.owed -= quota
        uniform = super().select(k - quota)
        self.hold(uniform.slots)
        replay = self._retrieve(quota)
        self.hold(replay.slots)
        missing = k - len(uniform) - len(replay)
        return Picks.join([uniform, replay, super().select(missing)] if missing else [uniform, replay])

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

    def observe(self, evidence: Evidence) -> None:
        priority = memory_priority(evidence.solved, self.criterion, self.goldilocks_range) * self._weights(evidence)
        kept = np.flatnonzero(priority > 0)
        slots, priority, step = evidence.slots[kept], priority[kept], evidence.step[kept]
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
        weights = np.ones(len(evidence))
        if self.taxonomy_weights is None:
            return weights
        solved_at = self.reward_spec.scores(np.array(self.reward_spec.threshold))
        for row, (labels, scores) in enumerate(zip(evidence.labels, evidence.scores, strict=True)):
            if labels is not None:
                failed = [label for label, score in zip(labels, scores, strict=True) if score < solved_at]
                weights[row] = taxonomy_weight(failed, self.taxonomy_weights)
            elif not self._said_unlabelled:
                self._said_unlabelled = True
                logger.warning(
                    "taxonomy_weights count as 1 where an outcome has no labels: tell Outcome(..., labels=[...]), the "
                    "category of each rollout's failure"
                )
        return weights

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
        return {**super().own_metrics(), "memory": float(len(known)), **mean}

    def own_state(self) -> dict[str, Any]:
        return {"owed": self.owed}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        super().load_own_state(state, added)
        self.owed = float(state["owed"])
        self.remembered = np.flatnonzero(~np.isnan(self.columns["priority"]))
        if self.rng.seed != self.seed:  # the saved seed goes on, and it is its sample that is the bank
            self.bank = self._make_bank()


def _name(embedding: str | Embedder) -> str:
    return embedding if isinstance(embedding, str) else getattr(embedding, "__qualname__", type(embedding).__name__)


def _checked_range(value: Any) -> tuple[float, float]:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ConfigError(f"goldilocks_range must be two success rates (low, high), got {value!r}")
    low, high = (check_number("a rate of goldilocks_range", rate, low=0.0, high=1.0) for rate in value)
    if not 0 < low <= high < 1:
        raise ConfigError(f"goldilocks_range must have 0 < low <= high < 1, got {value!r}")
    return low, high


def _checked_weights(value: Any) -> dict[str, float] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping) or not value or not all(isinstance(category, str) for category in value):
        raise ConfigError(f"taxonomy_weights must map categories of failure to weights, or be None, got {value!r}")
    return {
        category: check_number(f"taxonomy_weights[{category!r}]", weight, low=0.0, high=1e6)
        for category, weight in value.items()
    }
