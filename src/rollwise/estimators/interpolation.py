"""Where the policy stands between two reference models: BOTS, section 3.3; by category, ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from rollwise.errors import ConfigError
from rollwise.estimators.evidence import ImplicitEvidence
from rollwise.estimators.implicit import capability, capability_by_least_squares, interpolate
from rollwise.estimators.references import References, check_references, reference_rates
from rollwise.options import Positive, PositiveShare, Share
from rollwise.pool import PromptPool


def shrunk_capability(
    above: np.ndarray, gap: np.ndarray, common: float, *, borrowed: float, mean_gap: float
) -> np.ndarray:
    """The capability of each category (C,): its own evidence, and that of `borrowed` prompts like all.

    mu_c = (A_c + k g mu) / (G_c + k g), where A_c and G_c are what a category's batches add up to (the numerators and
    denominators of its coefficient), mu is the common coefficient, g the mean gap between the references of a prompt,
    and k = `borrowed`. Without evidence of its own it is mu; ours, the paper has one domain at a time.

    >>> sums = np.array([0.0, 4.0])
    >>> shrunk_capability(sums, sums, 0.5, borrowed=8.0, mean_gap=0.25).round(9).tolist()      # (4 + 2 / 2) / (4 + 2)
    [0.5, 0.833333333]
    """
    prior = borrowed * mean_gap
    return np.asarray((above + prior * common) / (gap + prior))


class Interpolation(ImplicitEvidence):
    """Places the policy between a weak and a strong reference model, with momentum (section 3.3).

    With `category`, each value of that column has a coefficient of its own, shrunk to the common one by
    `shrunk_capability`. In a step with prompts of a category in its batch, what the category's earlier batches add up
    to is multiplied by `momentum`; in the others it stays. A category in which the references turn out the wrong way
    round (G_c < -k g / 2) has the common coefficient.

    Args:
        momentum: gamma of the capability coefficient.
        least_gap: references that differ by less on a batch leave the coefficient as it is.
        capability: "ratio" of means, or "least-squares" over the batch's prompts.
        references: the columns with the pass rates of the weak and the strong reference; see `reference_rates`.
        category: the column with the domains; None for one coefficient.
        borrowed: k, how many prompts of the common coefficient a category's own is averaged with.
    """

    def __init__(
        self,
        *,
        momentum: Share = 0.9,
        least_gap: PositiveShare = 0.01,
        capability: Literal["ratio", "least-squares"] = "ratio",
        references: References = None,
        category: str | None = None,
        borrowed: Positive = 8.0,
    ) -> None:
        self.momentum, self.least_gap, self.least_squares = momentum, least_gap, capability == "least-squares"
        self.columns, self.category, self.borrowed = check_references(references), category, borrowed

    def bind(self, pool: PromptPool, seed: int) -> None:
        self.references = reference_rates(pool, self.columns, "BOTS with implicit='interpolation'")
        self.capability: float | None = None
        self.names: list[str] = []
        if self.category is not None:
            pool.require(self.category, "BOTS with a capability by category", "add it, or leave capability_by out")
            self.names, self.codes = pool.codes(self.category)
            weak_to_strong = self.references[:, 1] - self.references[:, 0]
            self.mean_gap = float((weak_to_strong**2 if self.least_squares else weak_to_strong).mean())
            if self.mean_gap <= (self.least_gap**2 if self.least_squares else self.least_gap):
                raise ConfigError(
                    f"the references differ by {self.mean_gap:.3g} on the mean, too little for a capability by "
                    "category; name the weak one first: references=['WEAK', 'STRONG']"
                )
        self.sums = np.zeros((2, len(self.names)))  # A_c and G_c

    # ---- the common coefficient ----

    def moved(self, slots: np.ndarray, rates: np.ndarray) -> float | None:
        """mu~_t with a batch (B,) of outcomes (B,); the first one starts the average."""
        if self.least_squares:
            now = capability_by_least_squares(rates, self.references[slots], least_gap=self.least_gap)
        else:
            weak, strong = self.references[slots].mean(axis=0)
            now = capability(float(rates.mean()), float(weak), float(strong), least_gap=self.least_gap)
        if now is None or self.capability is None:
            return self.capability if now is None else now
        return self.momentum * self.capability + (1.0 - self.momentum) * now

    # ---- those of the categories ----

    def moved_sums(self, slots: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """A_c and G_c with a batch, (2, C)."""
        weak, gap = self.references[slots, 0], self.references[slots, 1] - self.references[slots, 0]
        weight = gap if self.least_squares else np.ones(len(slots))
        of, n = self.codes[slots], len(self.names)
        news = [np.bincount(of, weights=weight * part, minlength=n) for part in (rates - weak, gap)]
        here = np.bincount(of, minlength=n) > 0
        return np.asarray(np.where(here, self.momentum, 1.0) * self.sums + news)

    def by_category(self, common: float, sums: np.ndarray) -> np.ndarray:
        """The coefficient of each category, (C,)."""
        above, gap = sums
        found = shrunk_capability(above, gap, common, borrowed=self.borrowed, mean_gap=self.mean_gap)
        return np.where(gap > -0.5 * self.borrowed * self.mean_gap, found, common)

    # ---- the protocol ----

    def _implied(self, common: float | None, sums: np.ndarray, slots: np.ndarray | slice) -> np.ndarray | None:
        if common is None:
            return None
        if not self.names:
            return interpolate(common, self.references[slots])
        return interpolate(self.by_category(common, sums)[self.codes[slots]], self.references[slots])

    def rates(self, slots: np.ndarray, rates: np.ndarray) -> np.ndarray | None:
        sums = self.moved_sums(slots, rates) if self.names else self.sums
        return self._implied(self.moved(slots, rates), sums, slice(None))

    def before(self, slots: np.ndarray) -> np.ndarray | None:
        return self._implied(self.capability, self.sums, slots)

    def settle(self, slots: np.ndarray, rates: np.ndarray, count: np.ndarray) -> None:
        if self.names:
            self.sums = self.moved_sums(slots, rates)
        self.capability = self.moved(slots, rates)

    def metrics(self) -> dict[str, float]:
        if self.capability is None:
            return {}
        found = self.by_category(self.capability, self.sums).tolist() if self.names else []
        own = {f"capability/{name}": value for name, value in zip(self.names, found, strict=True)}
        return {"capability": self.capability, **own}

    def state_dict(self) -> dict[str, Any]:
        own = {"categories": dict(zip(self.names, self.sums.T.tolist(), strict=True))} if self.names else {}
        return {"capability": self.capability, **own}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        saved, categories = state["capability"], state.get("categories", {})
        self.capability = None if saved is None else float(saved)
        self.sums = np.array([categories.get(name, (0.0, 0.0)) for name in self.names], dtype=float).reshape(-1, 2).T
