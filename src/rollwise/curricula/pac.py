"""PAC: a Thompson bandit over categories, paid in mean absolute advantage, more where the mean reward rises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

import numpy as np

from rollwise.curricula.families.arms import ArmBandit, check_category, draw_arms, draw_greatest, exact
from rollwise.curricula.seam.base import CoreOptions
from rollwise.options import CountFromTwo, CountOrZero, Number, Positive, Weight
from rollwise.pool import PromptPool
from rollwise.state import decode_array, decode_strings, encode_array, encode_strings
from rollwise.tickets.evidence import Evidence

_EPSILON = 1e-9
"""The paper's constant of stability (appendix B.3)."""


def slopes(rewards: np.ndarray) -> np.ndarray:
    """Least-squares slopes (C,) over a window of steps (C, W), of length 1; NaN where nothing is; 0 of one point.

    >>> slopes(np.array([[0.0, 0.5, np.nan, 0.5], [np.nan, np.nan, np.nan, 1.0]])).round(4).tolist()
    [0.4286, 0.0]
    """
    there = ~np.isnan(rewards)
    at = np.where(there, np.linspace(0.0, 1.0, rewards.shape[1]), 0.0)
    x = np.where(there, at - at.sum(axis=1, keepdims=True) / np.maximum(there.sum(axis=1, keepdims=True), 1), 0.0)
    return np.asarray((x * np.where(there, rewards, 0.0)).sum(axis=1) / np.maximum((x * x).sum(axis=1), 1e-300))


def utilities(pay: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Utilities (1 + s_prog) s_adv with s_prog = k / (sum |k| + 1e-9), (C,); PAC, equations 7 and 8.

    >>> utilities(np.array([0.5, 0.5]), np.array([0.03, -0.01])).round(6).tolist()
    [0.875, 0.375]
    """
    return np.asarray(pay * (1.0 + slope / (np.abs(slope).sum() + _EPSILON)))


def updated_belief(
    mean: np.ndarray, variance: np.ndarray, utility: np.ndarray, evidence: np.ndarray, *, drift: float, noise_sd: float
) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances (C,) after utilities of precision evidence / noise_sd^2, then inflated by drift^2.

    PAC, equations 10 and 11.

    >>> updated_belief(np.zeros(2), np.ones(2), np.array([0.8, 9.0]), np.array([1.0, 0.0]), drift=0.5, noise_sd=1.0)
    (array([0.4, 0. ]), array([0.75, 1.25]))
    """
    before, told = 1.0 / variance, evidence / noise_sd**2
    return (before * mean + told * utility) / (before + told), 1.0 / (before + told) + drift**2


class PAC(
    ArmBandit,
    name="pac",
    paper="*Progress-Augmented Advantage Curriculum*, Yu et al., arXiv 2608.30528",
    needs="a `category` column (or several)",
):
    """Chooses a category by Thompson sampling, paid in (1 + progress) x mean |A|, then a prompt uniformly within it.

    Yu et al. 2026, *PAC: Progress-Augmented Advantage Curriculum for Multi-Task Reinforcement Learning of LLMs* (arXiv
    2608.30528), Algorithm 1 and appendix B.3. Of the last W steps, those with outcomes of a category give its s_adv,
    the mean of their mean |A|, and k, the slope of their mean rewards by least squares. With s_prog = k / sum |k| over
    all categories, its utility is (1 + s_prog) s_adv. A Gaussian belief about the utility takes each step's with the
    precision c / (B / C), if the category has c of the B groups, and there are C categories. Then all variances grow by
    delta^2. Each place of a batch has a draw of its own, and the first steps are uniform over the categories.

    The defaults are the paper's. It sets the slope to 0 where there are "too few recent observations": here fewer than
    two steps.

    Args:
        pool: needs `category`.
        category: the column whose values are the categories; several make one of each combination.
        window: W, the last steps that mean |A| and the slope look at (16).
        cold_steps: T_cold, steps with outcomes before the first Thompson draw (50, in runs of 400 and 500).
        drift: delta, by whose square a belief's variance grows a step (delta^2 = 0.02).
        noise_sd: standard deviation of the utility of a category that has its equal share of a batch (1).
        prior_mean: mean of the belief about a category never seen (0); 1 is the greatest mean |A| of a group in "std".
        prior_sd: standard deviation of that belief (1).
        advantage: "std": |r - mean(r)| / std(r), as GRPO; "centred": not divided; "told": the trainer's advantages.

    >>> pac = PAC(PromptPool(ids=["a", "b"], columns={"category": ["easy", "hard"]}))
    >>> from rollwise.tickets.outcome import Outcome
    >>> rewards = {"a": [1, 0, 1, 0], "b": [0, 0, 0, 0]}
    >>> _ = pac.tell([Outcome(t.id, rewards[t.prompt_id]) for t in pac.ask(2)])
    >>> {arm: round(value, 4) for arm, value in pac.values().items()}              # 1 / (1 + 1), each has its share
    {'easy': 0.5, 'hard': 0.0}
    """

    lane = "task"

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        category: str | Sequence[str] = "category",
        window: CountFromTwo = 16,
        cold_steps: CountOrZero = 50,
        drift: Weight = 0.02**0.5,
        noise_sd: Positive = 1.0,
        prior_mean: Number = 0.0,
        prior_sd: Positive = 1.0,
        advantage: Literal["told", "centred", "std"] = "std",
        **core: Unpack[CoreOptions],
    ) -> None:
        self.arm_columns = check_category(category)
        self.window, self.cold_steps, self.drift, self.noise_sd = window, cold_steps, drift, noise_sd
        self.prior_mean, self.prior_sd, self.advantage = prior_mean, prior_sd, advantage
        self.learns_from = "advantages" if advantage == "told" else "rewards"
        super().__init__(pool, options={"category": list(self.arm_columns)}, **core)

    def build(self) -> None:
        super().build()
        n = len(self.arms)
        self.steps_told = 0
        self.new = np.zeros((3, n))  # of this step's outcomes: groups, their mean |A| and their mean reward, summed
        self.seen = np.full((2, n, self.window), np.nan)  # mean |A| and mean reward of the last steps, the newest last
        self.belief = np.stack([np.full(n, self.prior_mean), np.full(n, self.prior_sd**2)])  # mean, variance

    # ---- ask ----

    def choose(self, k: int, left: np.ndarray, flying: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.steps_told < self.cold_steps:
            share = (left > 0) / np.count_nonzero(left)
            arms = draw_arms(self.rng["task"], share, k)
            return arms, share[arms]
        mean, variance = self.belief
        return draw_greatest(self.rng["task"], mean, np.sqrt(variance), left, k), np.full(k, np.nan)

    # ---- tell ----

    def observe(self, evidence: Evidence) -> None:
        judged = evidence.where(evidence.judged)
        pay, arms = self.pay(judged, self.advantage), self.arm_of[judged.slots]
        for row, numbers in zip(self.new, (np.ones(len(pay)), exact(pay), exact(judged.mean)), strict=True):
            np.add.at(row, arms, numbers)

    def end_step(self) -> None:
        self.seen, self.belief = self._updated()
        self.steps_told += 1
        self.new = np.zeros_like(self.new)

    def _updated(self) -> tuple[np.ndarray, np.ndarray]:
        """The windows and the beliefs with this step's outcomes."""
        groups = self.new[0]
        told = groups > 0
        seen = np.concatenate([self.seen[:, :, 1:], np.full((2, len(groups), 1), np.nan)], axis=2)
        seen[:, told, -1] = self.new[1:, told] / groups[told]
        pay, rewards = seen
        steps = (~np.isnan(pay)).sum(axis=1)
        utility = utilities(np.nansum(pay, axis=1) / np.maximum(steps, 1), slopes(rewards))
        evidence = groups * len(groups) / max(groups.sum(), 1.0)
        mean, variance = self.belief
        belief = updated_belief(mean, variance, utility, evidence, drift=self.drift, noise_sd=self.noise_sd)
        return seen, np.stack(belief)

    def values(self) -> dict[str, float]:
        """The belief's mean by category, with all outcomes so far."""
        mean = self._updated()[1][0] if self.new[0].any() else self.belief[0]
        return dict(zip(self.arms, mean.tolist(), strict=True))

    # ---- looking inside, saving ----

    def own_metrics(self) -> dict[str, float]:
        """Mean and standard deviation of the beliefs, of the 50 of greatest mean at most."""
        mean, variance = self.belief
        return self.arm_metrics(mean, value=mean, sd=np.sqrt(variance))

    def own_state(self) -> dict[str, Any]:
        return {
            "arms": encode_strings(self.arms),
            "steps_told": self.steps_told,
            "new": encode_array(self.new),
            "seen": encode_array(self.seen),
            "belief": encode_array(self.belief),
        }

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        rows, arms = self.rows_of(decode_strings(state["arms"]))
        self.steps_told = int(state["steps_told"])
        self.new[:, arms] = decode_array(state["new"])[:, rows]
        self.belief[:, arms] = decode_array(state["belief"])[:, rows]
        seen = decode_array(state["seen"])[:, rows]
        if seen.shape[::2] == self.seen.shape[::2]:  # else loaded with strict=False: the windows begin anew
            self.seen[:, arms] = seen
