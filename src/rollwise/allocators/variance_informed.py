"""The least variance of the gradient by any belief: VIP's rule (arXiv 2602.01601) and GVM's (arXiv 2505.02391)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from rollwise.allocators.base import Allocator, Rates
from rollwise.allocators.greedy import in_proportion
from rollwise.allocators.vip import check_least, variance_saved
from rollwise.options import Count, Positive

_LEAST = 1e-300  # of a power of p


class VarianceInformed(Allocator):
    """Minimises the variance of the gradient, a sum over prompts: 4 p(1-p) (n-1) / n^2 for each, of Dr. GRPO.

    The rule is VIP's; p is the curriculum's belief. `VIP` is the whole method, whose p comes from a Gaussian process.

    Args:
        min_rollouts: at least 3 for "vip", at least 2 for "vip-rloo".
        rule: "vip", for advantages that subtract the group's mean; "vip-rloo", for those that subtract the mean of the
            others; or "gvm": n in proportion to 1 / sqrt(p + `smoothing` / p^(`power` - 1)), GVM's rule without its
            norms of gradients, so that hard prompts get more; its authors' code gives those with p = 0 nothing.
        smoothing: alpha of GVM.
        power: beta of GVM.
        **bounds: see `Allocator`.
    """

    weight = "prompt"

    def __init__(
        self,
        *,
        min_rollouts: Count = 3,
        rule: Literal["vip", "vip-rloo", "gvm"] = "vip",
        smoothing: Positive = 1e-3,
        power: Positive = 2.0,
        **bounds: Any,
    ) -> None:
        check_least(min_rollouts, rule)
        super().__init__(min_rollouts=min_rollouts, **bounds)
        self.rule, self.smoothing, self.power = rule, smoothing, power

    def values(self, rates: Rates, sizes: np.ndarray) -> np.ndarray:
        return variance_saved(rates.mean, sizes, self.rule)

    def allocate(self, rates: Rates, mean: int) -> np.ndarray:
        if self.rule != "gvm":
            return super().allocate(rates, mean)
        low, high = self.bounds(mean)
        p = rates.mean
        shares = 1.0 / np.sqrt(p + self.smoothing / np.maximum(p ** (self.power - 1.0), _LEAST))
        return in_proportion(shares, rates.least(low), high, len(p) * mean)
