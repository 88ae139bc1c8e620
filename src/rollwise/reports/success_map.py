"""Drawing a heat map of success rates, for a run and for a comparison."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from rollwise.evaluation.success_rates import SuccessMap
from rollwise.reports.drawing import BLUE, INK, draw_heatmap, finish_axes, heatmap_legend
from rollwise.reports.series import moving_mean, smoothing_window


def draw_success_map(ax: Axes, found: SuccessMap) -> None:
    """A column for each span of steps, a row for each success rate, the levels above, the mean as a dashed line."""
    edges, levels = np.array(found.edges), len(found.shares)
    rate_edges = (np.arange(levels + 1) - 0.5) / (levels - 1)
    draw_heatmap(ax, edges, rate_edges, np.array(found.shares), color=BLUE)
    known = np.isfinite(found.means)
    means = moving_mean(found.means[known], smoothing_window(int(known.sum())))
    ax.plot(((edges[:-1] + edges[1:]) / 2)[known], means, color=INK, linestyle="--", linewidth=1.2)
    finish_axes(ax, "training step", "success rate of a group")
    ax.set_xlim(edges[0], edges[-1])
    heatmap_legend(ax, color=BLUE)
