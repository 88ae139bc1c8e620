"""VIP (arXiv 2602.01601): the least variance of the gradient, by rates that a Gaussian process predicts."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from rollwise.allocators.base import Allocator, Rates
from rollwise.errors import ConfigError
from rollwise.options import Count

LEAST = {"vip": 3, "vip-rloo": 2}
"""The smallest group for which each rule holds."""


class VIP(Allocator):
    """Minimises the variance of the gradient; a Gaussian process over `embedding` predicts the success rates.

    Nguyen et al. 2026 (arXiv 2602.01601). Before the next prompts are asked for, the process learns the rates of the
    batch that was told, at most 1024 prompts at a time, and predicts those of all prompts, also of prompts never rolled
    out (`rollwise.estimators.gaussian_process`). A prompt of rate p with n rollouts adds 4 p(1-p) (n-1) / n^2 to the
    variance with Dr. GRPO, and 4 p(1-p) / (n-1) with RLOO. Each rollout lowers it by less than the one before (Dr.
    GRPO: from n = 3 on), so the greatest gains are the best division. Either is the variance of a mean over a prompt's
    own rollouts, so prompts weigh the same.

    Our sources are reviews of the paper with its formulas, two reimplementations that follow its section 5.1, and the
    authors' code of 2025, not the paper's text. From the first two: the prior 0, and the median distance as the width
    of the kernel. From the code: the noise 1e-4, and rates at least 1e-6 off 0 and 1. Elsewhere the code departs from
    them: the prior is -1, the width 0.4, the least 4, its first trainer learns from the last batch alone, and RLOO's
    sum has one more term.

    A batch costs one evaluation of the kernel for each of its prompts and each of the pool. A prompt that joins the
    pool later begins at the prior.

    Args:
        rule: "vip", for advantages that subtract the group's mean; "vip-rloo", for those that subtract the mean of the
            others.
        min_rollouts: at least 3 for "vip", at least 2 for "vip-rloo".
        max_rollouts: none gets more; None: four times the mean.
        weight: how groups of different size weigh in the loss, "rollout" or "prompt"; None: "prompt".
    """

    weight = "prompt"
    predicts: ClassVar[bool] = True

    def __init__(
        self,
        *,
        rule: Literal["vip", "vip-rloo"] = "vip",
        min_rollouts: Count = 3,
        max_rollouts: Count | None = None,
        weight: Literal["rollout", "prompt"] | None = None,
    ) -> None:
        check_least(min_rollouts, rule)
        super().__init__(min_rollouts=min_rollouts, max_rollouts=max_rollouts, weight=weight)
        self.rule = rule

    def values(self, rates: Rates, sizes: np.ndarray) -> np.ndarray:
        return variance_saved(rates.mean, sizes, self.rule)


def variance_saved(p: np.ndarray, sizes: np.ndarray, rule: str) -> np.ndarray:
    """By how much one more rollout lowers the variance of the gradient, (K, S), of rates p (K,) and `sizes` (S,).

    >>> variance_saved(np.array([0.5]), np.array([2]), "vip-rloo").tolist()  # 1 / (2-1) - 1 / (3-1)
    [[0.5]]
    """
    variance = (4.0 * p * (1.0 - p))[:, None]
    if rule == "vip-rloo":
        return np.asarray(variance / (sizes * (sizes - 1.0)))  # 1 / (n-1) - 1 / n
    return np.asarray(variance * ((sizes - 1.0) / sizes**2 - sizes / (sizes + 1.0) ** 2))


def check_least(min_rollouts: int, rule: str) -> None:
    """Raise `ConfigError` for groups so small that a rule does not hold."""
    least = LEAST.get(rule, 1)
    if min_rollouts < least:
        raise ConfigError(f"min_rollouts must be at least {least} with rule={rule!r}, got {min_rollouts}")
