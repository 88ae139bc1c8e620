"""What a policy saves and costs, honestly: paired by prompt, at matched cost, and chosen on other prompts than scored.

Source: `frontier-and-zip-rc-lite`, Table 4 and appendix B.7, whose first result did not outlive a held-out choice.
All averages over seeds are taken for each prompt first: prompts are what is resampled. numpy alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollwise.errors import ConfigError
from rollwise.inference.measures.measures import Estimate
from rollwise.inference.policies.candidates import FloatArray
from rollwise.options import check_number, check_whole
from rollwise.rng import stream_generator

RESAMPLES = 2000
FEWEST_SEEDS = 3
_PER_PROMPT = ("accuracy", "row_forwards", "steps")
_KEPT = ("oracle", "begun", "carried")


@dataclass(frozen=True)
class PolicyRun:
    """One policy setting with one seed on N prompts.

    Attributes:
        setting: The setting's name.
        seed: Of the samples.
        accuracy: (N,) whether the chosen candidate succeeded, 0 or 1.
        row_forwards: (N,) tokens generated: cost.
        steps: (N,) decode steps: latency.
        wall_s: Seconds of the whole run; NaN where it was replayed.
        cpu_s: Seconds of processor; NaN where it was replayed.
        oracle: (N,) whether some candidate that was carried to the end succeeded, 0 or 1; None where it is not known.
        begun: (N,) candidates that began; None likewise.
        carried: (N,) candidates that were carried to the end; None likewise.
    """

    setting: str
    seed: int
    accuracy: FloatArray
    row_forwards: FloatArray
    steps: FloatArray
    wall_s: float = math.nan
    cpu_s: float = math.nan
    oracle: FloatArray | None = None
    begun: FloatArray | None = None
    carried: FloatArray | None = None


@dataclass(frozen=True)
class Spread:
    """A mean over seeds and its standard deviation (n - 1)."""

    mean: float
    sd: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of a value a seed; no deviation for one."""
        return cls(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else math.nan)


@dataclass(frozen=True)
class PolicySummary:
    """A setting over its seeds.

    Attributes:
        setting: Its name.
        seeds: Which.
        accuracy: Over seeds, each the mean over prompts.
        row_forwards: The same, for each prompt.
        steps: The same.
        wall_s: Over seeds.
        cpu_s: Over seeds.
        by_prompt: The run of the means over seeds of each prompt's numbers, on which all pairs are taken.
    """

    setting: str
    seeds: tuple[int, ...]
    accuracy: Spread
    row_forwards: Spread
    steps: Spread
    wall_s: Spread
    cpu_s: Spread
    by_prompt: PolicyRun


def summarise(runs: Sequence[PolicyRun]) -> PolicySummary:
    """One setting's runs over at least 3 distinct seeds and the same prompts.

    Raises:
        ConfigError: Fewer seeds, seeds twice, several settings, or unequal numbers of prompts.
    """
    seeds = tuple(run.seed for run in runs)
    if len(set(seeds)) < FEWEST_SEEDS or len(set(seeds)) < len(seeds):
        raise ConfigError(f"a setting needs runs of {FEWEST_SEEDS} distinct seeds or more, got {list(seeds)}")
    if len({(run.setting, run.accuracy.shape) for run in runs}) > 1:
        raise ConfigError("runs to summarise must be of one setting and the same prompts")
    known = [name for name in (*_PER_PROMPT, *_KEPT) if all(getattr(run, name) is not None for run in runs)]
    means = {name: np.mean([getattr(run, name) for run in runs], axis=0) for name in known}
    return PolicySummary(
        setting=runs[0].setting,
        seeds=seeds,
        **{name: Spread.of([float(getattr(run, name).mean()) for run in runs]) for name in _PER_PROMPT},
        wall_s=Spread.of([run.wall_s for run in runs]),
        cpu_s=Spread.of([run.cpu_s for run in runs]),
        by_prompt=PolicyRun(runs[0].setting, -1, **means),
    )


# ---- pairs ----


@dataclass(frozen=True)
class Paired:
    """A run against a baseline on the same prompts.

    Attributes:
        accuracy: Mean accuracy minus the baseline's.
        saving: 1 - sum of row-forwards / the baseline's.
        steps_saving: The same of decode steps.
    """

    accuracy: Estimate
    saving: Estimate
    steps_saving: Estimate


def paired_bootstrap(run: PolicyRun, baseline: PolicyRun, *, resamples: int = RESAMPLES, seed: int = 0) -> Paired:
    """Differences and savings with intervals over prompts, each resample drawing N of N prompts, the same for both.

    The intervals are for other prompts of the kind. For other seeds see the spread over seeds.

    Raises:
        ConfigError: The runs have other numbers of prompts.
    """
    check_whole("resamples", resamples, least=1)
    n = len(run.accuracy)
    if n == 0 or len(baseline.accuracy) != n:
        raise ConfigError(f"both runs must be of the same prompts, got {n} and {len(baseline.accuracy)}")
    drawn = stream_generator(seed, "prompts").integers(n, size=(resamples, n))
    return Paired(
        Estimate.mean(run.accuracy - baseline.accuracy, drawn),
        _saving(run.row_forwards, baseline.row_forwards, drawn),
        _saving(run.steps, baseline.steps, drawn),
    )


def _saving(mine: FloatArray, theirs: FloatArray, drawn: NDArray[np.int64]) -> Estimate:
    resampled = 1 - mine[drawn].sum(axis=1) / theirs[drawn].sum(axis=1)
    return Estimate.of(float(1 - mine.sum() / theirs.sum()), resampled)


# ---- the operating point ----


@dataclass(frozen=True)
class Fold:
    """A choice on one half of the prompts and its score on the other.

    Attributes:
        setting: The cheapest whose accuracy on the choosing half is within the tolerance of the baseline.
        chosen_on: Its gap to the baseline there: the optimistic one.
        scored_on: Its gap on the other half.
        prompts: Indices of the prompts that it is scored on.
    """

    setting: str
    chosen_on: float
    scored_on: float
    prompts: tuple[int, ...]


@dataclass(frozen=True)
class HeldOut:
    """Both folds, and what a user would have got: each prompt under the setting chosen on the half without it."""

    folds: tuple[Fold, Fold]
    run: PolicyRun
    paired: Paired


def held_out(
    settings: Mapping[str, PolicyRun],
    baseline: PolicyRun,
    *,
    tolerance: float = 0.01,
    objective: str = "row_forwards",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> HeldOut:
    """Choose an operating point on one half of the prompts, score it on the other, and swap (B.7).

    Args:
        settings: By name, each setting's means over seeds; the baseline is always one more of them, so that there is
            always one to choose.
        baseline: Full best-of-N.
        tolerance: Accuracy that may be lost on the choosing half.
        objective: What to save: `row_forwards` or `steps`.
        resamples: For the intervals.
        seed: Of the halves and the resamples.

    Raises:
        ConfigError: Fewer than two prompts, or an unknown objective.
    """
    check_number("tolerance", tolerance, low=0.0, high=1.0)
    if objective not in ("row_forwards", "steps"):
        raise ConfigError(f"objective must be 'row_forwards' or 'steps', got {objective!r}")
    n = len(baseline.accuracy)
    if n < 2:
        raise ConfigError(f"halves need 2 prompts or more, got {n}")
    order = stream_generator(seed, "halves").permutation(n)
    halves = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
    known = {**settings, baseline.setting: baseline}
    parts = {name: np.empty(n) for name in _PER_PROMPT}
    folds = []
    for choose, score in (halves, halves[::-1]):
        least = float(baseline.accuracy[choose].mean()) - tolerance - 1e-12
        good = [name for name, run in known.items() if run.accuracy[choose].mean() >= least]
        # Of equally cheap ones the baseline: nothing is gained by the other.
        cost = {name: float(getattr(known[name], objective)[choose].mean()) for name in good}
        best = min(good, key=lambda name: (cost[name], name != baseline.setting, name))
        gap = known[best].accuracy - baseline.accuracy
        folds.append(Fold(best, float(gap[choose].mean()), float(gap[score].mean()), tuple(score.tolist())))
        for name in _PER_PROMPT:
            parts[name][score] = getattr(known[best], name)[score]
    run = PolicyRun("held out", -1, parts["accuracy"], parts["row_forwards"], parts["steps"])
    return HeldOut((folds[0], folds[1]), run, paired_bootstrap(run, baseline, resamples=resamples, seed=seed))


def front(costs: ArrayLike, accuracies: ArrayLike) -> list[int]:
    """Indices of the settings that no other beats: none is as cheap and better, or cheaper and as good; by cost.

    Of settings that are equal in both, only the first.

    >>> front([3.0, 1.0, 2.0, 2.0], [0.9, 0.5, 0.4, 0.7])
    [1, 3, 0]
    """
    cost, accuracy = np.asarray(costs, dtype=np.float64), np.asarray(accuracies, dtype=np.float64)
    best, found = -np.inf, []
    for i in np.lexsort((np.arange(len(cost)), -accuracy, cost)):
        if accuracy[i] > best:
            best = float(accuracy[i])
            found.append(int(i))
    return found
