"""A prior for each prompt: alpha_0^k and beta_0^k of BOTS, table 5, for any conjugate family."""

from __future__ import annotations

import numpy as np

from rollwise.errors import ConfigError
from rollwise.estimators.conjugate import Conjugate
from rollwise.estimators.references import References, reference_rates
from rollwise.pool import PromptPool


def prior_from_rates(belief: Conjugate, rates: np.ndarray, strength: float) -> list[np.ndarray]:
    """The family's own prior and `strength` pseudo-rollouts of mean scores `rates` (N,): P arrays (N,).

    >>> from rollwise.estimators.conjugate import BetaBelief
    >>> [p.tolist() for p in prior_from_rates(BetaBelief(), np.array([0.25, 1.0]), 4.0)]      # 1 + 4 * 0.25, ...
    [[2.0, 5.0], [4.0, 1.0]]
    """
    pseudo = belief.implied_statistics(rates, strength)
    return [np.asarray(prior + more) for prior, more in zip(belief.prior, pseudo, strict=True)]


def prior_from_pool(
    belief: Conjugate, pool: PromptPool, source: str, *, strength: float, references: References
) -> list[np.ndarray]:
    """The prior of every prompt from the pool's columns, P arrays (N,).

    Args:
        belief: the family.
        pool: with the columns; so a prior belongs to its prompt's id.
        source: "references": their mean pass rate; "difficulty": 1 - difficulty; else a column, of expected mean
            scores (N,), or of the family's own prior (N, A): alpha and beta, mu and sigma, or a count a level.
        strength: pseudo-rollouts that a rate stands for, on top of the family's own prior.
        references: which columns the references are; see `reference_rates`.

    Raises:
        MissingColumnError: the column is not there.
        ConfigError: it holds something else.
    """
    if source == "references":
        return prior_from_rates(belief, reference_rates(pool, references, "prior='references'").mean(axis=1), strength)
    values = pool.require(source, f"prior={source!r}", "add it, or give one prior for all, as in prior=[1, 1]")
    if values.ndim == 2 and values.dtype.kind in "iuf" and source != "difficulty":
        return belief.natural(values.astype(np.float64), f"column {source!r}")
    if values.dtype.kind not in "iuf" or values.ndim != 1 or not (values.min() >= 0.0 and values.max() <= 1.0):
        other = ", as pass rate is taken as 1 - difficulty; give a column of pass rates: prior='COLUMN'"
        raise ConfigError(
            f"prior={source!r}: the column must hold numbers in [0, 1]" + (other if source == "difficulty" else "")
        )
    return prior_from_rates(belief, 1.0 - values if source == "difficulty" else values.astype(np.float64), strength)
