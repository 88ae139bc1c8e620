"""All figures of a comparison's page, in its order."""

from __future__ import annotations

from rollwise.evaluation.comparison.results import Comparison
from rollwise.reports.comparison.figures import ComparisonFigure, build_figures, method_styles
from rollwise.reports.comparison.figures_sets import set_figures
from rollwise.reports.comparison.figures_signals import signal_figures
from rollwise.reports.comparison.figures_time import time_figures


def page_figures(comparison: Comparison) -> list[ComparisonFigure]:
    """The figures that the comparison has the data for; those of the sets follow the score's."""
    figures = build_figures(comparison)
    if not figures:
        return []
    styles = method_styles(comparison)
    shown = [figures[0], *set_figures(comparison, styles), *figures[1:], *time_figures(comparison, styles)]
    return [*shown, *signal_figures(comparison, styles)]
