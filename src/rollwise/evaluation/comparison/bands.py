"""A band for a whole curve of differences: it holds the true curve everywhere at once, not at one place only."""

from __future__ import annotations

import numpy as np

from rollwise.evaluation.bootstrap import FEWEST_SEEDS, LEVEL, FloatArray
from rollwise.evaluation.comparison.mean_curves import GapBand

# Places of a band, and draws for its width.
PLACES = 41
DRAWS = 2000


def gap_band(x: FloatArray, gaps: FloatArray, *, seed: int, draws: int = DRAWS) -> GapBand:
    """The mean of n seeds' paired differences along a budget, with a 95 % band.

    The band is mean ± c sd / sqrt(n) at each place. The factor c is the 95 % quantile of the greatest |t| over all
    places, in samples of n curves drawn from the normal process with the differences' own covariance. With one place it
    is the t interval. Of few seeds the covariance is known badly, so the band holds the whole curve less often than
    95 %. No band for fewer than three seeds.

    Args:
        x: (G,), the places.
        gaps: (n, G), each seed's difference there.
        seed: Of the draws.
        draws: How many samples.
    """
    n = len(gaps)
    mean = gaps.mean(axis=0)
    if n < FEWEST_SEEDS:
        return GapBand(tuple(x.tolist()), tuple(mean.tolist()), (), ())
    half = _factor(gaps - mean, seed, draws) * gaps.std(axis=0, ddof=1) / np.sqrt(n)
    low, high = (mean - half).tolist(), (mean + half).tolist()
    return GapBand(tuple(x.tolist()), tuple(mean.tolist()), tuple(low), tuple(high))


def _factor(centred: FloatArray, seed: int, draws: int) -> float:
    """The 95 % quantile of the greatest |t|; places where all seeds are equal have no t."""
    n = len(centred)
    moving = centred[:, centred.std(axis=0) > 0]
    if not moving.size:
        return 0.0
    weights = np.random.default_rng([seed, n]).standard_normal((draws, n, n))
    curves = weights @ moving  # not divided by sqrt(n - 1): t is the same at any scale
    t = curves.mean(axis=1) / (curves.std(axis=1, ddof=1) / np.sqrt(n))
    return float(np.quantile(np.abs(t).max(axis=1), LEVEL))
