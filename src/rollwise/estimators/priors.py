"""A prior for each prompt: alpha_0^k and beta_0^k of BOTS, table 5, for any conjugate family."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from rollwise.errors import ConfigError
from rollwise.estimators.conjugate import Conjugate
from rollwise.estimators.references import References, reference_rates
from rollwise.pool import PromptPool

_STRENGTH = 4.0  # rollouts that a prompt's own prior stands for, besides the family's
_REMEDY = "add it, or give one prior for all, as in prior=[1, 1]"


def prior_from_rates(belief: Conjugate, rates: np.ndarray, strength: float) -> list[np.ndarray]:
    """The family's own prior and `strength` pseudo-rollouts of mean scores `rates` (N,): P arrays (N,).

    >>> from rollwise.estimators.conjugate import BetaBelief
    >>> [p.tolist() for p in prior_from_rates(BetaBelief(), np.array([0.25, 1.0]), 4.0)]      # 1 + 4 * 0.25, ...
    [[2.0, 5.0], [4.0, 1.0]]
    """
    pseudo = belief.implied_statistics(rates, strength)
    return [np.asarray(prior + more) for prior, more in zip(belief.prior, pseudo, strict=True)]


Limits = tuple[float, float]


def difficulty_limits(pool: PromptPool) -> Limits:
    """The difficulties taken for pass rates of 1 and 0: 0 and 1, or the least and the greatest where some lie outside.

    Raises:
        MissingColumnError: the pool has no difficulties.

    >>> difficulty_limits(PromptPool(ids=["a", "b"], columns={"difficulty": [2.0, 5.0]}))
    (2.0, 5.0)
    """
    values = pool.require("difficulty", "prior='difficulty'", _REMEDY)
    low, high = float(values.min()), float(values.max())
    return (0.0, 1.0) if low >= 0.0 and high <= 1.0 else (low, high)


def prior_from_pool(
    belief: Conjugate, pool: PromptPool, source: str, *, strength: float, references: References, limits: Limits
) -> list[np.ndarray]:
    """The prior of every prompt from the pool's columns, P arrays (N,).

    Args:
        belief: the family.
        pool: with the columns; so a prior belongs to its prompt's id.
        source: "references": their mean pass rate; "difficulty": 1 - difficulty, between `limits`; else a column, of
            expected mean scores (N,), or of the family's own prior (N, A): alpha and beta, mu and sigma, or a count a
            level.
        strength: pseudo-rollouts that a rate stands for, on top of the family's own prior.
        references: which columns the references are; see `reference_rates`.
        limits: see `difficulty_limits`.

    Raises:
        MissingColumnError: the column is not there.
        ConfigError: it holds something else.
    """
    if source == "references":
        return prior_from_rates(belief, reference_rates(pool, references, "prior='references'").mean(axis=1), strength)
    values = pool.require(source, f"prior={source!r}", _REMEDY)
    if values.ndim == 2 and values.dtype.kind in "iuf":
        return belief.natural(values.astype(np.float64), f"column {source!r}")
    if source == "difficulty":
        low, high = limits
        return prior_from_rates(belief, 1.0 - np.clip((values - low) / max(high - low, 1e-12), 0.0, 1.0), strength)
    if values.dtype.kind not in "iuf" or values.ndim != 1 or values.min() < 0.0 or values.max() > 1.0:
        raise ConfigError(f"prior={source!r}: the column must hold pass rates in [0, 1], or a prior for each prompt")
    return prior_from_rates(belief, values.astype(np.float64), strength)


class Priors:
    """The option `prior`: one for all prompts, which the family takes, or by the name of a column one for each.

    Args:
        prior: the family's own, or "references", "difficulty" or a column; see `prior_from_pool`.
        strength: pseudo-rollouts that a rate stands for; None: 4.
        references: which columns the references are.

    Raises:
        ConfigError: a strength, and one prior for all.
    """

    def __init__(self, prior: tuple[float, ...] | str | None, strength: float | None, references: References) -> None:
        self.column = prior if isinstance(prior, str) else None
        self.common = None if isinstance(prior, str) else prior
        if strength is not None and self.column is None:
            raise ConfigError(
                f"prior_strength is of a prior for each prompt, as prior='difficulty', got prior={prior!r}"
            )
        self.strength, self.references = _STRENGTH if strength is None else strength, references
        self.limits: Limits = (0.0, 1.0)

    def bound(self, pool: PromptPool) -> Self:
        """The same for this pool, by whose difficulties a difficulty is read."""
        made = copy.copy(self)
        if self.column == "difficulty":
            made.limits = difficulty_limits(pool)
        return made

    def begin(self, belief: Conjugate, pool: PromptPool, slots: np.ndarray) -> None:
        """Each prompt's own prior, if it has one; the beliefs of `slots` are that alone."""
        if self.column is None:
            return
        priors = prior_from_pool(
            *(belief, pool, self.column), strength=self.strength, references=self.references, limits=self.limits
        )
        belief.begin_with(priors, slots)

    def state_dict(self) -> dict[str, Any]:
        """The limits, by which prompts that are added later are read as well."""
        return {"difficulty_limits": list(self.limits)} if self.column == "difficulty" else {}

    def load(self, state: Mapping[str, Any], belief: Conjugate, pool: PromptPool, added: np.ndarray) -> None:
        """Take back `state_dict`; the slots `added` have joined the pool since."""
        if self.column == "difficulty" and "difficulty_limits" in state:
            low, high = state["difficulty_limits"]
            self.limits = (float(low), float(high))
            self.begin(belief, pool, added)
