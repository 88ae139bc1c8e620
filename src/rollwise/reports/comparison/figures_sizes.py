"""A comparison's figure of group sizes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from matplotlib.axes import Axes

from rollwise.evaluation.comparison.mean_curves import MeanCurve
from rollwise.evaluation.comparison.results import Comparison
from rollwise.evaluation.sizes import MIDDLES, GroupSizes
from rollwise.reports.comparison.figures import ComparisonFigure, legend_of
from rollwise.reports.comparison.figures_signals import coloured_among
from rollwise.reports.comparison.panels import Style, draw_curve, finish_panel
from rollwise.reports.drawing import FigureSpec


def sizes_figure(comparison: Comparison, styles: Mapping[str, Style]) -> ComparisonFigure | None:
    """How many groups have which size, and the mean size by success rate, of the methods whose groups differ."""
    names = [m.name for m in comparison.methods if m.name in comparison.signals]
    sizes = {name: found for name in names if (found := comparison.signals[name].sizes) is not None}
    if not sizes:
        return None
    coloured = coloured_among({name: styles[name] for name in sizes})
    believed = any(found.believed.any for found in sizes.values())
    parts = ["histogram", *(["believed"] if believed else []), "realised"]
    panels = tuple(partial(draw_sizes, coloured, sizes, part) for part in parts)
    caption = (
        "How many rollouts groups have, of methods whose groups differ in size, all seeds together: the share of the "
        "groups with each size, and the mean by success rate in tenths, as it was expected when the prompt was "
        "asked for (believed) and as the group's own rollouts had it (realised). A small group's realised rate is "
        "mostly luck."
    )
    return ComparisonFigure(FigureSpec("group_sizes", "Group sizes", caption, panels), legend_of(coloured), closed=True)


def draw_sizes(styles: Mapping[str, Style], sizes: Mapping[str, GroupSizes], part: str, ax: Axes) -> None:
    """A line for each method: the share of groups by size, or the mean size by success rate."""
    for name in reversed(list(sizes)):  # the best on top
        found = sizes[name]
        if part == "histogram":
            x, counts = np.array(found.histogram, dtype=np.float64).T
            y = counts / counts.sum()
        else:
            x, y = MIDDLES, getattr(found, part).means
        draw_curve(ax, MeanCurve(tuple(x), tuple(y), ()), 1.0, styles[name])
    if part == "histogram":
        finish_panel(
            ax, "rollouts of a group", "share of groups", max(found.histogram[-1][0] for found in sizes.values())
        )
    else:
        finish_panel(ax, f"{part} success rate", "mean rollouts", 1.0)
