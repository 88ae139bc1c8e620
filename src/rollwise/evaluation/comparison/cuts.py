"""Where the curves of a comparison are cut, so that all runs are compared at equal budgets."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from rollwise.evaluation.comparison.results import Budget, Pair
from rollwise.evaluation.curves import AXES, Curve, spending
from rollwise.runs.reading import RunData


def headline_of(axes: Collection[str]) -> str:
    """The axis of the verdict."""
    return "tokens" if "tokens" in axes else "steps"


def budget_of(curves: Mapping[Pair, Curve], axis: str, wanted: float | None) -> Budget:
    """The wanted budget of tokens where all curves reach it; else, and on other axes, where the shortest ends."""
    wanted = wanted if axis == "tokens" else None
    (method, seed), least = min(((pair, float(curve.x[-1])) for pair, curve in curves.items()), key=lambda kv: kv[1])
    if wanted is not None and wanted <= least:
        return Budget(float(wanted), "", wanted)
    return Budget(least, f"{method} seed {seed}", wanted)


def end_of(run: RunData, curve: Curve, axis: str, headline: str, budget: float) -> float:
    """What the run had spent on an axis by the headline's budget, or by its last evaluation if that was sooner."""
    last = float(curve.x[-1])
    if axis == headline:
        return min(last, budget)
    spent, wanted = spending(run, axis), spending(run, headline)
    if spent is None or wanted is None:
        return last
    return min(last, float(np.interp(budget, wanted, spent)))


def leave_out_late(curves: Mapping[str, dict[Pair, Curve]], budget: float | None) -> dict[Pair, str]:
    """Take the runs that were first evaluated beyond the headline's budget out of all axes; what is said of each.

    They have no score by then, and would leave their methods no stretch that all seeds have in common.
    """
    axis = headline_of([axis for axis, found in curves.items() if found])
    if not (found := curves.get(axis)):
        return {}
    cut, said = budget_of(found, axis, budget).value, {}
    for pair, first in [(pair, float(curve.x[0])) for pair, curve in found.items() if curve.x[0] > cut]:
        said[pair] = f"it was first evaluated at {first:,.0f} {AXES[axis]}, beyond the budget of {cut:,.0f}; left out"
        for own in curves.values():
            own.pop(pair, None)
    return said
