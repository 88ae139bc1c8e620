"""Whether aborting doomed rollouts by roulette would pay: measured on logged rollouts, before anything is aborted.

Roulette buys fewer tokens with a noisier gradient. What it costs to reach the same precision is the product of both,
against 1 for running everything to its end:

    (1 - rho + rho/c) (1 - tau + tau c)

tau: the doomed suffixes' share of all tokens. rho: their share of the gradient's variance; what V misses counts into it
too, through the prefixes and the others' baselines, so a head that is often wrong shuts the gate. The product is convex
in c and 1 at c = 1, so it falls below 1 exactly where rho < tau: doomed suffixes have to be long *and* say little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollwise.checks import check_number, check_whole
from rollwise.errors import ConfigError, RewardError
from rollwise.inference.roulette import Roulette
from rollwise.rng import stream_generator

FloatArray = NDArray[np.float64]

LEVEL = 0.95


@dataclass(frozen=True)
class GroupShares:
    """What each group of logged rollouts adds to rho and tau.

    Attributes:
        noise: (G,) variance that a unit of 1/c - 1 adds; rho's numerator.
        variance: (G,) of the gradient when nothing is aborted; rho's denominator.
        saved: (G,) tokens of doomed suffixes; tau's numerator.
        tokens: (G,) all; tau's denominator.
        doomed: (G,) number of doomed rollouts.
        rescued: (G,) sum of the rewards they went on to earn.
    """

    noise: FloatArray
    variance: FloatArray
    saved: FloatArray
    tokens: FloatArray
    doomed: FloatArray
    rescued: FloatArray


@dataclass(frozen=True)
class RouletteGate:
    """What the gate measured, and what it says.

    Attributes:
        rho: Doomed suffixes' share of the gradient's variance.
        tau: Their share of the tokens.
        chance: The best c, not below the least one allowed, 1 where roulette can't pay; or the one that was given.
        factor: Variance times tokens at that c, against 1 without roulette.
        low: Lower end of its 95 % bootstrap interval over prompts.
        high: Upper end.
        doomed: Share of rollouts that the roulette would meet.
        rescued: Mean reward of those in the log; NaN where there were none.
    """

    rho: float
    tau: float
    chance: float
    factor: float
    low: float
    high: float
    doomed: float
    rescued: float

    @property
    def pays(self) -> bool:
        """Whether the whole interval lies below 1."""
        return self.high < 1


def variance_factor(rho: float, chance: float) -> float:
    """1 - rho + rho/c: the gradient's variance under roulette, against 1.

    >>> variance_factor(0.5, 0.5)
    1.5
    """
    return 1 - rho + rho / chance


def token_factor(tau: float, chance: float) -> float:
    """1 - tau + tau c: the tokens under roulette, against 1.

    >>> token_factor(0.5, 0.5)
    0.75
    """
    return 1 - tau + tau * chance


def cost_factor(rho: float, tau: float, chance: float) -> float:
    """Variance times tokens under roulette, against 1: below 1 it pays."""
    return variance_factor(rho, chance) * token_factor(tau, chance)


def best_chance(rho: float, tau: float, *, least: float = 0.1) -> float:
    """The c in [least, 1] with the least `cost_factor`: sqrt(rho (1 - tau) / ((1 - rho) tau)), and 1 if rho >= tau.

    The factor is const + (1 - rho) tau c + rho (1 - tau)/c, whose derivative is 0 there.

    Raises:
        ConfigError: an argument is out of its range.

    >>> round(best_chance(0.2, 0.5), 12)
    0.5
    """
    check_number("rho", rho, low=0.0, high=math.inf)
    check_number("tau", tau, low=0.0, high=1.0)
    check_number("least", least, low=0.0, high=1.0, open_low=True)
    if rho >= tau:
        return 1.0
    return max(least, math.sqrt(rho * (1 - tau) / ((1 - rho) * tau)))


def group_shares(
    rewards: ArrayLike,
    tokens: ArrayLike,
    values: ArrayLike,
    roulette: Roulette,
    *,
    prefix_variance: ArrayLike | None = None,
    suffix_variance: ArrayLike | None = None,
) -> GroupShares:
    """Each group's parts of rho and tau, from rollouts that were all run to their end.

    With e = B/c - 1, whose variance is 1/c - 1, row i adds e_i times

        (r - V) [grad log pi(prefix_i) - the others' gradients / (K - 1)] + (r - b) grad log pi(suffix_i)

    to the gradient: its own two parts, and the others' baselines. Squared norms of it are rho's numerator. Where no
    gradients are at hand, a part of n tokens is taken to have a squared norm of n: the score terms of a rollout's
    tokens are uncorrelated, and the stand-in takes them to be equally large. Products between the parts are left out,
    as are those between two doomed rows of a group, of order (1/c - 1)^2 / (K - 1)^2.

    Args:
        rewards: (G, K).
        tokens: (G, K) generated in each rollout.
        values: (G, K) V at the abort point; anything where the rollout ended before.
        roulette: The abort point and the threshold; its chance is not used.
        prefix_variance: (G, K) squared norm of grad log pi(prefix), where it was measured.
        suffix_variance: (G, K) the same of the suffix.

    Raises:
        ConfigError: the shapes differ or are no groups of at least 2; or one of the variances is given alone.
        RewardError: a reward, a token count, or a doomed rollout's value is missing.
    """
    r, n, v = (np.asarray(x, dtype=np.float64) for x in (rewards, tokens, values))
    if r.ndim != 2 or r.shape[1] < 2 or not r.shape == n.shape == v.shape:
        raise ConfigError(
            f"rewards, tokens and values must be (groups, at least 2), got {r.shape}, {n.shape}, {v.shape}"
        )
    if (prefix_variance is None) != (suffix_variance is None):
        raise ConfigError("give prefix_variance and suffix_variance both, or neither")
    alive = n > roulette.at
    if not (np.isfinite(r).all() and np.isfinite(n).all() and np.isfinite(v[alive]).all()):
        raise RewardError(
            "logged rollouts must have rewards, token counts, and values where they reach the abort point"
        )
    doomed = alive & (v < roulette.threshold)
    prefix = np.minimum(n, roulette.at) if prefix_variance is None else np.asarray(prefix_variance, dtype=np.float64)
    suffix = n - prefix if suffix_variance is None else np.asarray(suffix_variance, dtype=np.float64)
    others = r.shape[1] - 1
    advantage2 = (r - (r.sum(axis=1, keepdims=True) - r) / others) ** 2
    missed2 = np.where(doomed, r - v, 0.0) ** 2
    whole = prefix + suffix
    noise = missed2 * (prefix + (whole.sum(axis=1, keepdims=True) - whole) / others**2) + doomed * advantage2 * suffix
    return GroupShares(
        noise=noise.sum(axis=1),
        variance=(advantage2 * whole).sum(axis=1),
        saved=np.where(doomed, n - roulette.at, 0.0).sum(axis=1),
        tokens=n.sum(axis=1),
        doomed=doomed.sum(axis=1).astype(np.float64),
        rescued=np.where(doomed, r, 0.0).sum(axis=1),
    )


def measure_gate(
    rewards: ArrayLike,
    tokens: ArrayLike,
    values: ArrayLike,
    *,
    at: int,
    threshold: float = 0.5,
    least: float = 0.1,
    chance: float | None = None,
    prefix_variance: ArrayLike | None = None,
    suffix_variance: ArrayLike | None = None,
    resamples: int = 1000,
    seed: int = 0,
) -> RouletteGate:
    """Whether roulette at token `at` would have paid on these rollouts, and with which chance.

    The interval comes from drawing prompts with replacement at the chosen c. A head that was fitted on the same
    rollouts flatters it: measure on others.

    Args:
        rewards: (G, K), as in `group_shares`, and so the others.
        tokens: (G, K).
        values: (G, K).
        at: The abort point, in tokens.
        threshold: Rollouts of a lower value are doomed.
        least: Least chance to go on that is allowed.
        chance: The chance that is in use, to be judged in place of the best one.
        prefix_variance: (G, K), optional.
        suffix_variance: (G, K), optional.
        resamples: Of the bootstrap.
        seed: Of the bootstrap.

    Raises:
        ConfigError: an option is out of its range, or the shapes don't fit.
        RewardError: something is missing, or no group's rewards differ, so that there is no gradient.
    """
    check_whole("resamples", resamples, least=1)
    roulette = Roulette(at=at, threshold=threshold, chance=1.0 if chance is None else chance)
    shares = group_shares(
        rewards, tokens, values, roulette, prefix_variance=prefix_variance, suffix_variance=suffix_variance
    )
    if not shares.variance.sum() > 0:
        raise RewardError("no group's rewards differ, so there is no gradient to measure; log groups that are mixed")
    groups = len(shares.tokens)
    rho = float(shares.noise.sum() / shares.variance.sum())
    tau = float(shares.saved.sum() / shares.tokens.sum())
    if chance is None:
        chance = best_chance(rho, tau, least=least)
    weights = stream_generator(seed, "roulette/bootstrap").multinomial(groups, np.full(groups, 1 / groups), resamples)
    variance = weights @ shares.variance
    # A resample without any gradient speaks for nothing: it counts against.
    rhos = np.divide(weights @ shares.noise, variance, out=np.full(resamples, np.inf), where=variance > 0)
    taus = (weights @ shares.saved) / (weights @ shares.tokens)
    factors = np.ones(resamples) if chance == 1 else (1 + rhos * (1 / chance - 1)) * (1 - taus * (1 - chance))
    doomed = float(shares.doomed.sum())
    return RouletteGate(
        rho=rho,
        tau=tau,
        chance=chance,
        factor=cost_factor(rho, tau, chance),
        low=float(np.quantile(factors, (1 - LEVEL) / 2, method="lower")),
        high=float(np.quantile(factors, (1 + LEVEL) / 2, method="higher")),
        doomed=doomed / np.asarray(rewards).size,
        rescued=float(shares.rescued.sum()) / doomed if doomed else math.nan,
    )
