"""PREPO: of each candidate batch the prompts of a perplexity that rises with training, from familiar to strange."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from rollwise.curricula.families.judged.by_prompt import PromptJudged
from rollwise.curricula.families.progress import progress
from rollwise.curricula.families.rotation import Uniform
from rollwise.curricula.seam.base import CoreOptions, Curriculum
from rollwise.judges import Judge
from rollwise.options import Count
from rollwise.pool import PromptPool

_ROUNDING = 1e-9


def scheduled(perplexity: np.ndarray, k: int, rho: float) -> np.ndarray:
    """Rows (k,) of a candidate batch B (C,): sorted, ascending, the window of k from l = floor(rho (C - k)) on.

    >>> perplexity = np.array([5.0, 1.0, 4.0, 2.0, 3.0])
    >>> [scheduled(perplexity, 2, rho).tolist() for rho in (0.0, 0.5, 1.0)]               # l = 0, floor(1.5), 3
    [[1, 3], [3, 4], [2, 0]]
    """
    first = int(rho * (len(perplexity) - k) + _ROUNDING)
    return np.argsort(perplexity, kind="stable")[first : first + k]


class PREPO(
    PromptJudged,
    name="prepo",
    paper="PREPO, Sun et al., arXiv 2511.00794, without its weights of rollouts",
    needs="the policy, which reads its candidates' prompts: one forward pass each",
):
    """Trains on the prompts of each candidate batch whose perplexity fits the progress, at first the lowest.

    The perplexity schedule of PREPO (Sun et al. 2025, arXiv 2511.00794), read in a summary; docs/decisions.md says what
    is left out. At progress rho in [0, 1], with the present policy pi,

        P(x) = exp(-mean over the prompt's tokens t of log pi(x_t | x_<t))
        l(rho) = floor(rho (|B| - K))       of the candidate batch B, sorted by P, the prompts l to l + K - 1 train

    Args:
        pool: needs what `history` needs.
        history: chooses the candidate batch: any method that neither asks the policy nor screens, unbound. By default
            `Uniform()`, as in the paper.
        judge: what measures the prompts' perplexities: "prompt" (the policy), or a `Judge` of your own.
        judge_options: options of a judge that is given by name; see `rollwise.models.reading.prompt_judge.PromptJudge`.
        candidate_multiplier: m = |B| / K, candidates for each prompt of the batch.
        steps: training steps until rho is 1.
        **core: see `CoreOptions`.

    Raises:
        ConfigError: an option out of range; when it is bound, no policy to read.
        MissingExtraError: torch is not installed.

    >>> class Lengths(Judge):
    ...     predicts = "perplexity"
    ...     def predict(self, candidates):
    ...         return [len(text) for text in candidates.texts]
    >>> pool = PromptPool(ids=["a", "b", "c", "d"], prompts=["1", "22", "333", "4444"])
    >>> prepo = PREPO(pool, judge=Lengths(), steps=3)
    >>> [prepo.ask(1, step=step)[0].prompt_id for step in (1, 2, 3)]             # of 4, then of those not in flight
    ['a', 'c', 'd']
    """

    measure = "perplexity"

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        history: Curriculum | None = None,
        judge: str | Judge = "prompt",
        judge_options: Mapping[str, Any] | None = None,
        candidate_multiplier: Count = 5,
        steps: Count = 100,
        **core: Unpack[CoreOptions],
    ) -> None:
        self.steps = steps
        super().__init__(
            pool,
            history=Uniform() if history is None else history,
            judge=judge,
            judge_options=judge_options,
            candidate_multiplier=candidate_multiplier,
            **core,
        )

    def keep(self, values: np.ndarray, k: int) -> np.ndarray:
        return scheduled(values, k, progress(self.step, self.steps))

    def own_metrics(self) -> dict[str, float]:
        return {"progress": progress(self.step, self.steps), **super().own_metrics()}
