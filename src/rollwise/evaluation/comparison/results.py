"""What a comparison found, as plain records that go into JSON and CSV."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollwise.evaluation.categories import Category
from rollwise.evaluation.comparison.estimates import OracleGain, Relative, Share, Statistics, Summary
from rollwise.evaluation.comparison.mean_curves import GapBand, MeanCurve, MethodSignals
from rollwise.evaluation.run_measures import Measure, short_name
from rollwise.runs.sets import Problem

NEVER = "never"

Pair = tuple[str, int]  # method and seed


@dataclass(frozen=True)
class AxisResult:
    """A method on one axis.

    Attributes:
        score: The score at that axis' budget.
        area: The mean score over the budget: the area under the curve divided by its length, from where the latest of
            all curves begins.
        effective_task_ratio: Of all groups of the steps that began before the headline's budget was spent.
        cut: Where TTB and BSF cut the method's curves and the baseline's: how far all of them came by the headline's
            budget, so on the headline's axis that budget itself. NaN without a seed in common.
        ttb: Time to baseline by percent of the baseline's rise.
        bsf: Best so far by percent of `cut`.
        time_of_best: Where the curve averaged over the paired seeds first has its own best score, up to `cut`; METIS,
            Table 1. NaN without a seed in common.
        time_of_best_ratio: The same over the baseline's; optimistic, see `relative_times_of_best`.
        curve: The mean score, as far as all of the method's runs came by the headline's budget.
        ratio: The mean effective task ratio, likewise; None where it was not recorded.
        gap: On the headline's axis the difference from the baseline along the budget; None on others, for the baseline,
            and without a seed in common.
    """

    score: Summary
    area: Summary
    effective_task_ratio: Summary
    cut: float
    ttb: dict[int, Relative]
    bsf: dict[int, Relative]
    time_of_best: float
    time_of_best_ratio: Relative
    curve: MeanCurve
    ratio: MeanCurve | None
    gap: GapBand | None


@dataclass(frozen=True)
class MethodResult:
    """One method.

    Attributes:
        name: Its name.
        seeds: Those of its runs that are compared.
        paired: Those of them that the baseline has too.
        measures: Whole-run measures by name.
        axes: By axis; an axis that some run of the method did not record is absent.
        shares: Its share of the oracle's gain in "score" and "area"; None where that can't be told.
    """

    name: str
    seeds: tuple[int, ...]
    paired: tuple[int, ...]
    measures: dict[str, Summary]
    axes: dict[str, AxisResult]
    shares: dict[str, Share | None]

    def mean(self, key: str) -> float:
        """A whole-run measure's mean over the seeds; NaN where it is not known."""
        return self.measures[key].mean if key in self.measures else math.nan


@dataclass(frozen=True)
class Budget:
    """Where the curves of one axis are cut.

    Attributes:
        value: In steps, rollouts, tokens or seconds.
        set_by: The run that had spent least by its last evaluation; `""` where the budget was given.
        wanted: The given budget, if there is one; more than `value` where `set_by` did not get there.
    """

    value: float
    set_by: str
    wanted: float | None


@dataclass(frozen=True)
class RunResult:
    """One run.

    Attributes:
        method, seed, path: Its method, seed and folder.
        status: "compared", "unfinished" or "not evaluated".
        step: Its last step.
        planned: How many steps it is to have; None where its config does not say.
        measures: Whole-run measures by name.
        best_kept: Whether the run has the weights of its best score still; None without an evaluation.
        axes: Axis to "score", "area", "ttb_50", "time_of_best", ...; infinity where a score is never reached.
        start: The policy that it started from: the last part of its path; "" where its config does not say.
    """

    method: str
    seed: int
    path: str
    status: str
    step: int
    planned: int | None
    measures: dict[str, float]
    best_kept: bool | None
    axes: dict[str, dict[str, float]]
    start: str = ""

    def value(self, key: str, axis: str | None = None) -> float:
        """A whole-run measure, or one on an axis; NaN where it is not known."""
        found = self.measures if axis is None else self.axes.get(axis, {})
        return found.get(key, math.nan)


@dataclass(frozen=True)
class Comparison:
    """Methods compared at equal budgets, over seeds.

    Attributes:
        name: What it is called.
        baseline: The method that the others are compared with.
        oracle: The method whose gain the others are shown as a share of; None for none.
        score: The evaluated column that is compared, `eval/pass@1` or `eval/reward`; None where no run was evaluated.
        headline_axis: The axis of the verdict: "tokens", or "steps" where tokens were not recorded.
        budgets: By axis.
        measures: What each whole-run measure is.
        methods: By gain over the baseline at the headline budget, the greatest first; those that have no seed in
            common with it after them, and those without a compared run last.
        runs: Every run that could be read.
        oracle_gains: "score" and "area"; empty without an oracle.
        problems: What is wrong with some of the runs.
        provisional: No run has finished, so those that have begun are compared as far as they got.
        resamples: Random resamples for more than five seeds; up to five all n^n are used.
        aggregate: How the score is made from named evaluation sets, as "mean of sets"; "" without sets.
        timing: How all runs were timed, in words; "" where that was not noted, or they were not timed alike.
        signals: What each method's steps were like, by method.
        sets: Of each named evaluation set the same comparison by its own score.
        categories: Those of the evaluations' prompts; their scores are measures, by `Category.key`.
        statistics: What can be said of the scores at the headline's budget: verdicts, seeds needed, pairs, ranks.
        tune: The same comparison of the seeds for choosing, which nothing else here has; None without such seeds.
        curves: The runs' evaluations as CSV; see `curves_csv`.
    """

    name: str
    baseline: str
    oracle: str | None
    score: str | None
    headline_axis: str
    budgets: dict[str, Budget]
    measures: dict[str, Measure]
    methods: tuple[MethodResult, ...]
    runs: tuple[RunResult, ...]
    oracle_gains: dict[str, OracleGain]
    problems: tuple[Problem, ...]
    provisional: bool
    resamples: int
    aggregate: str = ""
    timing: str = ""
    signals: dict[str, MethodSignals] = field(default_factory=dict)
    sets: dict[str, Comparison] = field(default_factory=dict)
    categories: tuple[Category, ...] = ()
    tune: Comparison | None = None
    statistics: Statistics = field(default_factory=Statistics)
    curves: str = field(default="", repr=False, metadata={"plain": False})

    @property
    def score_name(self) -> str:
        """The score in words, as `pass@1`, or `pass@1 (mean of sets)`."""
        short = short_name(self.score or "score")
        return f"{short} ({self.aggregate})" if self.aggregate else short

    @property
    def pass_at_ks(self) -> list[int]:
        """The k of the evaluations' pass@k, rising."""
        prefix = "final_pass@"
        return sorted(int(name.removeprefix(prefix)) for name in self.measures if name.startswith(prefix))

    def method(self, name: str) -> MethodResult:
        """The method of that name."""
        return next(method for method in self.methods if method.name == name)

    def on_headline(self, method: MethodResult) -> AxisResult | None:
        """The method on the verdict's axis; None where none of its runs is compared there."""
        return method.axes.get(self.headline_axis)

    def to_dict(self, root: str | Path | None = None) -> dict[str, Any]:
        """Plain values for JSON: NaN as None, an infinite time as "never".

        Args:
            root: Runs' paths are given from here; by default as they were read.
        """
        plain: dict[str, Any] = _plain(self)
        if root is not None:
            for row in _rows(plain):
                row["path"] = os.path.relpath(row["path"], root)
        return plain

    def to_csv(self, root: str | Path | None = None) -> str:
        """One line a run, with all its measures; empty for what is not known, "never" for an infinite time."""
        columns = self._columns() | {k: v for name, own in self.sets.items() for k, v in own._columns(name).items()}
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(["method", "seed", "status", "step", *columns, "start", "path"])
        for i, run in enumerate(self.runs):
            path = run.path if root is None else os.path.relpath(run.path, root)
            cells = ["" if (cell := _plain(values[i])) is None else cell for values in columns.values()]
            writer.writerow([run.method, run.seed, run.status, run.step, *cells, run.start, path])
        return buffer.getvalue()

    def _columns(self, name: str = "") -> dict[str, list[float]]:
        """Each run's measures, and those on each axis as `score/tokens`; of a set as `NAME/score/tokens`."""
        found = {measure: [run.value(measure) for run in self.runs] for measure in self.measures}
        for axis in self.budgets:
            for key in dict.fromkeys(key for run in self.runs for key in run.axes.get(axis, {})):
                if not name or key != "effective_task_ratio":  # which is no set's
                    found["/".join(filter(None, (name, key, axis)))] = [run.value(key, axis) for run in self.runs]
        return found


def _rows(plain: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The runs of a comparison in plain values, of its sets and of its seeds for choosing."""
    yield from plain["runs"]
    for part in filter(None, (*plain["sets"].values(), plain["tune"])):
        yield from _rows(part)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if field.metadata.get("plain", True)]
        return {name: _plain(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return None if math.isnan(value) else NEVER if math.isinf(value) else float(f"{value:.10g}")
    return value
