"""One run's numbers in a comparison, and what is read off the curves of a method and the baseline."""

from __future__ import annotations

import math

import numpy as np

from rollwise.evaluation.comparison_data import ComparedRuns, Pair, last_step, planned_steps
from rollwise.evaluation.comparison_results import RunResult
from rollwise.evaluation.curves import FloatArray, mean_height, mean_until, relative_bests, relative_times
from rollwise.evaluation.run_files import RunData
from rollwise.evaluation.run_measures import measure_run

TTB_PERCENTS = (50, 75, 100)
BSF_PERCENTS = (25, 50, 100)
# So many resampled curves are made at a time: of 20 seeds, each evaluated 200 times at places of its own, 16 MB.
RESAMPLED_AT_ONCE = 500

Curves = tuple[FloatArray, FloatArray]  # a grid, (G,), and R curves on it, (R, G)


def run_result(data: ComparedRuns, baseline: str, status: str, pair: Pair, run: RunData) -> RunResult:
    """The run's measures, and its scores on every axis, beside those of the baseline's run of its seed."""
    return RunResult(
        method=pair[0],
        seed=pair[1],
        path=str(run.path),
        status=status,
        step=last_step(run),
        planned=planned_steps(run),
        measures=measure_run(run, data.columns),
        axes={axis: _on_axis(data, baseline, axis, pair) for axis, found in data.curves.items() if pair in found},
    )


def _on_axis(data: ComparedRuns, baseline: str, axis: str, pair: Pair) -> dict[str, float]:
    method, seed = pair
    x, y = data.grid(axis, method, [seed])
    if x.size == 0:
        return {}
    whole = data.grid(axis, method, [seed], since=data.starts[axis])
    found = {"score": float(y[0, -1]), "area": float(mean_height(*whole)[0]) if whole[0].size else math.nan}
    found["effective_task_ratio"] = mean_until(data.runs[pair], "frac_mixed", axis, data.ends[axis][pair])
    if (baseline, seed) in data.curves[axis]:
        until = data.end(axis, [seed], method, baseline)
        own, base = (data.grid(axis, name, [seed], until) for name in (method, baseline))
        found |= {key: float(values[0]) for key, values in relatives(axis, own, base, until).items()}
    return found


def relatives(axis: str, own: Curves, base: Curves, until: float) -> dict[str, FloatArray]:
    """TTB and BSF of R pairs of curves cut at `until`, (R,) each, by `ttb_50`, `bsf_25`, ...; empty without curves."""
    if own[0].size == 0 or base[0].size == 0:
        return {}
    found = {f"ttb_{p}": relative_times(*own, *base, p / 100) for p in TTB_PERCENTS}
    # Runs that are as long as one another in steps are evaluated at the same ones, and BSF is the papers', of
    # evaluations alone. Cut between two steps, where so many tokens were spent, that would drop the last of all.
    between = axis != "steps" or not math.isclose(until, round(until), abs_tol=1e-9)
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
