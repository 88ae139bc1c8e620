"""DUMP: upper confidence bounds over sources of prompts, paid in mean absolute advantage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

import numpy as np

from rollwise.curricula.families.arms import ArmBandit, boltzmann, boltzmann_among, check_category, draw_arms
from rollwise.curricula.seam.base import CoreOptions
from rollwise.options import Count, Positive, Weight
from rollwise.pool import PromptPool
from rollwise.state import decode_array, decode_strings, encode_array, encode_strings
from rollwise.tickets.evidence import Evidence

Groups = np.ndarray
"""(M, 2): the number of rollouts and the mean |A| of each of a source's groups, the latest last."""


def learnability(groups: Groups, window: int) -> tuple[float, Groups]:
    """L(d), the mean |A| of a source's last `window` rollouts, and the groups that hold them.

    Of a group that the window cuts, as many rollouts count as lie in the window, each at the group's mean.

    >>> learnability(np.array([[4.0, 0.25], [4.0, 0.5], [4.0, 0.125]]), 6)[0]       # (2 * .5 + 4 * .125) / 6
    0.25
    """
    count, pay = groups[:, 0], groups[:, 1]
    after = np.cumsum(count[::-1])[::-1] - count  # rollouts later than each group
    inside = np.minimum(np.maximum(window - after, 0.0), count)
    return float(inside @ pay / inside.sum()), groups[inside > 0]


def upper_bounds(learnability: np.ndarray, rollouts: np.ndarray, exploration: float) -> np.ndarray:
    """UCB(d_j) = L(d_j) + exploration sqrt(2 ln(n_total + 1) / (n_j + 1)), (C,); DUMP, equation 3.

    >>> upper_bounds(np.array([0.5, 0.0]), np.array([7, 0]), 1.0).round(4).tolist()  # 2 ln 8 = 4.1589
    [1.221, 2.0393]
    """
    bonus = np.sqrt(2.0 * np.log(rollouts.sum() + 1.0) / (rollouts + 1.0))
    return np.asarray(learnability + exploration * bonus)


class DUMP(ArmBandit, name="dump", paper="Wang et al., arXiv 2504.09710", needs="a `category` column (or several)"):
    """Chooses a source with probability softmax(UCB / tau), then a prompt uniformly within it.

    Wang et al. 2025, *DUMP: Automated Distribution-level Curriculum Learning for RL-based LLM Post-training*
    (arXiv 2504.09710), and its released code. A source's learnability L is the mean absolute advantage of its most
    recent rollouts; the bound adds a bonus for sources that were rolled out less. What was decided where the paper is
    silent or wrong is in docs/decisions.md.

    Args:
        pool: needs `category`.
        category: the column whose values are the sources; several make one of each combination.
        window: k, most recent rollouts of a source that L averages over (section 3.3: 300).
        temperature: tau of the softmax (section 3.3: 0.1).
        exploration: weight of the bonus (equation 3: 1).
        advantage: "std": |r - mean(r)| / std(r), equation 1; "centred": not divided; "told": the trainer's advantages.

    >>> pool = PromptPool(ids=["a", "b"], columns={"category": ["logic", "maths"]})
    >>> dump = DUMP(pool, seed=0)
    >>> from rollwise.tickets.outcome import Outcome
    >>> rewards = {"a": [1, 0, 1, 0], "b": [0, 0, 0, 0]}
    >>> _ = dump.tell([Outcome(t.id, rewards[t.prompt_id]) for t in dump.ask(2)])
    >>> dump.values()
    {'logic': 1.0, 'maths': 0.0}
    """

    lane = "source"

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        category: str | Sequence[str] = "category",
        window: Count = 300,
        temperature: Positive = 0.1,
        exploration: Weight = 1.0,
        advantage: Literal["told", "centred", "std"] = "std",
        **core: Unpack[CoreOptions],
    ) -> None:
        self.arm_columns = check_category(category)
        self.window, self.temperature, self.exploration, self.advantage = window, temperature, exploration, advantage
        self.learns_from = "advantages" if advantage == "told" else "rewards"
        super().__init__(pool, options={"category": list(self.arm_columns)}, **core)

    def build(self) -> None:
        super().build()
        self.groups: dict[int, Groups] = {}  # of the sources seen
        self.learnability: np.ndarray = np.zeros(len(self.arms))
        self.rollouts: np.ndarray = np.zeros(len(self.arms), dtype=np.int64)
        self.pending: list[tuple[int, int, int, int, float]] = []  # step, hash of the id, source, rollouts, mean |A|

    # ---- ask ----

    def choose(self, k: int, left: np.ndarray, flying: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        share = boltzmann_among(self.bounds(), self.temperature, left)
        arms = draw_arms(self.rng["source"], share, k)
        return arms, share[arms]

    def bounds(self) -> np.ndarray:
        """UCB of every source, (C,)."""
        return upper_bounds(self.learnability, self.rollouts, self.exploration)

    # ---- tell ----

    def observe(self, evidence: Evidence) -> None:
        judged = evidence.where(evidence.judged)
        pay = self.pay(judged, self.advantage)
        arrays = (judged.step, self.id_hashes[judged.slots], self.arm_of[judged.slots], judged.count, pay)
        self.pending += zip(*(array.tolist() for array in arrays), strict=True)

    def end_step(self) -> None:
        self.groups, self.learnability = self._updated()
        for _, _, arm, count, _ in self.pending:
            self.rollouts[arm] += count
        self.pending = []

    def _updated(self) -> tuple[dict[int, Groups], np.ndarray]:
        """The groups and L, with this step's groups at the windows' ends."""
        new: dict[int, list[tuple[float, float]]] = {}
        for _, _, arm, count, pay in sorted(self.pending):
            new.setdefault(arm, []).append((count, pay))
        groups, means = dict(self.groups), self.learnability.copy()
        for arm, last in new.items():
            parts = [groups[arm]] if arm in groups else []
            means[arm], groups[arm] = learnability(np.concatenate([*parts, np.array(last)]), self.window)
        return groups, means

    def values(self) -> dict[str, float]:
        """L by source, with all outcomes so far."""
        return dict(zip(self.arms, self._updated()[1].tolist(), strict=True))

    # ---- looking inside, saving ----

    def own_metrics(self) -> dict[str, float]:
        """Value, share and rollouts of the sources, of the 50 of greatest share at most."""
        share = boltzmann(self.bounds(), self.temperature)
        return self.arm_metrics(share, value=self.learnability, share=share, rollouts=self.rollouts)

    def own_state(self) -> dict[str, Any]:
        seen = sorted(self.groups)
        parts = [np.column_stack([np.full(len(self.groups[arm]), float(arm)), self.groups[arm]]) for arm in seen]
        return {
            "arms": encode_strings(self.arms),
            "rollouts": encode_array(self.rollouts),
            "learnability": encode_array(self.learnability),
            "groups": encode_array(np.concatenate([np.empty((0, 3)), *parts])),
            "pending": [list(group) for group in sorted(self.pending)],
        }

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        saved_rows, arms = self.rows_of(decode_strings(state["arms"]))
        arm_now = dict(zip(saved_rows.tolist(), arms.tolist(), strict=True))
        self.rollouts[arms] = decode_array(state["rollouts"])[saved_rows]
        self.learnability[arms] = decode_array(state["learnability"])[saved_rows]
        groups = decode_array(state["groups"])
        seen, starts = np.unique(groups[:, 0], return_index=True)
        ends = [*starts[1:].tolist(), len(groups)]
        for row, start, end in zip(seen.astype(int).tolist(), starts.tolist(), ends, strict=False):
            if row in arm_now:
                self.groups[arm_now[row]] = groups[start:end, 1:]
        self.pending = [
            (int(step), int(hashed), arm_now[arm], int(count), float(pay))
            for step, hashed, arm, count, pay in state["pending"]
            if arm in arm_now
        ]
