"""GPS: one predictor for all prompts, learned from the shared history, and batches that are diverse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from rollwise.curricula.families.diversity import Diversity
from rollwise.curricula.families.judged import Judged
from rollwise.curricula.seam.base import CoreOptions
from rollwise.judges import EmbeddingJudge, Prompts
from rollwise.judges.base import told_values
from rollwise.options import Count, CountOrZero, NotNegative, Positive, Share, Weight
from rollwise.pool import PromptPool


def shared_error(residuals: np.ndarray, count: np.ndarray, prior: float) -> float:
    """The mean error of a batch's predictions, shrunk to 0 as by `prior` rollouts without error.

    >>> round(shared_error(np.array([0.5, 0.25]), np.array([8, 8]), 8.0), 4)  # (4 + 2) / (16 + 8)
    0.25
    """
    return float((count * residuals).sum() / (count.sum() + prior))


class LatentRidge(EmbeddingJudge):
    """`EmbeddingJudge` of pass rates, plus a number z for all prompts: the error it still makes on the last batch.

    Args:
        column: the pool's column with the vectors, (N, d).
        hidden: features of the hidden layer, an even number; 0: linear.
        ridge: strength of the prior, in rollouts.
        forgetting: share of the evidence given up each step.
        latent_prior: strength of the prior z = 0, in rollouts.
    """

    def __init__(
        self,
        *,
        column: str = "embedding",
        hidden: CountOrZero = 128,
        ridge: Positive = 1.0,
        forgetting: Share = 0.02,
        latent_prior: NotNegative = 64.0,
    ) -> None:
        super().__init__(column=column, hidden=hidden, ridge=ridge, forgetting=forgetting)
        self.latent_prior = latent_prior

    def bind(self, pool: PromptPool, seed: int) -> None:
        super().bind(pool, seed)
        self.latent = 0.0

    def predict(self, candidates: Prompts) -> np.ndarray:
        return super().predict(candidates) + self.latent

    def learn(self, told: Prompts, mean: np.ndarray, variance: np.ndarray, count: np.ndarray) -> None:
        super().learn(told, mean, variance, count)
        rows, values = told_values(self.predicts, mean, variance, count)
        self.latent = 0.0
        residuals = values[rows] - self.predict(Prompts(told.pool, told.slots[rows]))
        self.latent = shared_error(residuals, count[rows], self.latent_prior) if len(rows) else 0.0

    def metrics(self) -> dict[str, float]:
        return {**super().metrics(), "latent": self.latent}

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "latent": self.latent}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self.latent = float(state["latent"])


class GPS(
    Judged,
    name="gps",
    paper="*Generalizable Predictive Prompt Selection*, Qu et al., arXiv 2602.01970; its model by a ridge of ours",
    needs="an `embedding` column (`rollwise.models.add_features` makes one)",
):
    """Predicts pass rates by one model of the prompts' vectors, and takes middling prompts that lie apart.

    *Generalizable Predictive Prompt Selection* (arXiv 2602.01970). A batch S is built greedily to maximise

        sum over S of -(p - target)^2  +  lambda x (distances within S, and to the batches before),

    where p is predicted from the prompt's embedding and from a latent z, which stands for the last batch. The objective
    is the paper's, the predictor ours. Of the paper, abstract and introduction could be read; see docs/decisions.md.

    Args:
        pool: with a column of vectors, (N, d).
        column: the pool's column with the vectors.
        hidden: random features of the vectors, an even number; 0: the ridge is linear in the vectors.
        ridge: strength of the ridge's prior, in rollouts.
        forgetting: share of the evidence that is given up a step.
        latent_prior: strength of the prior z = 0, in rollouts.
        diversity: lambda; 0: prompts are chosen one by one.
        history: weight of the newest batch in the mean of the batches before; 0: they don't count.
        candidate_multiplier: candidates for each prompt asked for.
        target: the best pass rate.

    >>> columns = {"embedding": [[0.0, 0.0], [1.0, 0.0], [1.0, 0.1], [2.0, 0.0]]}
    >>> gps = GPS(PromptPool(ids=["easy", "b", "c", "hard"], columns=columns), candidate_multiplier=4, hidden=0)
    >>> from rollwise.tickets.outcome import Outcome
    >>> rewards = {"easy": [1, 1], "hard": [0, 0]}
    >>> _ = gps.tell([Outcome(t.id, rewards.get(t.prompt_id, [])) for t in gps.ask(4)])
    >>> sorted(t.prompt_id for t in gps.ask(2))
    ['b', 'c']
    """

    unsaved = Judged.unsaved | {"column", "hidden", "ridge", "forgetting", "latent_prior"}  # the judge's

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        column: str = "embedding",
        hidden: CountOrZero = 128,
        ridge: Positive = 1.0,
        forgetting: Share = 0.02,
        latent_prior: NotNegative = 64.0,
        diversity: Weight = 0.02,
        history: Share = 0.5,
        candidate_multiplier: Count = 8,
        target: Share = 0.5,
        **core: Unpack[CoreOptions],
    ) -> None:
        self.column, self.diversity, self.history = column, diversity, history
        judge = LatentRidge(column=column, hidden=hidden, ridge=ridge, forgetting=forgetting, latent_prior=latent_prior)
        super().__init__(pool, judge=judge, candidate_multiplier=candidate_multiplier, target=target, **core)

    def build(self) -> None:
        super().build()
        self.diverse = Diversity(
            self.pool, type(self).__name__, column=self.column, weight=self.diversity, history=self.history
        )

    def scores(self, predictions: np.ndarray) -> np.ndarray:
        return np.asarray(-((1.0 - super().scores(predictions)) ** 2))

    def best_of(self, slots: np.ndarray, scores: np.ndarray, k: int) -> np.ndarray:
        order = np.lexsort((self.ties_now(slots), -scores))
        return np.asarray(slots[order[self.diverse.choose(slots[order], scores[order], k)]])

    def end_step(self) -> None:
        super().end_step()
        self.diverse.end_step()

    def own_state(self) -> dict[str, Any]:
        return {**super().own_state(), "diversity": self.diverse.state()}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        super().load_own_state(state, added)
        self.diverse.load(state["diversity"])
