"""HIVE: candidates by history, and of those the half of whose prompts the present policy is least certain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from rollwise.curricula.families.judged.by_prompt import PromptJudged
from rollwise.curricula.greso import GRESO
from rollwise.curricula.seam.base import CoreOptions, Curriculum
from rollwise.judges import Judge
from rollwise.options import Count
from rollwise.pool import PromptPool


def verified(entropy: np.ndarray, threshold: float, k: int) -> np.ndarray:
    """Rows (k,) of candidates: those with entropy >= threshold first, in their order; then the greatest of the rest.

    >>> verified(np.array([0.2, 0.9, 0.4, 0.8, 0.3]), 0.4, 2).tolist()
    [1, 2]
    >>> verified(np.array([0.2, 0.9, 0.4, 0.8, 0.3]), 0.4, 4).tolist()
    [1, 2, 3, 4]
    """
    below = entropy < threshold
    return np.lexsort((np.where(below, -entropy, 0.0), below))[:k]


class HIVE(
    PromptJudged,
    name="hive",
    paper="HIVE, Wu et al., arXiv 2603.25184",
    needs="the policy, which reads its candidates' prompts: one forward pass each; a gate with refills",
):
    """A history method takes candidates; those with at least the median prompt entropy are rolled out.

    HIVE (Wu et al. 2026, *Train at the Moving Edge*, arXiv 2603.25184, version 2). Stage 1 takes candidates by past
    outcomes. Stage 2 keeps those whose entropy is at least the median of the step's candidates so far; if they are too
    few, the rest has the greatest entropy below it:

        H(x) = mean over the prompt's tokens t, but the first, of the entropy of pi(. | x_<t)

    Abstract and introduction were read, the rest in a specification by others. docs/decisions.md says what differs.

    Args:
        pool: needs what `history` needs.
        history: chooses the candidates: any method that neither asks the policy nor screens, unbound. By default
            `GRESO()`, as in the paper.
        judge: what measures the prompts' entropies: "prompt" (the policy), or a `Judge` of your own.
        judge_options: options of a judge that is given by name; see `rollwise.models.reading.prompt_judge.PromptJudge`.
        candidate_multiplier: m, candidates for each prompt of the batch. With 2, the upper half is the batch.
        **core: see `CoreOptions`.

    Raises:
        ConfigError: an option out of range; when it is bound, no policy to read.
        MissingExtraError: torch is not installed.

    >>> class Lengths(Judge):
    ...     predicts = "entropy"
    ...     def predict(self, candidates):
    ...         return [len(text) for text in candidates.texts]
    >>> pool = PromptPool(ids=["a", "b", "c", "d"], prompts=["1", "22", "333", "4444"])
    >>> sorted(ticket.prompt_id for ticket in HIVE(pool, judge=Lengths()).ask(2))
    ['c', 'd']
    """

    measure = "entropy"
    paper_gate = GRESO.paper_gate

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        history: Curriculum | None = None,
        judge: str | Judge = "prompt",
        judge_options: Mapping[str, Any] | None = None,
        candidate_multiplier: Count = 2,
        **core: Unpack[CoreOptions],
    ) -> None:
        super().__init__(
            pool,
            history=GRESO() if history is None else history,
            judge=judge,
            judge_options=judge_options,
            candidate_multiplier=candidate_multiplier,
            **core,
        )

    def keep(self, values: np.ndarray, k: int) -> np.ndarray:
        return verified(values, self.median(), k)
