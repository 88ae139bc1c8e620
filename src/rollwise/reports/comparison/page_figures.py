"""All figures of a comparison's page, in its order."""

from __future__ import annotations

from rollwise.evaluation.comparison.results import Comparison
from rollwise.reports.comparison.figures import build_figures, method_styles
from rollwise.reports.comparison.figures_sets import set_difference_figure, set_score_figure
from rollwise.reports.comparison.figures_signals import signal_figures
from rollwise.reports.comparison.figures_time import phases_figure, speed_figure
from rollwise.reports.comparison.panels import ComparisonFigure

# Figures of the sets, by the figure that they follow.
_BY_SET = {"score": set_score_figure, "difference": set_difference_figure}


def page_figures(comparison: Comparison) -> list[ComparisonFigure]:
    """The figures that the comparison has the data for."""
    figures, styles = build_figures(comparison), method_styles(comparison)
    found: list[ComparisonFigure | None] = []
    for figure in figures:
        found.append(figure)
        if build := _BY_SET.get(figure.spec.name):
            found.append(build(comparison, styles))
    found += [speed_figure(comparison, styles), phases_figure(comparison, styles)] if figures else []
    found += signal_figures(comparison, styles) if figures else []
    return [figure for figure in found if figure is not None]
