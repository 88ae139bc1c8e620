"""SEC: self-evolving curriculum. A bandit over categories, paid in mean absolute advantage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Unpack

import numpy as np

from rollwise.checks import check_number
from rollwise.curricula.base import CoreOptions, Curriculum
from rollwise.curricula.picks import Picks
from rollwise.draws import SumTree
from rollwise.errors import ConfigError
from rollwise.evidence import Evidence
from rollwise.pool import PromptPool


def boltzmann(values: np.ndarray, temperature: float) -> np.ndarray:
    """p(c) = exp(Q(c) / tau) / sum of the same, (C,); SEC, section 2.3.

    >>> boltzmann(np.array([0.0, np.log(3.0)]), 1.0).round(12).tolist()
    [0.25, 0.75]
    """
    weights = np.exp((values - values.max()) / temperature)
    return np.asarray(weights / weights.sum())


def absolute_advantage(scores: np.ndarray, *, normalised: bool) -> float:
    """Mean |A| of one group (k,), with A = r - mean(r), over std(r) if `normalised`; SEC, equations 3 and 4.

    >>> scores = np.array([1.0, 0.0, 0.0, 0.0])                 # sqrt(p (1-p)) = sqrt(3) / 4; |A| = 2 p (1-p) = 0.375
    >>> absolute_advantage(scores, normalised=False), round(absolute_advantage(scores, normalised=True), 3)
    (0.375, 0.866)
    """
    centred = np.abs(scores - scores.mean())
    std = scores.std()
    return float(centred.mean() / std) if normalised and std > 0 else float(centred.mean())


class SEC(Curriculum):
    """Chooses a category by a Boltzmann bandit, then a prompt uniformly within it (Algorithm 1).

    Each category is an arm whose value follows the mean absolute advantage of its rollouts:
    Q(c) <- alpha r(c) + (1 - alpha) Q(c), with Q(c) = 0 at first.

    Args:
        pool: needs `columns`.
        columns: the column whose values are the arms; several make one arm for each combination (SEC-2D, section 3.3).
        learning_rate: alpha (table S1: 0.5 in all but one experiment).
        temperature: tau (table S1: 0.2 to 1.0; greater explores more).
        advantage: "told" pays with the advantages that the trainer used, where it tells them, and computes centred ones
            otherwise; "centred" and "std" compute r - mean(r), and that over std(r), from the rewards.

    Where the paper is silent or slips:

    - A category without a prompt in the batch keeps its value: Algorithm 1 would divide by zero.
    - r(c) is the mean over the category's groups of their mean |A| (Algorithm 1, line 13).
    - A category all of whose prompts are in flight, or that the batch has used up, is left out and the others are
      renormalised; a prompt is never drawn twice.
    - One step is one update, however many tells it took.
    - Categories that join later start at Q = 0, as all did.

    >>> pool = PromptPool(ids=["a", "b"], columns={"category": ["easy", "hard"]})
    >>> sec = SEC(pool, seed=0)
    >>> from rollwise.outcome import Outcome
    >>> rewards = {"a": [1, 0, 1, 0], "b": [0, 0, 0, 0]}
    >>> _ = sec.tell([Outcome(t.id, rewards[t.prompt_id]) for t in sec.ask(2)])
    >>> sec.values()
    {'easy': 0.25, 'hard': 0.0}
    """

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        columns: str | tuple[str, ...] = "category",
        learning_rate: float = 0.5,
        temperature: float = 1.0,
        advantage: Literal["told", "centred", "std"] = "told",
        **core: Unpack[CoreOptions],
    ) -> None:
        self.arm_columns = (columns,) if isinstance(columns, str) else tuple(columns)
        if not self.arm_columns or not all(isinstance(name, str) for name in self.arm_columns):
            raise ConfigError(f"columns must be the name of a column or several, got {columns!r}")
        self.learning_rate = check_number("learning_rate", learning_rate, low=0.0, high=1.0, open_low=True)
        self.temperature = check_number("temperature", temperature, low=0.0, high=1e12, open_low=True)
        if advantage not in ("told", "centred", "std"):
            raise ConfigError(f"advantage must be 'told', 'centred' or 'std', got {advantage!r}")
        self.advantage = advantage
        own = {"columns": list(self.arm_columns), "learning_rate": learning_rate, "temperature": temperature}
        super().__init__(pool, options={**own, "advantage": advantage}, **core)

    def build(self) -> None:
        remedy = "add it, or name another with columns=..."
        parts = [self.pool.require(name, "SEC", remedy) for name in self.arm_columns]
        names = [_arm_name(values) for values in zip(*parts, strict=True)]
        self.arms = sorted(set(names))
        number = {name: i for i, name in enumerate(self.arms)}
        self.arm_of: np.ndarray = np.array([number[name] for name in names], dtype=np.int64)
        self.members = [np.flatnonzero(self.arm_of == arm) for arm in range(len(self.arms))]
        self.place: np.ndarray = np.empty(len(names), dtype=np.int64)  # of a slot among its arm's members
        for slots in self.members:
            self.place[slots] = np.arange(len(slots))
        self.free = [SumTree(len(slots)) for slots in self.members]
        self.q: np.ndarray = np.zeros(len(self.arms))
        self.pay: np.ndarray = np.zeros(len(self.arms))
        self.paid: np.ndarray = np.zeros(len(self.arms), dtype=np.int64)

    # ---- ask: Algorithm 1, lines 3 to 8 ----

    def select(self, k: int) -> Picks:
        parts: list[Picks] = []
        while k > 0:
            left = np.array([tree.total for tree in self.free])
            share = np.where(left > 0, boltzmann(self.q, self.temperature), 0.0)
            if not share.any():  # values so far apart that only categories without a prompt have weight
                share = (left > 0).astype(np.float64)
            share /= share.sum()
            wanted = self.rng["category"].multinomial(k, share)
            for arm in np.flatnonzero(wanted):
                places, chance = self.free[arm].draw(self.rng["prompt"], int(wanted[arm]))
                slots = self.members[arm][places]
                parts.append(Picks.of(slots, f"category:{self.arms[arm]}", propensity=share[arm] * chance))
                k -= len(slots)
        return Picks.join(parts)

    # ---- tell: lines 9 to 15 ----

    def observe(self, evidence: Evidence) -> None:
        judged = evidence.where(evidence.judged)
        pay = judged.abs_advantage
        if self.advantage != "told":
            normalised = self.advantage == "std"
            pay = np.array([absolute_advantage(s, normalised=normalised) for s in judged.scores])
        arms = self.arm_of[judged.slots]
        np.add.at(self.pay, arms, pay)
        np.add.at(self.paid, arms, 1)

    def end_step(self) -> None:
        self.q = self._updated()
        self.pay[:] = 0.0
        self.paid[:] = 0

    def _updated(self) -> np.ndarray:
        """Equation 1, TD(0), with this step's pay."""
        reward = self.pay / np.maximum(self.paid, 1)
        moved = self.learning_rate * reward + (1.0 - self.learning_rate) * self.q
        return np.asarray(np.where(self.paid > 0, moved, self.q))

    def values(self) -> dict[str, float]:
        """Q by category, with all that was told so far."""
        return dict(zip(self.arms, self._updated().tolist(), strict=True))

    def hold(self, slots: np.ndarray) -> None:
        self._set(slots, 0.0)

    def release(self, slots: np.ndarray) -> None:
        self._set(slots, 1.0)

    def _set(self, slots: np.ndarray, weight: float) -> None:
        arms = self.arm_of[slots]
        for arm in np.unique(arms):
            self.free[arm].set(self.place[slots[arms == arm]], weight)

    # ---- looking inside, saving ----

    def own_metrics(self) -> dict[str, float]:
        share = boltzmann(self.q, self.temperature)
        return {
            **{f"value/{arm}": float(q) for arm, q in zip(self.arms, self.q, strict=True)},
            **{f"share/{arm}": float(p) for arm, p in zip(self.arms, share, strict=True)},
        }

    def own_state(self) -> dict[str, Any]:
        by_arm = {
            arm: [float(q), float(pay), int(paid)]
            for arm, q, pay, paid in zip(self.arms, self.q, self.pay, self.paid, strict=True)
        }
        return {"arms": by_arm}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        for number, arm in enumerate(self.arms):
            q, pay, paid = state["arms"].get(arm, (0.0, 0.0, 0))
            self.q[number], self.pay[number], self.paid[number] = float(q), float(pay), int(paid)


def _arm_name(values: tuple[Any, ...]) -> str:
    parts = [part for value in values for part in (value if isinstance(value, tuple | list) else (value,))]
    return " | ".join(str(part) for part in parts)
