"""Adaptive K: a fixed average number of candidates, more of them for prompts that look hard. numpy alone.

Source: `frontier-and-zip-rc-lite`, section 3.2 and appendices A.3 and B.7. The paper ranks prompts by V(x) in 3.2 and
by `value_q25`, the value a quarter of the way through, in B.7. The latter needs the final length, which nobody knows
while decoding. We rank by V(x), which costs nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from rollwise.errors import ConfigError
from rollwise.evaluation.calibration import mean_ranks
from rollwise.inference.policies.candidates import FloatArray, IntArray
from rollwise.options import check_number, check_whole


def allocate(
    values: ArrayLike, mean_k: float, low: int, high: int, *, ids: Sequence[str] | None = None, seed: int = 0
) -> IntArray:
    """How many candidates each prompt gets: (N,) whole numbers in [low, high] that sum to exactly N * mean_k.

    A prompt at percentile u of V(x) (0 for the hardest, equal values sharing theirs) gets low + (high - low)(1 - u)^a,
    with that a which keeps the budget; then the fractions are given to those with the largest ones. Never does a
    prompt get fewer than one with a higher value. Ranks, not values, as V(x) spans a narrow range (section 3.2).

    Args:
        values: (N,) V(x), or another estimate that is higher for easier prompts.
        mean_k: Candidates on average; N * mean_k must be whole, and mean_k within [low, high].
        low: Fewest for a prompt, at least 1.
        high: Most for a prompt.
        ids: (N,) by which prompts that are equal are told apart, whatever their order; their position unless given.
        seed: Of that.

    Raises:
        ConfigError: No such numbers exist, or a value is not finite.

    >>> allocate([0.9, 0.1, 0.5], 2, 1, 3).tolist()
    [1, 3, 2]
    """
    v = np.asarray(values, dtype=np.float64)
    check_whole("low", low, least=1)
    check_whole("high", high, least=low)
    check_number("mean_k", mean_k, low=low, high=high)
    if v.ndim != 1 or len(v) == 0 or not np.isfinite(v).all():
        raise ConfigError("values must be (N,) finite numbers of at least one prompt")
    total = len(v) * mean_k
    if abs(total - round(total)) > 1e-9:
        raise ConfigError(f"{len(v)} prompts times mean_k = {mean_k:g} is not a whole number of candidates")
    hardness = 1 - (mean_ranks(v) - 0.5) / len(v)
    exact = np.round(_with_budget(hardness, float(low), float(high), round(total)), 9)
    shares = np.floor(exact).astype(np.int64)
    names = [str(i) for i in range(len(v))] if ids is None else ids
    order = sorted(range(len(v)), key=lambda i: (shares[i] - exact[i], _hash(seed, names[i])))
    shares[order[: round(total) - int(shares.sum())]] += 1
    return shares


def _with_budget(hardness: FloatArray, low: float, high: float, total: int) -> FloatArray:
    """Shares low + (high - low) * hardness^a, with the a (by bisection over its logarithm) that keeps the budget."""
    below, above = -60.0, 60.0
    for _ in range(200):
        middle = (below + above) / 2
        with np.errstate(under="ignore"):
            found = low + (high - low) * hardness ** np.exp(middle)
        if found.sum() > total:
            below = middle
        else:
            above = middle
    return np.asarray(found)


def _hash(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed}:{name}".encode("utf-8", "surrogatepass")).digest()
