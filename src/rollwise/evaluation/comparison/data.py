"""The runs of a comparison made ready: which of them are compared, and their curves cut at equal budgets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rollwise.errors import StateFileError
from rollwise.evaluation.comparison.cuts import budget_of, end_of, headline_of, leave_out_late
from rollwise.evaluation.comparison.results import Budget, Pair, RunResult
from rollwise.evaluation.curves import (
    AXES,
    Curve,
    FloatArray,
    counts_evaluations_alone,
    mean_height,
    on_common_grid,
    ratio_until,
    relative_bests,
    relative_times,
    relative_times_of_best,
    run_curve,
    time_of_best,
)
from rollwise.evaluation.run_measures import end_columns, pass_at_columns, score_column, start_of
from rollwise.runs.folder import as_counted
from rollwise.runs.names import CHECKPOINTS
from rollwise.runs.reading import RunData
from rollwise.runs.sets import Problem

TTB_PERCENTS = (50, 75, 100)
BSF_PERCENTS = (25, 50, 100)
RATIO_OF_BEST = "time_of_best_ratio"
# Resampled curves made at a time: of 20 seeds, each evaluated 200 times at places of its own, 16 MB.
RESAMPLED_AT_ONCE = 500

Curves = tuple[FloatArray, FloatArray]  # a grid, (G,), and R curves on it, (R, G)


def run_result(
    data: ComparedRuns, baseline: str, status: str, pair: Pair, run: RunData, measures: dict[str, float]
) -> RunResult:
    """The run with its measures, and its scores on every axis beside those of the baseline's run of its seed."""
    return RunResult(
        method=pair[0],
        seed=pair[1],
        path=str(run.path),
        status=status,
        step=last_step(run),
        planned=planned_steps(run),
        measures=measures,
        best_kept=_keeps_best(run, data.score),
        axes={axis: _on_axis(data, baseline, axis, pair) for axis, found in data.curves.items() if pair in found},
        start=start_of(run),
    )


def _keeps_best(run: RunData, score: str | None) -> bool | None:
    """Whether the weights of one of the evaluations with the greatest score are there; None without an evaluation."""
    scores = np.full(0, np.nan) if score is None else run.column(score)
    if not np.isfinite(scores).any():
        return None
    return any(_keeps_weights(run, int(step)) for step in run.steps[scores == np.nanmax(scores)])


def _keeps_weights(run: RunData, step: int) -> bool:
    """Whether a checkpoint of that step is there; step 0 is the model that training began with.

    Those of a script's run are where its trainer put them, as `config.yaml` says.
    """
    own = run.config.get("checkpoints")
    folders = [run.path / CHECKPOINTS, *([Path(own)] if isinstance(own, str) else [])]
    return step == 0 or any((folder / f"checkpoint-{step}").is_dir() for folder in folders)


def _on_axis(data: ComparedRuns, baseline: str, axis: str, pair: Pair) -> dict[str, float]:
    method, seed = pair
    x, y = data.grid(axis, method, [seed])
    if x.size == 0:
        return {}
    whole = data.grid(axis, method, [seed], since=data.starts[axis])
    found = {"score": float(y[0, -1]), "area": float(mean_height(*whole)[0]) if whole[0].size else math.nan}
    found["effective_task_ratio"] = ratio_until(data.runs[pair], axis, data.ends[axis][pair])
    found["time_of_best"] = float(time_of_best(x, y)[0])
    if (baseline, seed) in data.curves[axis]:
        until = data.end(axis, [seed], method, baseline)
        own, base = (data.grid(axis, name, [seed], until) for name in (method, baseline))
        found |= {key: float(values[0]) for key, values in relatives(axis, own, base, until).items()}
        found["time_of_best"] = float(time_of_best(*own)[0]) if own[0].size else math.nan
    return found


def relatives(axis: str, own: Curves, base: Curves, until: float) -> dict[str, FloatArray]:
    """TTB, BSF and `time_of_best_ratio` of R pairs of curves cut at `until`, (R,) each; empty without curves.

    The keys are `ttb_50`, `bsf_25` and so on.
    """
    if own[0].size == 0 or base[0].size == 0:
        return {}
    found = {f"ttb_{p}": relative_times(*own, *base, p / 100) for p in TTB_PERCENTS}
    found[RATIO_OF_BEST] = relative_times_of_best(*own, *base)
    between = not counts_evaluations_alone(axis, until)
    for percent in BSF_PERCENTS:
        part = percent / 100 * until
        found[f"bsf_{percent}"] = relative_bests(
            *own, *base, part if between else math.floor(part + 1e-9), between=between
        )
    return found


def resampled_relatives(
    axis: str, weights: FloatArray, own: Curves, base: Curves, until: float
) -> dict[str, FloatArray]:
    """`relatives` of curves of n seeds, averaged by each row of `weights`, (R, n); (R,) each."""
    parts = np.array_split(weights, math.ceil(len(weights) / RESAMPLED_AT_ONCE))
    found = [relatives(axis, (own[0], part @ own[1]), (base[0], part @ base[1]), until) for part in parts]
    return {key: np.concatenate([part[key] for part in found]) for key in found[0]}


Runs = Mapping[str, Mapping[int, RunData]]

COMPARED, UNFINISHED, NOT_EVALUATED = "compared", "unfinished", "not evaluated"


@dataclass
class Sorting:
    """All runs, and which of them are compared.

    Attributes:
        runs: All of them.
        status: What each is.
        problems: Why some are not compared.
        score: The evaluated column that is compared; None where no run was evaluated.
        provisional: No run has finished, so those that have begun are compared.
        axes: What curves are drawn against.
    """

    runs: dict[Pair, RunData]
    status: dict[Pair, str]
    problems: list[Problem]
    score: str | None
    provisional: bool
    axes: Mapping[str, str] = field(default_factory=lambda: AXES)

    @property
    def compared(self) -> dict[Pair, RunData]:
        """Those that are compared."""
        return {pair: run for pair, run in self.runs.items() if self.status[pair] == COMPARED}

    @property
    def columns(self) -> list[str]:
        """The evaluated columns that are summarised: the score, each pass@k by k, the reward; of one set, its own."""
        runs = [run for run in self.compared.values() if _evaluations(run, self.score)]
        if self.score is None or not runs:
            return []
        prefix = self.score.rpartition("/")[0] + "/"
        reward = f"{prefix}reward"
        rewarded = [reward] if any(np.isfinite(run.column(reward)).any() for run in runs) else []
        passed = [*pass_at_columns(runs, prefix), *rewarded, *end_columns(runs, prefix)]
        return list(dict.fromkeys([self.score, *passed]))


def sort_runs(runs: Runs, budget: float | None) -> Sorting:
    """Finished runs are compared: those at their planned step, or beyond the budget of tokens, given or their own.

    Where none has finished, all that have been evaluated twice are.
    """
    every = {(method, seed): run for method, seeds in runs.items() for seed, run in sorted(seeds.items())}
    score = score_column(every.values())
    status: dict[Pair, str] = {}
    problems = []
    for pair, run in every.items():
        step, planned, scored = last_step(run), planned_steps(run), _evaluations(run, score)
        if not scored:
            status[pair] = NOT_EVALUATED
            problems.append(Problem(*pair, "unscored", "it has no evaluation yet, and is left out"))
        elif planned is not None and step < planned and not _spent(run, budget or run.config.get("token_budget")):
            status[pair] = UNFINISHED
            problems.append(Problem(*pair, "unfinished", f"it is at step {step} of {planned}"))
        else:
            status[pair] = COMPARED
            if scored == 1:
                problems.append(Problem(*pair, "unscored", "it has one evaluation, so no curve and no TTB or BSF"))
    provisional = False
    if COMPARED not in status.values():
        begun = [pair for pair, run in every.items() if _evaluations(run, score) > 1]
        status.update(dict.fromkeys(begun, COMPARED))
        provisional = bool(begun)
    return Sorting(every, status, problems, score, provisional)


def last_step(run: RunData) -> int:
    """The last step that has a line; 0 where none has."""
    return int(run.metrics["step"].max(initial=0.0))


def planned_steps(run: RunData) -> int | None:
    """How many steps the run's config asks for, as its lines count them; None where it does not say."""
    steps = as_counted(run.config, run.path).get("steps")
    return steps if isinstance(steps, int) and not isinstance(steps, bool) else None


def _evaluations(run: RunData, score: str | None) -> int:
    return 0 if score is None else int(np.isfinite(run.column(score)).sum())


def _spent(run: RunData, budget: object) -> bool:
    """Whether a run has used up its budget of tokens, or its own hours."""
    hours = run.config.get("max_hours")
    limits = {"tokens": budget, "wall_s": 3600 * hours if isinstance(hours, int | float) else None}
    return any(
        isinstance(limit, int | float) and bool((run.column(name) >= limit).any()) for name, limit in limits.items()
    )


@dataclass
class ComparedRuns:
    """The compared runs as curves of the score, and where they are cut.

    Attributes:
        runs: The compared runs.
        score: The evaluated column that is compared; None where no run was evaluated.
        curves: By axis; a run without a curve is absent.
        budgets: By axis.
        starts: By axis: where the latest of the curves begins, 0 where all were evaluated before training.
        ends: By axis, like `curves`: what the run had spent there by the headline's budget.
    """

    runs: dict[Pair, RunData]
    score: str | None
    curves: dict[str, dict[Pair, Curve]]
    budgets: dict[str, Budget]
    starts: dict[str, float]
    ends: dict[str, dict[Pair, float]]

    @classmethod
    def of(cls, sorting: Sorting, budget: float | None) -> ComparedRuns:
        """Make the curves; what is wrong with one joins `sorting.problems`."""
        runs = sorting.compared
        curves: dict[str, dict[Pair, Curve]] = {axis: {} for axis in sorting.axes}
        for pair, run in runs.items():
            for axis, label in sorting.axes.items():
                try:
                    curve = run_curve(run, str(sorting.score), axis)
                except StateFileError as error:
                    sorting.problems.append(Problem(*pair, "damaged", f"it is left out against {label}: {error}"))
                    continue
                if curve is not None and len(curve.x) > 1:
                    curves[axis][pair] = curve
        for pair, said in leave_out_late(curves, budget).items():
            sorting.problems.append(Problem(*pair, "unscored", said))
        curves = {axis: found for axis, found in curves.items() if found}
        budgets = {axis: budget_of(found, axis, budget) for axis, found in curves.items()}
        headline = headline_of(budgets)
        cut = budgets[headline].value if budgets else math.nan
        ends = {
            axis: {pair: end_of(runs[pair], curve, axis, headline, cut) for pair, curve in found.items()}
            for axis, found in curves.items()
        }
        starts = {axis: max(float(curve.x[0]) for curve in found.values()) for axis, found in curves.items()}
        first = sorted({int(curve.x[0]) for curve in curves.get("steps", {}).values()})
        if len(first) > 1:
            steps = f"between steps {first[0]} and {first[-1]}"
            text = f"the runs were first evaluated {steps}: mean scores leave out what lies before the latest of these"
            sorting.problems.append(Problem("", None, "uneven", text))
        return cls(runs, sorting.score, curves, budgets, starts, ends)

    @property
    def headline(self) -> str:
        """The axis of the verdict."""
        return headline_of(self.budgets)

    def seeds(self, axis: str, *methods: str) -> list[int]:
        """The seeds for which every method has a curve."""
        return sorted(set.intersection(*({s for m, s in self.curves.get(axis, {}) if m == name} for name in methods)))

    def end(self, axis: str, seeds: Sequence[int], *methods: str) -> float:
        """How far all runs of these methods and seeds came on the axis by the headline's budget."""
        return min(self.ends[axis][method, seed] for method in methods for seed in seeds)

    def grid(
        self, axis: str, method: str, seeds: Sequence[int], until: float | None = None, since: float = -math.inf
    ) -> tuple[FloatArray, FloatArray]:
        """The method's curves up to `until`, by default the axis' budget: the grid (G,), and a row a seed, (n, G)."""
        found = [self.curves[axis][method, seed] for seed in seeds]
        return on_common_grid(found, until=self.budgets[axis].value if until is None else until, since=since)
