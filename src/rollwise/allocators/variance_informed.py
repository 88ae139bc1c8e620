"""VIP (arXiv 2602.01601) and GVM (arXiv 2505.02391): the least variance of the gradient."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from rollwise.allocators.base import Allocator, Rates
from rollwise.allocators.greedy import in_proportion
from rollwise.errors import ConfigError
from rollwise.options import Count, Positive


class VarianceInformed(Allocator):
    """Minimises the sum of 4 p(1-p) (n-1) / n^2, the variance that prompts give the gradient of RLOO and Dr. GRPO.

    VIP, arXiv 2602.01601; its formulas are taken from a review of the paper. From n = 3 on each rollout lowers the
    variance by less than the one before, so that the greatest gains are the best division.

    Args:
        min_rollouts: at least 3 for "vip".
        rule: "vip", or "gvm": n in proportion to 1 / sqrt(p + `smoothing` / p^(`power` - 1)), GVM's rule without its
            norms of gradients, so that hard prompts get more.
        smoothing: alpha of GVM.
        power: beta of GVM.
        **bounds: see `Allocator`.
    """

    def __init__(
        self,
        *,
        min_rollouts: Count = 3,
        rule: Literal["vip", "gvm"] = "vip",
        smoothing: Positive = 1e-3,
        power: Positive = 2.0,
        **bounds: Any,
    ) -> None:
        if rule == "vip" and min_rollouts < 3:
            raise ConfigError(
                f"min_rollouts must be at least 3 with rule='vip', whose gain rises before, got {min_rollouts}"
            )
        super().__init__(min_rollouts=min_rollouts, **bounds)
        self.rule, self.smoothing, self.power = rule, smoothing, power
        if rule == "gvm":
            self.weight = "prompt"

    def values(self, rates: Rates, sizes: np.ndarray) -> np.ndarray:
        variance = 4.0 * rates.mean * (1.0 - rates.mean)
        return np.asarray(variance[:, None] * ((sizes - 1.0) / sizes**2 - sizes / (sizes + 1.0) ** 2))

    def allocate(self, rates: Rates, mean: int) -> np.ndarray:
        if self.rule == "vip":
            return super().allocate(rates, mean)
        low, high = self.bounds(mean)
        p = rates.mean
        shares = 1.0 / np.sqrt(p + self.smoothing / p ** (self.power - 1.0))
        return in_proportion(shares, rates.least(low), high, len(p) * mean)
