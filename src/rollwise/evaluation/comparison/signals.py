"""What each method's steps were like, over its runs."""

from __future__ import annotations

from collections.abc import Mapping

from rollwise.evaluation.comparison.mean_curves import MethodSignals
from rollwise.evaluation.comparison.methods import mean_of_parts
from rollwise.evaluation.comparison.results import Comparison
from rollwise.evaluation.signals import SIGNALS, RunSignals
from rollwise.evaluation.sizes import join_sizes
from rollwise.evaluation.success_rates import success_map

# Most columns of steps in a method's heat map.
MOST_COLUMNS = 30


def method_signals(comparison: Comparison, runs: Mapping[tuple[str, int], RunSignals]) -> dict[str, MethodSignals]:
    """Of each method that has a curve over steps, in a stretch that its runs have in common, as far as that goes.

    Args:
        comparison: says which runs are compared, and how far their methods' curves go.
        runs: by method and seed.
    """
    found = {}
    for method in comparison.methods:
        if "steps" not in method.axes or not (x := method.axes["steps"].curve.x):
            continue
        end, own = x[-1], [runs[method.name, seed] for seed in method.seeds]
        curves = {name: mean_of_parts([run.curves[name] for run in own if name in run.curves], end) for name in SIGNALS}
        rates = success_map([run.rates for run in own if run.rates is not None], MOST_COLUMNS, end)
        known = {name: curve for name, curve in curves.items() if curve is not None}
        found[method.name] = MethodSignals(known, rates, join_sizes([r.sizes for r in own if r.sizes is not None]))
    return found
