"""Student's t with a whole number of degrees of freedom, and the power of the paired t test. Needs numpy alone."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from rollwise.evaluation.bootstrap import LEVEL, FloatArray, Interval

# The power that a number of seeds is asked for.
POWER = 0.8
# More seeds than this are not counted.
MOST_SEEDS = 1000
_BISECTIONS = 60
_CELLS = 1000


def t_within(t: ArrayLike, df: int) -> FloatArray:
    """P(|T| < t) for t >= 0, of any shape; exact (Abramowitz and Stegun 26.7.3 for odd, 26.7.4 for even df).

    >>> t_within([1.0, 12.706], 1).round(4).tolist()
    [0.5, 0.95]
    """
    angle = np.arctan(np.asarray(t, dtype=np.float64) / math.sqrt(df))
    square = np.cos(angle) ** 2
    odd = df % 2
    term, total = (np.cos(angle) if odd else np.ones_like(square)), np.zeros_like(square)
    for k in range(1, df // 2 + 1):
        total = total + term
        term = term * square * ((2 * k) / (2 * k + 1) if odd else (2 * k - 1) / (2 * k))
    return np.asarray(2 / math.pi * (angle + np.sin(angle) * total) if odd else np.sin(angle) * total)


@functools.lru_cache
def t_quantile(level: float, df: int) -> float:
    """The t with P(|T| < t) = `level`, by bisection.

    >>> round(t_quantile(0.95, 4), 3)
    2.776
    """
    high = 2.0
    while t_within(high, df) < level:
        high *= 2
    return _bisect(lambda t: float(t_within(t, df)) - level, high)


def t_interval(mean: float, sd: float, n: int) -> Interval | None:
    """The 95 % t interval of the mean of n paired differences with deviation `sd`; None for fewer than 2."""
    if n < 2:
        return None
    half = t_quantile(LEVEL, n - 1) * sd / math.sqrt(n)
    return Interval(mean - half, mean + half)


def paired_p(mean: ArrayLike, sd: ArrayLike, n: int) -> FloatArray:
    """Two-sided p of the paired t test of n differences, elementwise; NaN for fewer than 2, and for 0 ± 0."""
    if n < 2:
        return np.full(np.shape(mean), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(1 - t_within(np.abs(mean) * math.sqrt(n) / np.asarray(sd), n - 1))


def holm(p: ArrayLike, tests: int) -> FloatArray:
    """Holm's adjusted p of some of `tests` hypotheses, (M,): those below 0.05 err in at most 5 % of all families.

    Holm, A simple sequentially rejective multiple test procedure (1979). NaN, a test that was not made, stays NaN and
    counts.

    >>> holm([0.04, 0.01, 0.02], 3).tolist()
    [0.04, 0.03, 0.04]
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values)
    steps = np.minimum(1.0, values[order] * (tests - np.arange(len(values))))
    adjusted = np.empty(len(values))
    adjusted[order] = np.maximum.accumulate(steps)
    return adjusted


def paired_power(effect: float, n: int, alpha: float = 1 - LEVEL) -> float:
    """The chance that a two-sided paired t test of n >= 2 seeds finds a true difference of `effect` deviations.

    The test's t is (Z + effect sqrt(n)) / S, with Z standard normal and S the estimated deviation over the true one:
    the chance given S, averaged over the density of S.

    >>> round(paired_power(1.0, 5), 2), round(paired_power(1.0, 10), 2)
    (0.4, 0.8)
    """
    df = n - 1
    critical, shift = t_quantile(1 - alpha, df), effect * math.sqrt(n)
    spread = (np.arange(_CELLS) + 0.5) / _CELLS * (1 + 10 / math.sqrt(2 * df))
    log_density = (df - 1) * np.log(spread) - df * spread**2 / 2
    weight = np.exp(log_density - log_density.max())
    found = [_normal(shift - critical * s) + _normal(-shift - critical * s) for s in spread.tolist()]
    return float(weight @ np.array(found) / weight.sum())


def seeds_needed(effect: float, alpha: float = 1 - LEVEL) -> int | None:
    """The fewest seeds, 2 or more, with which the paired t test has `POWER`; None for more than `MOST_SEEDS`.

    >>> seeds_needed(1.0), seeds_needed(0.5)
    (10, 34)
    """
    if effect <= 0:
        return None
    normal = NormalDist()
    about = ((normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(POWER)) / effect) ** 2  # too few, as t has heavier tails
    if about > MOST_SEEDS:
        return None
    n = max(2, math.floor(about))
    while paired_power(effect, n, alpha) < POWER:
        n += 1
    return n if n <= MOST_SEEDS else None


@functools.lru_cache
def effect_found(n: int, alpha: float = 1 - LEVEL) -> float:
    """The true difference, in deviations, that n >= 2 seeds find with `POWER`.

    >>> round(effect_found(10), 2)
    1.0
    """
    high = 1.0
    while paired_power(high, n, alpha) < POWER:
        high *= 2
    return _bisect(lambda effect: paired_power(effect, n, alpha) - POWER, high, bisections=20)


def _bisect(f: Callable[[float], float], high: float, bisections: int = _BISECTIONS) -> float:
    """Where the rising f has its zero in [0, high]."""
    low = 0.0
    for _ in range(bisections):
        middle = (low + high) / 2
        low, high = (middle, high) if f(middle) < 0 else (low, middle)
    return (low + high) / 2


def _normal(z: float) -> float:
    """P(Z < z)."""
    return math.erfc(-z / math.sqrt(2)) / 2
