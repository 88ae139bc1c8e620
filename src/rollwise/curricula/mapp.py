"""MaPP: draws prompts by the posterior probability that their group is mixed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from rollwise.acquisition import mixed_probability
from rollwise.curricula.bots import BOTS
from rollwise.curricula.seam.base import CoreOptions
from rollwise.options import Count, CountFromTwo, Share
from rollwise.pool import PromptPool


class MaPP(
    BOTS,
    name="mapp",
    paper="Ren et al., arXiv 2609.34990; its posterior advantages: `train --advantages posterior`",
    needs="nothing",
):
    """Draws prompts with probability proportional to that of a mixed group, by each prompt's own Beta belief.

    Ren et al. 2026, *MaPP: A Unified Marginalized Posterior-Predictive Framework for Data-Efficient RLVR* (arXiv
    2609.34990), Algorithm 1 and appendix B.2. The belief is MoPPS's: only the prompts rolled out are updated,

        alpha <- lambda alpha + (1 - lambda) alpha_0 + successes,   beta likewise with failures,

    and the score of a prompt is V = 1 - B(alpha + G, beta) / B(alpha, beta) - B(alpha, beta + G) / B(alpha, beta). G is
    the `n_rollouts` of `ask`. The paper's advantages are an option of the trainers: `posterior_advantages=True`,
    `rollwise train --advantages posterior`.

    The defaults are the paper's; its algorithm scores the whole pool, and its experiments 8 candidates for each prompt.
    That the batch is drawn without replacement is ours, and so are graded rewards, which count in fractions: the paper
    counts those below the full reward as failures.

    Args:
        pool: any prompts.
        forgetting: 1 - lambda (0.5).
        candidate_multiplier: candidates for each prompt asked for, as in `MoPPS` (8); None: the whole pool.
        prior: alpha_0 and beta_0 of each prompt's Beta belief (1, 1).
        group_size: G until an `ask` says `n_rollouts` (8; 5 for mathematics).

    >>> pool = PromptPool(ids=["a", "b"])
    >>> mapp = MaPP(pool, group_size=2)
    >>> from rollwise.tickets.outcome import Outcome
    >>> _ = mapp.tell([Outcome(mapp.ask(1)[0].id, [1, 1])])
    >>> _ = mapp.ask(1)                                              # Beta(3, 1) and Beta(1, 1), G = 2
    >>> sorted(mapp.scores(None).round(12).tolist())
    [0.3, 0.333333333333]
    """

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        forgetting: Share = 0.5,
        candidate_multiplier: Count | None = 8,
        prior: tuple[float, float] = (1.0, 1.0),
        group_size: CountFromTwo = 8,
        **core: Unpack[CoreOptions],
    ) -> None:
        self.rollouts = group_size
        super().__init__(
            pool,
            forgetting=forgetting,
            implicit_weight=0.0,
            implicit="none",
            sampling="mean",
            candidate_multiplier=candidate_multiplier,
            prior=prior,
            draw="proportional",
            update="told",
            **core,
        )

    def build(self) -> None:
        super().build()
        self.of_pool: np.ndarray | None = None  # the scores of all prompts, once they were needed

    def set_rollouts(self, n: int) -> None:
        if n != self.rollouts:
            self.rollouts, self.scored, self.of_pool = n, False, None

    def scores(self, slots: np.ndarray | None) -> np.ndarray:
        if slots is not None:
            return self._mixed(slots)
        if self.of_pool is None:
            self.of_pool = self._mixed(slice(None))
        return self.of_pool

    def _mixed(self, slots: np.ndarray | slice) -> np.ndarray:
        alpha, beta = (parameter[slots] for parameter in self.belief.parameters)
        return mixed_probability(alpha, beta, self.rollouts)

    def end_step(self) -> None:
        told = self.learn()
        if self.of_pool is not None:
            self.of_pool[told] = self._mixed(told)  # no other belief has changed
        self.new_round()

    def own_state(self) -> dict[str, Any]:
        return {**super().own_state(), "rollouts": self.rollouts}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        self.rollouts = int(state["rollouts"])
        super().load_own_state(state, added)
