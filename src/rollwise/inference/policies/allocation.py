"""Adaptive K: a fixed average number of candidates, more of them for prompts that look hard. numpy alone.

Source: `frontier-and-zip-rc-lite`, section 3.2 and appendices A.3 and B.7. The paper ranks prompts by V(x) in 3.2 and
by `value_q25`, the value a quarter of the way through, in B.7. The latter needs the final length, which nobody knows
while decoding. We rank by V(x), which costs nothing; who wants a later look takes `probe_values` at a fixed token, and
pays for its tokens.
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


def probe_values(values: Sequence[Sequence[FloatArray]], step: int, *, count: int = 1) -> tuple[FloatArray, IntArray]:
    """What the first candidates' values say after `step` tokens, and the tokens that it took to see them.

    Give the first as `values` to `allocate`. The tokens are part of the candidates' own where the prompt gets as many
    as were probed (`low` >= `count`); else they come on top (`probe_overhead`).

    Args:
        values: For each of N prompts, for each of its candidates the (T,) values at the positions of its tokens.
        step: Tokens after which to look; of a shorter candidate its last value counts.
        count: Candidates of each prompt that are looked at.

    Returns:
        (N,) mean values and (N,) tokens.

    >>> probe_values([[np.array([0.5, 0.25, 0.75])], [np.array([0.5])]], 2)
    (array([0.25, 0.5 ]), array([2, 1]))
    """
    check_whole("step", step, least=1)
    check_whole("count", count, least=1)
    looked = [[track[:step] for track in prompt[:count] if len(track)] for prompt in values]
    if not all(looked):
        raise ConfigError("a prompt has no candidate with a value to probe")
    seen = np.array([np.mean([track[-1] for track in prompt]) for prompt in looked])
    return seen, np.array([sum(map(len, prompt)) for prompt in looked], dtype=np.int64)


def probe_overhead(lengths: Sequence[Sequence[int]], shares: ArrayLike, step: int, *, count: int = 1) -> IntArray:
    """(N,) tokens of probes that are no part of the candidates that their prompt then got.

    Args:
        lengths: For each of N prompts its candidates' tokens.
        shares: (N,) candidates that each prompt got.
        step: As for `probe_values`.
        count: As for `probe_values`.

    >>> probe_overhead([[9, 3, 9], [9, 9, 9]], [1, 3], step=4, count=3)
    array([7, 0])
    """
    got = np.asarray(shares, dtype=np.int64)
    beyond = [sum(min(n, step) for n in prompt[k:count]) for prompt, k in zip(lengths, got.tolist(), strict=True)]
    return np.array(beyond, dtype=np.int64)
