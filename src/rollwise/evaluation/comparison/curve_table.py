"""`curves.csv`: the evaluations of all compared runs, a row each, and reading such a file back as runs.

What is made of the curves alone (scores at the budget, areas, TTB, BSF, their differences and intervals) comes out the
same from the file as from the runs' folders. What needs every step or group of a run, as its effective task ratio, is
in `results.csv` alone.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.errors import StateFileError
from rollwise.evaluation.comparison.data import last_step, sort_runs
from rollwise.evaluation.comparison.results import Comparison, Pair
from rollwise.evaluation.curves import AXES, spending
from rollwise.evaluation.named_sets import AGGREGATE, set_names
from rollwise.evaluation.run_measures import END, start_of
from rollwise.runs.reading import RunData
from rollwise.runs.sets import RunSet

_SPENT = [axis for axis in AXES if axis != "steps"]
_SHARED = ["plan", "method", "role", "seed", "start", "budget"]


def curves_csv(runs: RunSet, found: Comparison) -> str:
    """The evaluations of the compared runs: what each had spent by then, and every score.

    `role` is "baseline", "oracle" or empty, `budget` the plan's, in tokens. A run also has rows without scores: the
    steps before and after the budget, which say where other axes are cut. Where there are named evaluation sets,
    `eval_aggregate` says how the score of all is made.
    """
    compared = sort_runs(runs.runs, runs.budget).compared
    scores = sorted({name for run in compared.values() for name in _scores(run)})
    cut = found.budgets["tokens"].value if "tokens" in found.budgets else None
    hidden = {"wall_s"} if any(problem.kind == "timing" for problem in found.problems) else set()
    roles = {runs.oracle: "oracle", runs.baseline: "baseline"}
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    named = [AGGREGATE] if set_names(compared.values()) else []
    writer.writerow([*_SHARED, *named, "step", *_SPENT, *scores])
    for (method, seed), run in compared.items():
        budget = "" if runs.budget is None else _cell(runs.budget)
        shared = [runs.name, method, roles.get(method, ""), seed, start_of(run), budget]
        shared += [run.config.get(name) or "" for name in named]
        # Gaps are filled from all lines of the run, before lines are left out.
        columns = [None if axis in hidden else spending(run, axis) for axis in ("steps", *_SPENT)]
        for line in _lines(run, cut):
            spent = ["" if column is None else _cell(column[line]) for column in columns]
            writer.writerow([*shared, *spent, *(_cell(run.column(name)[line]) for name in scores)])
    return buffer.getvalue()


def read_curves(path: str | Path) -> dict[str, RunSet]:
    """The runs of a `curves.csv`, or of several in one file, by their plans' names; `compare_set` takes each.

    Raises:
        StateFileError: there is no such file, it lacks a column, or a cell is no number.
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            rows, head = list(reader), reader.fieldnames or []
    except (OSError, UnicodeDecodeError) as error:
        raise StateFileError(f"{str(path)!r} can't be read: {getattr(error, 'strerror', error)}") from error
    if lacking := [name for name in ("plan", "method", "role", "seed", "step") if name not in head]:
        raise StateFileError(f"{str(path)!r} has no column {lacking[0]!r}; give a curves.csv of `rollwise compare`")
    plans = dict.fromkeys(row["plan"] for row in rows)
    try:
        return {plan: _run_set(plan, [row for row in rows if row["plan"] == plan]) for plan in plans}
    except (ValueError, TypeError) as error:
        raise StateFileError(
            f"{str(path)!r} has a cell that is no number ({error}); mend it, or write it anew"
        ) from error


def _run_set(plan: str, rows: list[dict[str, str]]) -> RunSet:
    together: dict[Pair, list[dict[str, str]]] = {}
    for row in rows:
        together.setdefault((row["method"], int(row["seed"])), []).append(row)
    runs: dict[str, dict[int, RunData]] = {}
    for (method, seed), own in together.items():
        runs.setdefault(method, {})[seed] = _run(Path(plan) / method / f"seed{seed}", own)
    roles = {row["role"]: row["method"] for row in rows}
    budgets = [float(row["budget"]) for row in rows if row.get("budget")]
    baseline = roles.get("baseline", "baseline")  # without a run: no other method may take its place
    runs.setdefault(baseline, {})
    return RunSet(plan, runs, baseline, roles.get("oracle"), budgets[0] if budgets else None)


def _run(path: Path, rows: list[dict[str, str]]) -> RunData:
    names = [name for name in rows[0] if name not in (*_SHARED, AGGREGATE)]
    columns = {name: np.array([float(row[name] or "nan") for row in rows]) for name in names}
    known = {name: column for name, column in columns.items() if np.isfinite(column).any()}
    config: dict[str, Any] = {"model": rows[0].get("start", ""), "seed": int(rows[0]["seed"])}
    return RunData(path, config | {AGGREGATE: rows[0].get(AGGREGATE) or None}, "", known)


def _scores(run: RunData) -> list[str]:
    named = [name for name in run.metrics if name.startswith(("eval/", END))]
    return [name for name in named if np.isfinite(run.metrics[name]).any()]


def _lines(run: RunData, cut: float | None) -> list[int]:
    """The run's lines with a score, and those before and after it had generated `cut` tokens."""
    kept = {int(i) for name in _scores(run) for i in np.flatnonzero(np.isfinite(run.metrics[name]))}
    spent = spending(run, "tokens")
    if cut is not None and spent is not None and last_step(run):
        after = int(np.searchsorted(spent, cut, side="right"))
        kept |= {i for i in (after - 1, after) if 0 <= i < len(spent)}
    return sorted(kept)


def _cell(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.10g}"
