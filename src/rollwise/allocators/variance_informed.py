"""VIP (arXiv 2602.01601) and GVM (arXiv 2505.02391): the least variance of the gradient."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from rollwise.allocators.base import Allocator, Rates
from rollwise.allocators.greedy import in_proportion
from rollwise.errors import ConfigError
from rollwise.options import Count, Positive

_LEAST = 1e-300  # of a power of p


class VarianceInformed(Allocator):
    """Minimises the variance of the gradient, a sum over prompts: 4 p(1-p) (n-1) / n^2 for each, of Dr. GRPO.

    VIP, arXiv 2602.01601; its formulas are taken from reviews of the paper. With RLOO a prompt adds 4 p(1-p) / (n-1).
    Each rollout lowers the variance by less than the one before (Dr. GRPO: from n = 3 on), so that the greatest gains
    are the best division. Either is the variance of a mean over a prompt's own rollouts, so prompts weigh the same.

    Args:
        min_rollouts: at least 3 for "vip", at least 2 for "vip-rloo".
        rule: "vip", for advantages that subtract the group's mean; "vip-rloo", for those that subtract the mean of the
            others; or "gvm": n in proportion to 1 / sqrt(p + `smoothing` / p^(`power` - 1)), GVM's rule without its
            norms of gradients, so that hard prompts get more.
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
        least = {"vip": 3, "vip-rloo": 2}.get(rule, 1)
        if min_rollouts < least:
            raise ConfigError(f"min_rollouts must be at least {least} with rule={rule!r}, got {min_rollouts}")
        super().__init__(min_rollouts=min_rollouts, **bounds)
        self.rule, self.smoothing, self.power = rule, smoothing, power

    def values(self, rates: Rates, sizes: np.ndarray) -> np.ndarray:
        variance = 4.0 * rates.mean * (1.0 - rates.mean)
        if self.rule == "vip-rloo":
            return np.asarray(variance[:, None] / (sizes * (sizes - 1.0)))  # 1 / (n-1) - 1 / n
        return np.asarray(variance[:, None] * ((sizes - 1.0) / sizes**2 - sizes / (sizes + 1.0) ** 2))

    def allocate(self, rates: Rates, mean: int) -> np.ndarray:
        if self.rule != "gvm":
            return super().allocate(rates, mean)
        low, high = self.bounds(mean)
        p = rates.mean
        shares = 1.0 / np.sqrt(p + self.smoothing / np.maximum(p ** (self.power - 1.0), _LEAST))
        return in_proportion(shares, rates.least(low), high, len(p) * mean)
