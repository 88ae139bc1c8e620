"""What can be said of a comparison's scores: verdicts, seeds needed, differences between any two methods, ranks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from rollwise.evaluation.bootstrap import (
    FEWEST_SEEDS,
    LEVEL,
    FloatArray,
    Interval,
    percentile_interval,
    resample_weights,
)
from rollwise.evaluation.comparison.estimates import (
    ENOUGH_SEEDS,
    Difference,
    Effect,
    Pair,
    Rank,
    SeedsNeeded,
    Statistics,
    Verdict,
)
from rollwise.evaluation.comparison.methods import Methods, paired_gaps
from rollwise.evaluation.comparison.student import effect_found, holm, seeds_needed

_NO_DEVIATION = 1e-9
"""Differences that vary by no more than this are all alike, as where nothing is solved, and plan nothing."""
_DIGITS = 12

# Differences in score whose seeds are counted where none is asked for.
WANTED = (0.02, 0.05, 0.1)


def statistics_of(work: Methods, ranked: Sequence[str], tests: int, wanted: Sequence[float] = WANTED) -> Statistics:
    """The statistics of the scores at the headline's budget.

    Args:
        work: What the methods' results are made from.
        ranked: The methods' names, in the comparison's order.
        tests: How many methods of the plan are compared with the baseline, the oracle left out.
        wanted: Differences from the baseline whose seeds are counted.
    """
    values = {name: work.values(name, "score", work.data.headline) for name in ranked}

    def differences(pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Difference]:
        found = {(one, other): paired_gaps(values[one], values[other]) for one, other in pairs}
        return {pair: work.difference(gaps, 1) for pair, gaps in found.items() if gaps.size}

    contenders = [(name, work.baseline) for name in ranked if name not in (work.baseline, work.oracle)]
    gains = {name: found for (name, _), found in differences(contenders).items()}
    kept = {name: own for name, own in values.items() if name != work.oracle}
    return Statistics(
        tests=tests,
        verdicts=verdicts(gains, tests),
        needed={
            name: needed(gain, tests, wanted)
            for name, gain in gains.items()
            if gain.n >= FEWEST_SEEDS and gain.sd > _NO_DEVIATION
        },
        pairs=_pairs(differences(itertools.combinations(ranked, 2))),
        ranks=ranks(kept, work.baseline, resamples=work.resamples, seed=work.seed),
    )


def verdicts(gains: Mapping[str, Difference], tests: int) -> dict[str, Verdict]:
    """What is said of each method's difference from the baseline, in a family of `tests` methods."""
    adjusted = holm([gain.p for gain in gains.values()], tests)
    return {
        name: Verdict(_effect(gain, float(p)), float(p))
        for (name, gain), p in zip(gains.items(), adjusted, strict=True)
    }


def _effect(gain: Difference, adjusted: float) -> Effect:
    if gain.n < ENOUGH_SEEDS:
        return Effect.FEW
    if not gain.side or not adjusted < 1 - LEVEL:
        return Effect.UNDECIDED
    return Effect.HELPED if gain.side > 0 else Effect.HURT


def needed(gain: Difference, tests: int, wanted: Sequence[float]) -> SeedsNeeded:
    """How many seeds each wanted difference needs, by the deviation of `gain`, which must be above 0."""
    alone, strictest = 1 - LEVEL, (1 - LEVEL) / max(tests, 1)
    return SeedsNeeded(
        sd=gain.sd,
        n=gain.n,
        found=gain.sd * effect_found(gain.n, alone),
        alone={size: _seeds(size, gain.sd, alone) for size in wanted},
        in_plan={size: _seeds(size, gain.sd, strictest) for size in wanted},
    )


def _seeds(size: float, sd: float, alpha: float) -> int | None:
    found = seeds_needed(size / sd, alpha)
    return None if found is None else max(found, ENOUGH_SEEDS)


def _pairs(differences: Mapping[tuple[str, str], Difference]) -> tuple[Pair, ...]:
    adjusted = holm([found.p for found in differences.values()], len(differences))
    return tuple(
        Pair(method, other, found, float(p), _effect(found, float(p)) in (Effect.HELPED, Effect.HURT))
        for ((method, other), found), p in zip(differences.items(), adjusted, strict=True)
    )


def ranks(values: Mapping[str, Mapping[int, float]], baseline: str, *, resamples: int, seed: int) -> dict[str, Rank]:
    """Each method's rank by mean score, and how it varies when the seeds are resampled, the same for all methods.

    The seeds are those that all ranked methods have. A method with fewer than half of the baseline's is left out, as
    it would take the others' away. Empty for fewer than two methods, or for fewer than three seeds.
    """
    least = max(FEWEST_SEEDS, len(values[baseline]) / 2)
    names = [name for name, own in values.items() if len(own.keys() & values[baseline].keys()) >= least]
    seeds = sorted(set.intersection(*(set(values[name]) for name in names))) if len(names) > 1 else []
    if len(seeds) < FEWEST_SEEDS:
        return {}
    scores = np.array([[values[name][s] for s in seeds] for name in names])
    # Rounded, so that equal means are equal in whichever order they were summed.
    means = (resample_weights(len(seeds), resamples=resamples, seed=seed) @ scores.T).round(_DIGITS)
    best = means == means.max(axis=1, keepdims=True)
    first = (best / best.sum(axis=1, keepdims=True)).mean(axis=0)
    places = _places(means)
    own = _places(scores.mean(axis=1)[None].round(_DIGITS))[0]
    intervals = [percentile_interval(column) or Interval(math.nan, math.nan) for column in places.T]
    return {name: Rank(int(own[i]), intervals[i], float(first[i]), len(seeds)) for i, name in enumerate(names)}


def _places(means: FloatArray) -> FloatArray:
    """Of each row (R, M) its entries' places: 1 and how many are greater."""
    return np.stack([1.0 + (means > own[:, None]).sum(axis=1) for own in means.T], axis=1)
