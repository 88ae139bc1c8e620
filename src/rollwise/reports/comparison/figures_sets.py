"""A comparison's figures of its named evaluation sets: each set's curves, and its differences from the baseline."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from rollwise.evaluation.comparison.results import Comparison
from rollwise.evaluation.curves import AXES
from rollwise.evaluation.run_measures import short_name
from rollwise.reports.comparison.figures import legend_of
from rollwise.reports.comparison.panels import DOT_WIDTH, ComparisonFigure, Style, draw_curves, draw_dots
from rollwise.reports.drawing import FigureSpec


def set_score_figure(comparison: Comparison, styles: Mapping[str, Style]) -> ComparisonFigure | None:
    """A panel with every method's mean curve for each set that any of them was evaluated on; None without sets."""
    axis = comparison.headline_axis
    panels = tuple(
        partial(draw_curves, own, styles, axis, short_name(str(own.score)), lambda found: found.curve)
        for own in comparison.sets.values()
        if axis in own.budgets
    )
    if not panels:
        return None
    caption = (
        f"The score on each evaluation set against {AXES[axis]}: means over seeds, bands as above. The score above is "
        f"made from them: {comparison.aggregate}."
    )
    spec = FigureSpec("score_by_set", "Score on each set", caption, panels)
    return ComparisonFigure(spec, legend_of(styles))


def set_difference_figure(comparison: Comparison, styles: Mapping[str, Style]) -> ComparisonFigure | None:
    """A panel with every method's difference from the baseline for each set; None where there is none."""
    panels = []
    for own in comparison.sets.values():
        found = [(method.name, own.on_headline(method)) for method in own.methods]
        gains = {name: result.score.difference for name, result in found if result is not None}
        rows = {name: (gain.mean, gain.interval) for name, gain in gains.items() if gain is not None}
        if rows:
            label = f"{short_name(str(own.score))} at the budget, from {comparison.baseline}"
            panels.append(partial(draw_dots, styles, rows, 0.0, label))
    if not panels:
        return None
    caption = (
        f"Paired differences from {comparison.baseline} on each set at equal {AXES[comparison.headline_axis]}, with "
        "95 % bootstrap intervals over seeds; an open dot has too few seeds for one. With many sets and methods some "
        "intervals leave out 0 by chance alone."
    )
    spec = FigureSpec("difference_by_set", "Difference on each set", caption, tuple(panels), DOT_WIDTH)
    return ComparisonFigure(spec)
