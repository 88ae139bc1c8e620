"""Frontier-Curriculum: replays prompts that resemble those on which the policy now succeeds and fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from rollwise.checks import check_number, check_whole
from rollwise.curricula.base import CoreOptions
from rollwise.curricula.picks import Picks
from rollwise.curricula.rotation import Uniform
from rollwise.evidence import Evidence
from rollwise.pool import PromptPool

_OPTIONS = ("replay_ratio", "memory_size", "least_memory", "candidates", "bank_size", "key_column")


def frontier_priority(p: np.ndarray) -> np.ndarray:
    """The priority f = 4 p (1 - p), (K,), at most 1; Frontier-Curriculum RLOO, section 3.1.

    >>> frontier_priority(np.array([0.5, 0.25, 1.0])).tolist()
    [1.0, 0.75, 0.0]
    """
    return np.asarray(4.0 * p * (1.0 - p))


def best_match(bank: np.ndarray, memory: np.ndarray, priority: np.ndarray) -> np.ndarray:
    """c_m = max_j <e_m, e_j> u_j, (B,), of bank (B, d) against memory (L, d) with priorities (L,); appendix B.3.

    >>> best_match(np.eye(2), np.array([[0.6, 0.8], [1.0, 0.0]]), np.array([1.0, 0.5])).tolist()
    [0.6, 0.8]
    """
    return np.asarray((bank @ memory.T * priority).max(axis=1))


class FrontierReplay(Uniform):
    """Uniform batches, a share of which is replaced by prompts similar to the frontier: q = (1 - rho) D + rho R(M).

    A prompt is on the frontier when its group has both solved and unsolved rollouts. A bounded memory keeps the most
    recent ones with their priority 4p(1-p); the prompts retrieved are *like* them, never the same.

    Args:
        pool: needs `embedding`; its rows are scaled to length 1. The task Countdown brings appendix B.2's.
        replay_ratio: rho, the share of a batch that is retrieved (section 3.1: 0.10).
        memory_size: frontier prompts remembered, the most recent (the paper gives no number; ours).
        least_memory: how many must be remembered before any are retrieved (likewise).
        candidates: retrieved prompts are drawn uniformly from this many best matches (likewise).
        bank_size: at most this many prompts, a fixed random sample of the pool, can be retrieved; bounds the work.
        key_column: prompts with equal values here are one instance (the canonical key of appendix B.3); by default
            the prompt's id, which for Countdown is that key.

    p counts solved rollouts only, whatever partial rewards there are, and uniform prompts fill in where there are too
    few candidates (appendices B.1 and B.3). Where the paper is silent: what rho leaves in fractions is carried over, so
    a batch of 64 retrieves 6 or 7; a frontier prompt told again takes its newer priority, of one step the greater.

    >>> pool = PromptPool(ids=["a", "b"], columns={"embedding": [[1.0, 0.0], [0.0, 1.0]]})
    >>> [t.lane for t in FrontierReplay(pool, seed=0).ask(2)]
    ['uniform', 'uniform']
    """

    columns_spec = {
        **Uniform.columns_spec,
        "priority": (np.float64, np.nan),  # of those in the memory; NaN outside it
        "frontier_step": (np.int64, -1),
    }

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        replay_ratio: float = 0.10,
        memory_size: int = 512,
        least_memory: int = 32,
        candidates: int = 64,
        bank_size: int = 50_000,
        key_column: str | None = None,
        **core: Unpack[CoreOptions],
    ) -> None:
        self.replay_ratio = check_number("replay_ratio", replay_ratio, low=0.0, high=1.0)
        self.memory_size = check_whole("memory_size", memory_size, least=1)
        self.least_memory = check_whole("least_memory", least_memory, least=1)
        self.candidates = check_whole("candidates", candidates, least=1)
        self.bank_size = check_whole("bank_size", bank_size, least=1)
        self.key_column = key_column
        super().__init__(pool, **core)
        self.options.update({name: getattr(self, name) for name in _OPTIONS})

    def build(self) -> None:
        super().build()
        embedding = self.pool.require("embedding", "FrontierReplay", "add a vector for each prompt")
        length = np.linalg.norm(embedding, axis=1, keepdims=True)
        self.unit: np.ndarray = embedding / np.where(length > 0, length, 1.0)
        keys: Any = self.pool.ids
        if self.key_column is not None:
            keys = [str(k) for k in self.pool.require(self.key_column, "FrontierReplay", "or leave out key_column")]
        number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
        self.key: np.ndarray = np.array([number[key] for key in keys], dtype=np.int64)
        order = np.argsort(self.ties(np.arange(len(self.pool))), kind="stable")
        self.bank: np.ndarray = np.sort(order[: self.bank_size])
        self.free = np.zeros(len(self.pool), dtype=bool)
        self.owed = 0.0

    # ---- ask: appendix B.3 ----

    def select(self, k: int) -> Picks:
        memory = np.flatnonzero(~np.isnan(self.columns["priority"]))
        quota = 0
        if len(memory) >= self.least_memory:
            self.owed += self.replay_ratio * k
            quota = min(k, int(self.owed + 1e-9))
            self.owed -= quota
        uniform = super().select(k - quota)
        self.hold(uniform.slots)
        replay = self._retrieve(quota, memory, uniform.slots)
        self.hold(replay.slots)
        missing = super().select(k - len(uniform) - len(replay))
        return Picks.join([uniform, replay, missing])

    def _retrieve(self, k: int, memory: np.ndarray, batch: np.ndarray) -> Picks:
        """Up to `k` prompts of the bank, by resemblance to the memory, of keys neither there nor in the batch."""
        if not k:
            return Picks.join([])
        bank = self.bank[self.free[self.bank] & ~np.isin(self.key[self.bank], self.key[np.r_[memory, batch]])]
        _, first = np.unique(self.key[bank], return_index=True)
        bank = bank[np.sort(first)]
        if not len(bank):
            return Picks.join([])
        score = best_match(self.unit[bank], self.unit[memory], self.columns["priority"][memory])
        best = bank[np.lexsort((self.ties(bank), -score))[: max(k, self.candidates)]]
        chosen = self.rng["replay"].choice(best, size=min(k, len(best)), replace=False)
        return Picks.of(chosen, "replay")

    # ---- tell: section 3.1 ----

    def observe(self, evidence: Evidence) -> None:
        frontier = evidence.where(evidence.judged & (evidence.solved > 0) & (evidence.solved < 1))
        slots, priority, step = frontier.slots, frontier_priority(frontier.solved), frontier.step
        known, since = self.columns["priority"], self.columns["frontier_step"]
        newer = (step > since[slots]) | ((step == since[slots]) & (priority > np.nan_to_num(known[slots])))
        known[slots[newer]], since[slots[newer]] = priority[newer], step[newer]
        memory = np.flatnonzero(~np.isnan(known))
        if len(memory) > self.memory_size:
            oldest = np.lexsort((self.ties(memory), since[memory]))[: len(memory) - self.memory_size]
            known[memory[oldest]] = np.nan

    def hold(self, slots: np.ndarray) -> None:
        super().hold(slots)
        self.free[slots] = False

    def release(self, slots: np.ndarray) -> None:
        super().release(slots)
        self.free[slots] = True

    # ---- looking inside, saving ----

    def memory(self) -> dict[str, float]:
        """The frontier prompts remembered, with their priorities, by id."""
        slots = np.flatnonzero(~np.isnan(self.columns["priority"]))
        return {self.pool.ids[s]: float(self.columns["priority"][s]) for s in slots}

    def own_metrics(self) -> dict[str, float]:
        known = self.columns["priority"][~np.isnan(self.columns["priority"])]
        mean = {"memory_priority": float(known.mean())} if len(known) else {}
        return {**super().own_metrics(), "memory": float(len(known)), **mean}

    def own_state(self) -> dict[str, Any]:
        return {"owed": self.owed}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        super().load_own_state(state, added)
        self.owed = float(state["owed"])
