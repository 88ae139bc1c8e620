"""The comparison of a set of runs: those of a comparison's folder, of some folders, or of a `curves.csv`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rollwise.evaluation.comparison.compare import compare_runs
from rollwise.evaluation.comparison.curve_table import curves_csv
from rollwise.evaluation.comparison.results import Comparison
from rollwise.runs.sets import RunSet


def compare_set(runs: RunSet, wanted: Sequence[float] = ()) -> Comparison:
    """The comparison of a set of runs, with the set's own baseline, oracle and budget.

    That of its seeds for choosing is apart from it, under `tune`.

    Args:
        runs: The runs.
        wanted: Differences in score for which it is said how many seeds they need; without any 0.02, 0.05 and 0.1.

    Raises:
        ConfigError: A wanted difference is not above 0.
    """
    found = compare_runs(
        runs.runs,
        baseline=runs.baseline,
        oracle=runs.oracle,
        budget=runs.budget,
        problems=runs.problems,
        name=runs.name,
        wanted=wanted,
    )
    found = replace(found, curves=curves_csv(runs, found))
    return found if runs.tune is None else replace(found, tune=compare_set(runs.tune))
