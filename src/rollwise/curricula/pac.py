"""PAC: a Thompson bandit over categories, paid in mean absolute advantage, more where the mean reward rises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

import numpy as np

from rollwise.curricula.families.arms import ArmBandit, check_category, draw_arms, draw_greatest, exact
from rollwise.curricula.seam.base import CoreOptions
from rollwise.options import CountFromTwo, CountOrZero, NotNegative, Number, Positive
from rollwise.pool import PromptPool
from rollwise.state import decode_array, decode_strings, encode_array, encode_strings
from rollwise.tickets.evidence import Evidence


def slopes(steps: np.ndarray, rewards: np.ndarray) -> np.ndarray:
    """Least-squares slope of the rewards over the steps, (C,); both (C, W), NaN where nothing is; 0 of one point.

    >>> slopes(np.array([[1.0, 2.0, 4.0], [np.nan, np.nan, 3.0]]), np.array([[0.0, 0.5, 0.5], [np.nan, np.nan, 1.0]]))
    array([0.14285714, 0.        ])
    """
    there = ~np.isnan(steps)
    n = np.maximum(there.sum(axis=1, keepdims=True), 1)
    x = np.where(there, steps - np.where(there, steps, 0.0).sum(axis=1, keepdims=True) / n, 0.0)
    return np.asarray((x * np.where(there, rewards, 0.0)).sum(axis=1) / np.maximum((x * x).sum(axis=1), 1e-12))


def utilities(pay: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Utilities (1 + s_prog) s_adv with s_prog = k / sum |k|, (C,); s_prog = 0 where no slope is more than rounding.

    >>> utilities(np.array([0.5, 0.5]), np.array([0.03, -0.01])).tolist()
    [0.875, 0.375]
    """
    total = np.abs(slope).sum()
    return np.asarray(pay * (1.0 + slope / total) if total > 1e-9 else pay)


def updated_belief(
    mean: np.ndarray, variance: np.ndarray, utility: np.ndarray, share: np.ndarray, *, drift: float, noise_sd: float
) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances (C,) after a step: inflated by drift^2, then a utility of precision share / noise_sd^2.

    >>> updated_belief(np.zeros(2), np.ones(2), np.array([0.8, 9.0]), np.array([1.0, 0.0]), drift=0.0, noise_sd=1.0)
    (array([0.4, 0. ]), array([0.5, 1. ]))
    """
    before, told = 1.0 / (variance + drift**2), share / noise_sd**2
    return (before * mean + told * utility) / (before + told), 1.0 / (before + told)


class PAC(
    ArmBandit,
    name="pac",
    paper="*Progress-Augmented Advantage Curriculum*, arXiv 2608.30528",
    needs="a `category` column (or several)",
):
    """Chooses a category by Thompson sampling, paid in (1 + progress) x mean |A|, then a prompt uniformly within it.

    *Progress-Augmented Advantage Curriculum* (arXiv 2608.30528). A category's s_adv is the mean |A| over a window, and
    k the slope of its mean reward over the same window, by least squares; s_prog = k / sum |k| over all categories; its
    utility is (1 + s_prog) s_adv. A Gaussian belief about the utility takes each step's with a precision in proportion
    to the category's share of the batch; its variance grows by delta^2 a step. Each place of a batch has a draw of its
    own, and the first steps are uniform over the categories.

    The source was second-hand: a summary with the equations and without the settings. All defaults are ours. So is
    that a window holds the category's last steps with outcomes, each step counting once, and that a category with one
    such step has no slope.

    Args:
        pool: needs `category`.
        category: the column whose values are the categories; several make one of each combination.
        window: W, steps of a category that mean |A| and the slope look at.
        cold_steps: T_cold, steps with outcomes before the first Thompson draw.
        drift: delta, by whose square a belief's variance grows a step.
        noise_sd: standard deviation of the utility of a category that fills a batch.
        prior_mean: mean of the belief about a category never seen; 1 is the greatest mean |A| of a group in "std".
        prior_sd: its standard deviation.
        advantage: "std": |r - mean(r)| / std(r), as GRPO; "centred": not divided; "told": the trainer's advantages.

    >>> pac = PAC(PromptPool(ids=["a", "b"], columns={"category": ["easy", "hard"]}), prior_mean=0, noise_sd=1, drift=0)
    >>> from rollwise.tickets.outcome import Outcome
    >>> rewards = {"a": [1, 0, 1, 0], "b": [0, 0, 0, 0]}
    >>> _ = pac.tell([Outcome(t.id, rewards[t.prompt_id]) for t in pac.ask(2)])
    >>> {arm: round(value, 4) for arm, value in pac.values().items()}          # .5 / (1 + .5), each half of the batch
    {'easy': 0.3333, 'hard': 0.0}
    """

    lane = "task"

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        category: str | Sequence[str] = "category",
        window: CountFromTwo = 10,
        cold_steps: CountOrZero = 10,
        drift: NotNegative = 0.1,
        noise_sd: Positive = 0.25,
        prior_mean: Number = 0.5,
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
        self.seen = np.full((3, n, self.window), np.nan)  # the last steps told: when, mean |A|, mean reward
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
        told = np.flatnonzero(groups)
        seen = self.seen.copy()
        seen[:, told, :-1] = seen[:, told, 1:]
        seen[0, told, -1] = self.steps_told
        seen[1:, told, -1] = self.new[1:, told] / groups[told]
        steps, pay, rewards = seen
        there = ~np.isnan(steps)
        mean_pay = np.where(there, pay, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
        utility = utilities(mean_pay, slopes(steps, rewards))
        share = groups / max(groups.sum(), 1.0)
        mean, variance = self.belief
        belief = updated_belief(mean, variance, utility, share, drift=self.drift, noise_sd=self.noise_sd)
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
        if seen.shape[2] == self.window:  # else loaded with strict=False: the windows begin anew
            self.seen[:, arms] = seen
