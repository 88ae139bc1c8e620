"""Comparing methods over seeds at equal budgets, with the measures of BOTS (section 4.1, appendix B.4).

Every curve is cut at the same budget, so that no method is credited with what it spent beyond the others, and every
difference is paired: a method's run with the baseline's run of the same seed, which has the same prompts. The budget
is one of generated tokens. On the other axes TTB and BSF cut a method and the baseline where the one of them that came
less far by that budget ended: at a least total of all, one method of few steps, such as one that screens, would leave
nothing of the others.

TTB and BSF of noisy runs: the maximum of a single noisy curve is too high, more so the oftener it was evaluated, and a
TTB that some seeds never reach has no mean. So the headline is that of the curves averaged over seeds, whose noise is
less, with an interval from resampling the seeds (method and baseline together); an end of it is infinite where the
score is not reached in that many resamples. Beside it stand the single seeds, each against its own baseline run, with
their median and how many got there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rollwise.errors import ConfigError
from rollwise.evaluation.categories import categories_of, category_measures
from rollwise.evaluation.comparison.data import ComparedRuns, Runs, Sorting, run_result, sort_runs
from rollwise.evaluation.comparison.measured import MeasuredRun
from rollwise.evaluation.comparison.methods import Methods
from rollwise.evaluation.comparison.results import Comparison, MethodResult, Pair
from rollwise.evaluation.comparison.signals import method_signals
from rollwise.evaluation.comparison.statistics import WANTED, statistics_of
from rollwise.evaluation.comparison.timing import settle_timing
from rollwise.evaluation.named_sets import aggregate_name, set_column, set_names
from rollwise.evaluation.run_measures import COST_MEASURES, Measure, measure_scores, score_measures
from rollwise.runs.sets import Problem

# What a share of the oracle's gain is taken of.
GAINS = ("score", "area")

Measured = dict[str, float]


def compare_runs(
    runs: Runs,
    *,
    baseline: str,
    oracle: str | None = None,
    budget: float | None = None,
    bootstrap: int = 10_000,
    seed: int = 0,
    problems: Sequence[Problem] = (),
    name: str = "comparison",
    wanted: Sequence[float] = (),
) -> Comparison:
    """Compare methods over seeds; the same runs give the same result.

    Args:
        runs: Method to seed to run; a method may have none yet.
        baseline: The method that the others are compared with.
        oracle: The method whose gain the others' are shown as a share of.
        budget: Generated tokens at which every curve is cut; by default, and on the other axes always, the least that
            any compared run had spent by its last evaluation.
        bootstrap: Resamples for more than five seeds; up to five all n^n are used.
        seed: Of the resamples.
        problems: What is known to be wrong with the runs already.
        name: What the comparison is called.
        wanted: Differences in score for which it is said how many seeds they need; without any 0.02, 0.05 and 0.1.

    Raises:
        ConfigError: The baseline or the oracle is none of the methods, the two are one, or a number is out of its
            range.
    """
    asked = _Asked(runs, baseline, oracle, budget, bootstrap, seed, name, wanted or WANTED)
    sorting = sort_runs(runs, budget)
    columns = sorting.columns
    every = {
        pair: MeasuredRun.of(run, sorting.compared.get((baseline, pair[1])), columns)
        for pair, run in sorting.runs.items()
    }
    sorting.runs = {pair: one.run for pair, one in every.items()}
    found = {pair: run.measures for pair, run in every.items()}
    sorting.problems += [Problem(*pair, "categories", said) for pair, run in every.items() for said in run.faults]
    categories = categories_of(one for pair in sorting.compared for one in every[pair].categories)
    measures = {**score_measures(columns), **COST_MEASURES, **category_measures(categories)}
    timing = settle_timing(sorting, measures)
    whole = asked.compare(sorting, measures, found)
    sets = {named: asked.compare_set(sorting, named, whole) for named in set_names(sorting.compared.values())}
    return replace(
        whole,
        sets={named: own for named, own in sets.items() if own is not None},
        signals=method_signals(whole, {pair: run.signals for pair, run in every.items()}),
        categories=categories,
        aggregate=" or ".join(sorted({aggregate_name(run) for run in sorting.compared.values()} - {""})),
        timing=timing,
        problems=(*problems, *whole.problems),
    )


@dataclass(frozen=True)
class _Asked:
    """What is compared, and how, whichever score it is by."""

    runs: Runs
    baseline: str
    oracle: str | None
    budget: float | None
    resamples: int
    seed: int
    name: str
    wanted: Sequence[float]

    def __post_init__(self) -> None:
        for role, method in (("baseline", self.baseline), ("oracle", self.oracle)):
            if method is not None and method not in self.runs:
                raise ConfigError(f"{role} {method!r} is none of the methods {list(self.runs)}; give one of these")
        if self.oracle == self.baseline:
            raise ConfigError(f"oracle {self.oracle!r} is the baseline too; give another method, or no oracle")
        if self.resamples < 1 or (self.budget is not None and not self.budget > 0):
            raise ConfigError(f"bootstrap must be >= 1 and budget > 0, got {self.resamples!r} and {self.budget!r}")
        if not all(math.isfinite(size) and size > 0 for size in self.wanted):
            raise ConfigError(f"a wanted difference must be a number > 0, got {list(self.wanted)!r}")

    def compare(self, sorting: Sorting, measures: dict[str, Measure], found: Mapping[Pair, Measured]) -> Comparison:
        """The comparison by the score of `sorting`, with these measures of whole runs, found of each of them."""
        data = ComparedRuns.of(sorting, self.budget)
        sorting.problems += _uncounted(data, sorting)
        rows = tuple(
            run_result(data, self.baseline, sorting.status[pair], pair, run, found[pair])
            for pair, run in sorting.runs.items()
        )
        work = Methods(data, rows, self.baseline, self.oracle, measures, self.resamples, self.seed)
        gains = {} if self.oracle is None else {key: work.oracle_gain(self.oracle, key) for key in GAINS}
        there = [method for method, seeds in self.runs.items() if seeds or method in (self.baseline, self.oracle)]
        methods = sorted(
            (work.method(method, gains) for method in there),
            key=lambda method: _rank(method, self.baseline, data.headline),
        )
        tests = len(self.runs.keys() - {self.baseline, self.oracle})
        return Comparison(
            name=self.name,
            baseline=self.baseline,
            oracle=self.oracle,
            score=sorting.score,
            headline_axis=data.headline,
            budgets=data.budgets,
            measures=measures,
            methods=tuple(methods),
            runs=rows,
            oracle_gains=gains,
            problems=tuple(sorting.problems),
            provisional=sorting.provisional,
            resamples=self.resamples,
            statistics=statistics_of(work, [method.name for method in methods], tests, self.wanted),
        )

    def compare_set(self, sorting: Sorting, name: str, whole: Comparison) -> Comparison | None:
        """The comparison by one set's score, its methods in the order of the whole; None where the set lacks it."""
        own = replace(sorting, score=set_column(name, str(sorting.score)), problems=[])
        columns = own.columns
        if not columns:
            return None
        found = {pair: measure_scores(run, columns) for pair, run in own.runs.items()}
        compared = self.compare(own, score_measures(columns), found)
        return replace(compared, methods=tuple(compared.method(method.name) for method in whole.methods))


def _uncounted(data: ComparedRuns, sorting: Sorting) -> list[Problem]:
    """The runs that have curves, but none on the verdict's axis, and no problem that says why."""
    label, damaged = sorting.axes[data.headline], [p for p in sorting.problems if p.kind == "damaged"]
    counted = data.curves.get(data.headline, {}).keys() | {(problem.method, problem.seed) for problem in damaged}
    lost = {pair for found in data.curves.values() for pair in found} - counted
    text = f"it recorded no {label}, so what is compared at equal {label} is without it"
    return [Problem(*pair, "uncounted", text) for pair in data.runs if pair in lost]


def _rank(method: MethodResult, baseline: str, axis: str) -> tuple[int, float]:
    """By the gain over the baseline, whose own is 0: means over different seeds can't be ranked."""
    found = method.axes.get(axis)
    if found is None or math.isnan(found.score.mean):
        return 2, 0.0
    if method.name == baseline:
        return 0, 0.0
    difference = found.score.difference
    return (1, -found.score.mean) if difference is None else (0, -difference.mean)
