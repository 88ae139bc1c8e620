"""AdaRFT: a target difficulty that follows the policy's rewards."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Unpack

import numpy as np

from rollwise.curricula.families.ranked import Ranked
from rollwise.curricula.families.round_keys import NearestKeys, RoundKeys
from rollwise.curricula.seam.base import CoreOptions
from rollwise.draws import rank_of_scores
from rollwise.errors import ConfigError, PoolError
from rollwise.options import Positive, Range, Share
from rollwise.pool import PromptPool
from rollwise.tickets.evidence import Evidence


def next_target(
    target: float, reward: float, *, step_size: float, sensitivity: float, desired: float, low: float, high: float
) -> float:
    """T' = clip(T + eta tanh(alpha (R - beta)), d_min, d_max); AdaRFT, Algorithm 1.

    >>> round(next_target(0.0, 1.0, step_size=50.0, sensitivity=2.0, desired=0.5, low=0.0, high=100.0), 3)
    38.08
    """
    moved = target + step_size * np.tanh(sensitivity * (reward - desired))
    return float(np.clip(moved, low, high))


def nearness_on_scale(difficulty: np.ndarray, target: float, scale: float) -> np.ndarray:
    """Scores (K,) in the order of nearness |d - T|, the greatest for the nearest; AdaRFT, Algorithm 1.

    Scores are compared as float32, which has seven digits wherever the point is: so the reciprocal of the distance, in
    units of `scale`, tells distances apart on any scale of difficulties.

    >>> nearness_on_scale(np.array([0.0, 50.0, 100.0]), 50.0, 100.0).round(3).tolist()
    [2.0, 1000000000.0, 2.0]
    """
    return np.asarray(1.0 / (np.abs(difficulty - target) / scale + 1e-9))


def _keys(difficulty: np.ndarray, target: float, scale: float, slots: np.ndarray) -> np.ndarray:
    """What slots (K,) of the pool's difficulties (N,) are sorted by, (K,), the least first."""
    return np.asarray(~rank_of_scores(nearness_on_scale(difficulty[slots], target, scale)))


Difficulty = Annotated[float, Range(-1e12, 1e12)]


class AdaRFT(Ranked, name="adarft", paper="Shi et al., arXiv 2504.05520", needs="a column of difficulties"):
    """Rolls out the prompts whose given difficulty is nearest to a target, which rises and falls with the mean reward.

    Shi et al. 2025, *Efficient Reinforcement Finetuning via Adaptive Curriculum Learning* (arXiv 2504.05520).

    Args:
        pool: needs `column`, fixed difficulties on any scale; the paper's are 0 to 100, the percentage of failures of
            another model.
        column: the column of difficulties, greater for harder.
        step_size: eta; by default half the range of difficulties (section 4.3: 50 of 100).
        sensitivity: alpha, how steeply the target's move grows with the score's distance from `desired` (2).
        desired: beta, the mean score at which the target stays (0.5).
        low: d_min, where the target starts too; by default the least difficulty.
        high: d_max; by default the greatest.

    Where the paper is silent or its release differs:

    - Prompts equally near come in random order, in another one after each step; the release's sort repeats the same
      batch while the target stands still. Where no two are equally near, the nearest are the same while it stands
      still: the paper says that this is meant (section 3.1).
    - The release's data loader draws some sixteen batches ahead, so its target lags. Here it is that of the last step.
    - R is the mean score of all rollouts told in the step, those of the rails included.
    - T starts at d_min.

    >>> pool = PromptPool(ids=["easy", "middling", "hard"], columns={"difficulty": [0, 50, 100]})
    >>> AdaRFT(pool, rails=None).ask(1)[0].prompt_id
    'easy'
    """

    lane = "target"
    learns_from = "means"
    ranked_at_once = 512

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        column: str = "difficulty",
        step_size: Positive | None = None,
        sensitivity: Annotated[float, Range(0.0, 1e6, open_low=True)] = 2.0,
        desired: Share = 0.5,
        low: Difficulty | None = None,
        high: Difficulty | None = None,
        **core: Unpack[CoreOptions],
    ) -> None:
        if low is not None and high is not None and not low < high:
            raise ConfigError(f"low must be less than high, got low={low!r} and high={high!r}")
        self.column, self.sensitivity, self.desired = column, sensitivity, desired
        self.given = {"step_size": step_size, "low": low, "high": high}
        self.draw_by()
        own = {"draw": self.draw, "temperature": self.temperature, "candidate_multiplier": None}
        super().__init__(pool, options=own, **core)

    def build(self) -> None:
        super().build()
        values = self.pool.require(
            self.column, "AdaRFT", "add difficulties, greater for harder, or name another column"
        )
        if values.dtype.kind not in "biuf" or values.ndim != 1 or not np.isfinite(values).all():
            raise PoolError(f"AdaRFT needs one finite number for each prompt in column {self.column!r}")
        self.difficulty: np.ndarray = values.astype(np.float64)
        self.order = np.argsort(self.difficulty, kind="stable")
        self.line = self.difficulty[self.order]
        given = self.given
        self.low = float(values.min() if given["low"] is None else given["low"])
        self.high = float(values.max() if given["high"] is None else given["high"])
        if self.low > self.high:
            raise PoolError(
                f"AdaRFT with low={given['low']!r} and high={given['high']!r} finds no target: column {self.column!r} "
                f"is between {values.min():g} and {values.max():g}"
            )
        self.scale = max(self.high - self.low, float(np.ptp(self.difficulty))) or 1.0
        self.step_size = (self.high - self.low) / 2.0 if given["step_size"] is None else float(given["step_size"])
        self.target = self.low
        self.score_sum, self.score_count = 0.0, 0

    def scores(self, slots: np.ndarray | None) -> np.ndarray:
        difficulty = self.difficulty if slots is None else self.difficulty[slots]
        return nearness_on_scale(difficulty, self.target, self.scale)

    def round_keys(self) -> RoundKeys:
        keys_of = partial(_keys, self.difficulty, self.target, self.scale)  # no lambda: a curriculum can be pickled
        return NearestKeys(self.line, self.order, self.target, keys_of)

    def observe(self, evidence: Evidence) -> None:
        judged = evidence.where(evidence.judged)
        self.score_sum += float((judged.mean * judged.count).sum())
        self.score_count += int(judged.count.sum())

    def end_step(self) -> None:
        self.target = next_target(
            self.target,
            self.score_sum / self.score_count,
            step_size=self.step_size,
            sensitivity=self.sensitivity,
            desired=self.desired,
            low=self.low,
            high=self.high,
        )
        self.score_sum, self.score_count = 0.0, 0
        self.new_round()

    def own_metrics(self) -> dict[str, float]:
        return {"target_difficulty": self.target}

    def own_state(self) -> dict[str, Any]:
        told = {"target": self.target, "score_sum": self.score_sum, "score_count": self.score_count}
        return {**super().own_state(), **told}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        self.target, self.score_sum = float(state["target"]), float(state["score_sum"])
        self.score_count = int(state["score_count"])
        super().load_own_state(state, added)
