"""The curves of a simulated comparison, as a figure; needs matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from rollwise.evaluation.sizes import MIDDLES, GroupSizes
from rollwise.reports.drawing import GRID, INK, FigureSpec, draw_trend, finish_axes, legend_label, line_styles
from rollwise.reports.figure_files import save_figure
from rollwise.reports.series import finite_pair, moving_mean, smoothing_window
from rollwise.simulation.config import SimulateConfig
from rollwise.simulation.log import method_sizes
from rollwise.simulation.table import Run, aggregate

CURVES_DRAWN = 6


def draw_curves(config: SimulateConfig, runs: Sequence[Run], out: str | Path) -> Path:
    """Write `curves.png` and `curves.svg`: effective ratio and score against rollouts, mean over seeds.

    Of many methods only the baseline and the best are named, the others grey. Where groups differ in size, `sizes.png`
    and `sizes.svg` show how.
    """
    key = "effective_ratio" if config.replay is not None else "score"
    numbers = aggregate(config, runs)
    best = sorted(
        (name for name in numbers if name != config.baseline), key=lambda name: -(numbers[name][key]["mean"] or 0)
    )
    styles = line_styles("-", "--")
    named = dict(zip(best if len(best) <= len(styles) else best[:CURVES_DRAWN], styles, strict=False))
    named[config.baseline] = (INK, "-")
    title = "SIMULATED" + (" (replay: nothing is learnt)" if config.replay else "")

    def panel(name: str, label: str, *, last: bool) -> Any:
        def draw(ax: Any) -> None:
            for method in [*(m for m in best if m not in named), *named]:
                x, y = finite_pair(*_curve([run for run in runs if run["method"] == method], name))
                if method in named:
                    draw_trend(ax, x, y, color=named[method][0], linestyle=named[method][1], label=legend_label(method))
                else:
                    ax.plot(x, moving_mean(y, smoothing_window(len(y))), color=GRID, linewidth=1.0, zorder=0)
            ax.set_title(title, fontsize=9)
            ax.set_xlabel("rollouts")
            ax.set_ylabel(label)
            if last:
                ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))

        return draw

    learning = config.replay is None
    panels = [panel("effective_ratio", "effective task ratio", last=not learning)]
    panels += [panel("score", "score on held-out prompts", last=True)] if learning else []
    save_figure(FigureSpec("curves", "", "", tuple(panels), width=6.0), Path(out))
    if sizes := {name: found for name, found in method_sizes(runs).items() if name in named}:
        save_figure(FigureSpec("sizes", "", "", size_panels(sizes, named, title), width=5.0), Path(out))
    return Path(out) / "curves.png"


def size_panels(
    sizes: Mapping[str, GroupSizes], styles: Mapping[str, tuple[str, str]], title: str
) -> tuple[Callable[[Axes], None], ...]:
    """The share of groups by size, and the mean size by believed and realised success rate; a line for each method."""

    def histogram(ax: Axes) -> None:
        for name, found in sizes.items():
            ax.plot(*found.shares, color=styles[name][0], linestyle=styles[name][1])
        ax.set_title(title, fontsize=9)
        finish_axes(ax, "rollouts of a group", "share of groups")

    def means(ax: Axes, part: str) -> None:
        for name, found in sizes.items():
            y, (color, line) = getattr(found, part).means, styles[name]
            ax.plot(MIDDLES, y, color=color, linestyle=line, marker=".", label=legend_label(name))
        ax.set_title(title, fontsize=9)
        finish_axes(ax, f"{part} success rate", "mean rollouts")
        if part == "realised":  # the last; above a panel, names of ten methods would leave no room for it
            ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))

    believed = ["believed"] if any(found.believed.any for found in sizes.values()) else []
    return (histogram, *(partial(means, part=part) for part in (*believed, "realised")))


def _curve(runs: Sequence[Run], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Mean over seeds, point by point, as far as all of them went: rollouts (T,) and the number (T,).

    A step's score is that of before its rollouts, so the curve begins at 0, and ends with the score of after all.
    """
    x, y = ([run["curves"][key] for run in runs] for key in ("rollouts", name))
    if name == "score":
        x, y = [[0, *own] for own in x], [[*own, run["results"]["score"]] for own, run in zip(y, runs, strict=True)]
    points = min(map(len, x))
    x_mean, y_mean = (np.array([own[:points] for own in each], dtype=np.float64).mean(axis=0) for each in (x, y))
    return x_mean, y_mean
