"""The numbers of a profile, as pure functions of what was rolled out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rollwise.runs.solved import SAME_REWARD

Z95 = 1.959963984540054
"""The 97.5 % point of the normal distribution: intervals of 95 %."""


@dataclass(frozen=True)
class Share:
    """A share of the prompts, with its 95 % interval.

    Attributes:
        count: How many of the sampled prompts.
        share: Their share of the sample.
        low: Lower end for all prompts of the data.
        high: Upper end.
    """

    count: int
    share: float
    low: float
    high: float


def wilson(count: float, n: int, *, population: int | None = None, z: float = Z95) -> tuple[float, float]:
    """Wilson's interval of a share of which `count` of `n` were found; Wilson 1927.

    centre = (p + z^2 / 2n) / (1 + z^2 / n),   half = z / (1 + z^2 / n) sqrt(p (1 - p) / n + z^2 / 4n^2)

    Drawn without replacement from `population` prompts, the variance shrinks by (N - n) / (N - 1), as if
    n (N - 1) / (N - n) had been drawn (Cochran, *Sampling Techniques*, section 2.6); with all of them drawn, the share
    is known.

    Raises:
        ValueError: `n` is less than 1.

    >>> [round(end, 4) for end in wilson(5, 10)]
    [0.2366, 0.7634]
    >>> wilson(5, 10, population=10)
    (0.5, 0.5)
    """
    if n < 1:
        raise ValueError(f"a share needs at least one observation, got n={n}")
    p = count / n
    if population is not None and population <= n:
        return p, p
    effective = n if population is None else n * (population - 1) / (population - n)
    square = z * z / effective
    centre = (p + square / 2) / (1 + square)
    half = z / (1 + square) * math.sqrt(p * (1 - p) / effective + square / (4 * effective))
    return max(0.0, centre - half), min(1.0, centre + half)


def share_of(found: np.ndarray, population: int) -> Share:
    """The share of True in (S,) and its interval for a population.

    >>> share_of(np.array([True, False]), 2)
    Share(count=1, share=0.5, low=0.5, high=0.5)
    """
    low, high = wilson(int(found.sum()), len(found), population=population)
    return Share(int(found.sum()), float(found.mean()), low, high)


def mean_interval(values: np.ndarray, population: int, z: float = Z95) -> tuple[float, float]:
    """The mean of (S,) in [0, 1] plus and minus z standard errors, with the finite population's factor; in [0, 1] too.

    Where all are alike, or there is one, their spread says nothing of the others: there it is Wilson's interval, which
    is wide enough for any values in [0, 1].

    >>> mean_interval(np.array([0.0, 1.0]), 2)
    (0.5, 0.5)
    >>> [round(end, 3) for end in mean_interval(np.zeros(10), 1000)]
    [0.0, 0.276]
    """
    mean, n = float(values.mean()), len(values)
    if n >= population:
        return mean, mean
    if np.ptp(values) == 0:
        return wilson(n * mean, n, population=population, z=z)
    half = z * float(values.std(ddof=1)) * math.sqrt((1 - n / population) / n)
    return max(0.0, mean - half), min(1.0, mean + half)


def pass_rates(solved: Sequence[Sequence[bool | None]]) -> np.ndarray:
    """The share of solved rollouts of each prompt (S,), of those that were scored; NaN where none was.

    >>> pass_rates([[True, False], [None, True], [None, None]]).tolist()
    [0.5, 1.0, nan]
    """
    scored = [[value for value in group if value is not None] for group in solved]
    return np.array([sum(group) / len(group) if group else np.nan for group in scored])


def histogram(rates: np.ndarray, rollouts: int) -> np.ndarray:
    """How many of the rates (S,) are nearest to 0, 1/n, ..., 1, (n + 1,) for n rollouts.

    >>> histogram(np.array([0.0, 0.5, 0.5, 1.0]), 2).tolist()
    [1, 2, 1]
    """
    return np.bincount(np.rint(rates * rollouts).astype(np.int64), minlength=rollouts + 1)


def effective_share(rate: float, group: int) -> float:
    """1 - p^G - (1 - p)^G: the probability that a group of G rollouts has both outcomes.

    >>> effective_share(0.5, 2), effective_share(0.0, 8)
    (0.5, 0.0)
    """
    return 1.0 - rate**group - (1.0 - rate) ** group


def contrast(rewards: Sequence[float], group: int, *, tolerance: float = SAME_REWARD) -> float:
    """The chance that G of n >= G measured rewards, drawn without replacement, are not all alike.

    1 - sum over the distinct rewards v of C(n_v, G) / C(n, G): for any rewards, graded ones too, an unbiased estimate
    of the chance that a group of G has contrast (a U-statistic, Hoeffding 1948; pass@k's estimator, for two kinds of
    failure).

    Raises:
        ValueError: fewer rewards than G.

    >>> contrast([1, 1, 0, 0], 2)                                               # pairs that differ: 4 of 6
    0.6666666666666667
    """
    n = len(rewards)
    if n < group:
        raise ValueError(f"a group of {group} can't be drawn from {n} rewards")
    ordered = np.sort(np.asarray(rewards, dtype=np.float64))
    sizes = np.diff(np.concatenate([[0], np.flatnonzero(np.diff(ordered) > tolerance) + 1, [n]]))
    alike = sum(math.comb(int(size), group) for size in sizes)
    return 1 - alike / math.comb(n, group)


# ---- the distribution of true pass rates ----

GRID = np.concatenate([[0.0], np.linspace(0.005, 0.995, 100), [1.0]])
"""Pass rates that the fit gives weight to."""

EM_STEPS = 1000
"""Steps of the fit from equal weights: enough for its interval to cover (docs/profile.md), short of a few spikes."""


def outcomes_of(solved: Sequence[Sequence[bool | None]]) -> tuple[np.ndarray, np.ndarray]:
    """The different outcomes of prompts (R, 2), solved and scored rollouts, and how many prompts had each (R,).

    >>> [part.tolist() for part in outcomes_of([[True, False], [False, True], [None, True]])]
    [[[1, 1], [1, 2]], [1, 2]]
    """
    scored = [[value for value in group if value is not None] for group in solved]
    pairs = np.array([(sum(group), len(group)) for group in scored], dtype=np.int64).reshape(-1, 2)
    outcomes, counts = np.unique(pairs, axis=0, return_counts=True)
    return outcomes, counts


def fit_pass_rates(
    counts: np.ndarray, grid: np.ndarray = GRID, steps: int = EM_STEPS, *, outcomes: np.ndarray | None = None
) -> np.ndarray:
    """Weights (len(grid),) of true pass rates that make observed success counts likely.

    The maximum-likelihood mixture of binomials over a grid (Kiefer and Wolfowitz 1956) by expectation-maximisation:

        w_p <- w_p sum_k (f_k / m_k) B(k; n, p),   m_k = sum_p w_p B(k; n, p),   f_k = counts_k / sum(counts)

    Args:
        counts: (n + 1,) how many prompts had k = 0 .. n of n rollouts solved; or (n + 1, B) for B samples at once,
            which gives weights (len(grid), B).
        grid: Pass rates.
        steps: Of the iteration, from equal weights.
        outcomes: (R, 2) the solved and scored rollouts that each of R counts is of, where some could not be scored;
            by default k = 0 .. n of n.

    >>> fit_pass_rates(np.array([1, 0, 1]), np.array([0.0, 0.5, 1.0]), steps=1).round(3).tolist()
    [0.4, 0.2, 0.4]
    """
    if outcomes is None:
        outcomes = np.array([(k, len(counts) - 1) for k in range(len(counts))])
    k, n = outcomes[:, :1], outcomes[:, 1:]
    choose = np.array([math.comb(int(m), int(i)) for i, m in outcomes], dtype=np.float64)[:, None]
    likelihood = choose * grid**k * (1.0 - grid) ** (n - k)
    frequency = counts / counts.sum(axis=0)
    weights = np.full((len(grid), *counts.shape[1:]), 1.0 / len(grid))
    for _ in range(steps):
        ratio = np.divide(frequency, likelihood @ weights, out=np.zeros_like(frequency), where=frequency > 0)
        weights = weights * (likelihood.T @ ratio)
    return np.asarray(weights)


@dataclass(frozen=True)
class TrueShares:
    """What is estimated of true pass rates p, beyond the luck of n rollouts.

    Attributes:
        hopeless: Share of prompts with p < 0.01.
        solved: Share with p > 0.99.
        effective: Mean of 1 - p^G - (1 - p)^G: the effective task ratio of uniform sampling with groups of G.
    """

    hopeless: float
    solved: float
    effective: float


def true_shares(weights: np.ndarray, group: int, grid: np.ndarray = GRID) -> TrueShares:
    """Of a distribution (len(grid),) of pass rates over a grid.

    >>> true_shares(np.array([0.25, 0.5, 0.25]), 2, np.array([0.0, 0.5, 1.0]))  # half of the prompts at 1/2: 0.5 * 0.5
    TrueShares(hopeless=0.25, solved=0.25, effective=0.25)
    """
    effective = np.array([effective_share(rate, group) for rate in grid])
    return TrueShares(
        hopeless=float(weights[grid < 0.01].sum()),
        solved=float(weights[grid > 0.99].sum()),
        effective=float(weights @ effective),
    )


def bootstrap_shares(
    counts: np.ndarray, group: int, *, seed: int, times: int = 200, outcomes: np.ndarray | None = None
) -> np.ndarray:
    """The 2.5 % and 97.5 % points (2, 3) of hopeless, solved, effective, by fitting resampled counts anew.

    `counts` and `outcomes` are those of `fit_pass_rates`.
    Prompts are resampled as from an endless population, so the interval is a little wide where most were rolled out.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    total = int(counts.sum())
    resampled = np.stack([rng.multinomial(total, counts / total) for _ in range(times)], axis=1)
    fitted = [true_shares(weights, group) for weights in fit_pass_rates(resampled, outcomes=outcomes).T]
    numbers = np.array([(f.hopeless, f.solved, f.effective) for f in fitted])
    return np.asarray(np.quantile(numbers, [0.025, 0.975], axis=0))
