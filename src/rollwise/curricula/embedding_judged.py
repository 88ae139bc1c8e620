"""Chooses by a head that is learned on given vectors: our own method, with PCL's way of choosing."""

from __future__ import annotations

from typing import Unpack

from rollwise.curricula.families.judged import Judged
from rollwise.curricula.seam.base import CoreOptions
from rollwise.judges import EmbeddingJudge, Predicts
from rollwise.options import Count, Share
from rollwise.pool import PromptPool


class EmbeddingJudged(
    Judged,
    name="embedding-judge",
    paper="ours: PCL's choice, by a ridge on given vectors",
    needs="an `embedding` column (`rollwise.models.add_features` makes one)",
):
    """Scores m B candidates by a ridge regression on their vectors, and trains on the B nearest to the target.

    Ours, and no paper's. It chooses as `PCL` does, but what predicts is an `EmbeddingJudge`: random features of the
    column `embedding`, and a head that is fitted in closed form. PCL trains a whole language model instead. So this
    needs numpy alone and no policy, and costs milliseconds a step; it sees what the vectors tell and nothing else.

    The candidates are drawn uniformly. Before the first outcomes there is no prediction, and the batch is uniform.

    Args:
        pool: with a column of vectors, (N, d).
        predicts: "pass-rate", or "variance" for continuous rewards: then the greatest are taken.
        column: the pool's column with the vectors.
        hidden: features of the hidden layer, an even number; 0: the head is linear in the vectors.
        ridge: strength of the prior, in rollouts.
        forgetting: share of the evidence that is given up a step; 0.02 remembers about 50 steps.
        candidate_multiplier: m, candidates for each prompt of the batch (8).
        target: the best pass rate (0.5).
        explore: share of the batch drawn from the candidates whatever was predicted (0).
        default: see `Judged`; without effect, as this judge predicts all candidates or, at first, none.
        **core: see `CoreOptions`. The rails are off unless asked for, as PCL's are. Without them it can lock itself in,
            as it never asks again for what it has written off (one of three real runs did; `docs/results.md`).

    >>> pool = PromptPool(ids=["easy", "middling", "hard"], columns={"embedding": [[0.0], [1.0], [2.0]]})
    >>> curriculum = EmbeddingJudged(pool, candidate_multiplier=3)
    >>> from rollwise.tickets.outcome import Outcome
    >>> rewards = {"easy": [1, 1, 1, 1], "middling": [1, 0, 1, 0], "hard": [0, 0, 0, 0]}
    >>> _ = curriculum.tell([Outcome(t.id, rewards[t.prompt_id]) for t in curriculum.ask(3)])
    >>> curriculum.ask(1)[0].prompt_id
    'middling'
    """

    unsaved = Judged.unsaved | {"predicts", "column", "hidden", "ridge", "forgetting"}  # the judge's

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        predicts: Predicts = "pass-rate",
        column: str = "embedding",
        hidden: int = 256,
        ridge: float = 1.0,
        forgetting: float = 0.02,
        candidate_multiplier: Count = 8,
        target: Share = 0.5,
        explore: Share = 0.0,
        default: float | None = None,
        **core: Unpack[CoreOptions],
    ) -> None:
        judge = EmbeddingJudge(predicts=predicts, column=column, hidden=hidden, ridge=ridge, forgetting=forgetting)
        super().__init__(
            pool,
            judge=judge,
            candidate_multiplier=candidate_multiplier,
            target=target,
            explore=explore,
            default=default,
            **core,
        )
