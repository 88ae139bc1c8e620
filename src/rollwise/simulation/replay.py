"""Replay: a logged run as the world. What curricula would have asked of it, and with how much contrast; not learning.

A curriculum asks for prompt i at step s and is given rewards as that prompt earned them in the log about that time:

1. counts: each logged group of the prompt, at step s', counts exp(-((s - s') / h)^2 / 2); h is the bandwidth.
2. pooling: the prompt's counts of each level of reward, and `pooling` pseudo-rollouts in the proportions that its
   category had at step s (the same kernel over the category's groups), are the parameters of a Dirichlet.
3. a rate: one draw from it says how likely each level is. A prompt's draw has the same underlying random numbers at
   every step, so a prompt is what it is throughout, and changes only as the log says.
4. rewards: the group is drawn from these rates.

Bandwidth and pooling are fitted to the log by default (`smoothing`).
The policy gets better by steps of the log, whatever the curriculum asks for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rollwise.options import check_number, check_whole
from rollwise.pool import PromptPool
from rollwise.rng import check_seed, stream_generator
from rollwise.simulation.items import advantages
from rollwise.simulation.run_log import RunLog
from rollwise.simulation.smoothing import fitted


def gamma_draw(shape: np.ndarray, normal: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """A gamma variate for each shape parameter, from a standard normal and a uniform number: continuous in the shape.

    Gamma(a) is Gamma(a + 1) U^(1/a) in distribution, and Gamma(b) nearly b (1 - 1/(9b) + z / (3 sqrt(b)))^3 for b >= 1
    (Wilson and Hilferty, 1931). numpy's own draws reject, so a small change of a parameter would give another number.

    >>> float(gamma_draw(np.array(1.0), np.array(0.0), np.array(0.5)).round(4))     # 2 (17/18)^3 * 0.5
    0.8424
    """
    above = shape + 1.0
    root = np.maximum(1.0 - 1.0 / (9.0 * above) + normal / (3.0 * np.sqrt(above)), 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        power = np.where(shape > 0.0, uniform ** (1.0 / np.maximum(shape, 1e-12)), 0.0)
    return np.asarray(above * root**3 * power)


class ReplayWorld:
    """A logged uniform run as the world of a *simulation*; see the module for how rewards are made.

    It can tell how much contrast a curriculum would have found, whether its beliefs would have been right, and which
    prompts it would have covered. It can't tell what the policy would have learnt: in it, training does nothing.

    Args:
        log: from `read_log`.
        bandwidth: of the kernel, in steps; fitted by default.
        pooling: pseudo-rollouts from the category; fitted by default.
        seed: of the rates and rewards.

    Raises:
        ConfigError: a number out of range.
    """

    def __init__(
        self, log: RunLog, *, bandwidth: float | None = None, pooling: float | None = None, seed: int = 0
    ) -> None:
        self.log = log
        for name, value in (("bandwidth", bandwidth), ("pooling", pooling)):
            if value is not None:
                check_number(name, value, low=0.0, high=1e9, open_low=True)
        self.seed = check_seed(seed)
        self.smoothing, self.pooling = fitted(log, bandwidth, pooling)
        self.categories, self.category = self.smoothing.categories, self.smoothing.category
        columns = {"category": np.array(log.category, dtype=object), **log.columns}
        self.pool = PromptPool(ids=log.ids, prompts=log.prompts, columns=columns)
        self.step = 1
        rng, shape = stream_generator(self.seed, "replay-rates"), (len(log.ids), len(log.levels))
        self._normal, self._uniform = rng.standard_normal(shape), rng.random(shape)
        self._rollouts = stream_generator(self.seed, "replay-rollouts")

    def counts(self, slots: np.ndarray, step: int) -> np.ndarray:
        """The parameters of K prompts' Dirichlets at a step, (K, L): own counts and the category's pseudo-rollouts."""
        return self.smoothing.of_prompts(slots, step) + self.pooling * self.smoothing.shares(slots, step)

    def rates(self, slots: np.ndarray) -> np.ndarray:
        """How likely each level of reward is for K prompts now, (K, L); rows add up to 1."""
        drawn = gamma_draw(
            self.counts(slots, min(self.step, self.log.steps)), self._normal[slots], self._uniform[slots]
        )
        total = drawn.sum(axis=1, keepdims=True)
        return np.asarray(np.where(total > 0.0, drawn / np.where(total > 0.0, total, 1.0), 1.0 / drawn.shape[1]))

    def success_rates(self, slots: np.ndarray) -> np.ndarray:
        """How likely a solved rollout is for prompts now, (K,); of a log without a solved one the highest reward is."""
        solved = self.log.levels >= min(self.log.solved_at, float(self.log.levels[-1])) - 1e-6
        return np.asarray(self.rates(slots)[:, solved].sum(axis=1))

    def rollout(self, slots: np.ndarray, group_size: int) -> np.ndarray:
        """Rewards of `group_size` rollouts of each of K prompts at this step of the log, (K, G), in [0, 1]."""
        shape = (len(slots), check_whole("group_size", group_size, least=1))
        upto = np.cumsum(self.rates(slots), axis=1)
        drawn = (self._rollouts.random(shape)[:, :, None] >= upto[:, None, :-1]).sum(axis=2)
        return np.asarray(self.log.levels[drawn])

    def advantages(self, rewards_KG: np.ndarray) -> np.ndarray:
        """As the logged run made them, (K, G)."""
        return advantages(rewards_KG, advantage=self.log.advantage)

    def train(
        self,
        slots: np.ndarray,
        rewards: Sequence[np.ndarray] | np.ndarray,
        weight: str = "rollout",
        used: Sequence[np.ndarray] | None = None,
    ) -> None:
        """Go on to the next step of the log; nothing is learnt."""
        self.step += 1

    def scores(self) -> tuple[float, np.ndarray]:
        """No score, and none by category (C,): NaN."""
        return math.nan, np.full(len(self.categories), np.nan)
