"""Curricula that rank prompts by a belief about their scores: what BOTS and `Selector` share."""

from __future__ import annotations

import copy

import numpy as np

from rollwise.curricula.ranked import Ranked
from rollwise.estimators import Belief
from rollwise.evidence import Evidence


class Believing(Ranked):
    """A method whose scores follow from a belief, or from samples of it.

    A subclass sets `belief` and calls `sample_by` in its `__init__`, and takes the belief's update in `end_step`.
    """

    belief: Belief

    def sample_by(self, sampling: str) -> None:
        """Score rates drawn from the belief ("thompson") or its means ("mean")."""
        self.sampling, self.random_scores = sampling, sampling == "thompson"

    def build(self) -> None:
        super().build()
        self.belief = copy.copy(self.belief)
        self.belief.use(self.columns)

    def rates(self, slots: np.ndarray | None) -> np.ndarray:
        """The rate to be scored of each of the slots (K,), or of the whole pool (N,) if None."""
        some = slice(None) if slots is None else slots
        return self.belief.sample(self.rng["thompson"], some) if self.random_scores else self.belief.mean(some)

    def moments(self, slots: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What acquisitions take, (K,) each: rate, the belief's uncertainty, and the variance of a rollout's score.

        A rate that was drawn is put into [0, 1], and its variance is p(1-p).
        """
        some = slice(None) if slots is None else slots
        rates = self.rates(slots)
        if self.random_scores:
            rates = np.clip(rates, 0.0, 1.0)
            variance = rates * (1.0 - rates)
        else:
            variance = self.belief.reward_variance(some)
        return rates, self.belief.uncertainty(some), variance

    def expected(self, slots: np.ndarray) -> np.ndarray:
        return self.belief.mean(slots)

    def observe(self, evidence: Evidence) -> None:
        judged = evidence.where(evidence.judged)
        self.belief.add(judged.slots, judged.scores)
