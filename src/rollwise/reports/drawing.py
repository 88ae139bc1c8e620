"""Drawing a figure's panels with matplotlib: colours, curves, stacks, heatmaps, axes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path as Outline
from matplotlib.ticker import EngFormatter, MaxNLocator

from rollwise.evaluation.curves import finite
from rollwise.reports.series import FloatArray, finite_pair, moving_mean, smoothing_window, thin_evenly, thin_extremes

# Okabe and Ito's palette, told apart under the common kinds of colour blindness. On the page each colour is a CSS
# variable, so that a dark page can have a lighter one.
BLUE, VERMILLION, GREEN, SKY, ORANGE, PURPLE = "#0072b2", "#d55e00", "#009e73", "#56b4e9", "#e69f00", "#cc79a7"
GREY, INK, GRID, PAPER = "#9aa0a6", "#24292f", "#d8dee4", "#fffffe"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILLION)
CSS_NAMES = {
    BLUE: "var(--blue)", VERMILLION: "var(--vermillion)", GREEN: "var(--green)", SKY: "var(--sky)",
    ORANGE: "var(--orange)", PURPLE: "var(--purple)", GREY: "var(--grey)", INK: "currentColor",
    GRID: "var(--grid)", PAPER: "var(--card)",
}  # fmt: skip


def line_styles(*dashes: str) -> list[tuple[str, str]]:
    """Colour and dashes of each line, all colours with the first dashes before any with the next."""
    return [(colour, dash) for dash in dashes for colour in PALETTE]


# Of many single lines; a dashed line shows an aggregate of them.
LINES = line_styles("-", ":", "-.")

# Below this many points a line carries markers, and a stack is bars: one point makes neither line nor area.
FEW_POINTS = 12
# A legend entry longer than this is cut; a legend row has room for this many characters, counting a handle as 8.
LONGEST_LABEL = 32
LEGEND_ROW = 58
LEGEND_HANDLE = 8
# The width of a wide panel, in inches.
WIDE = 4.4
# What an x axis counts, so that its ticks are whole numbers; of some there are thousands.
MANY = ("generated tokens", "rollouts", "FLOPs")
COUNTED = ("training step", "training steps", "times asked", *MANY)
# Ends of lines would break a legend, and a file of SVG with any other of these can't be opened.
_NOT_IN_XML = re.compile("[\x00-\x1f\ufffe\uffff]")
# A heatmap's shares from here on, and the opacity of each: few steps that an eye can name, denser at the low end.
HEAT_LEVELS = (0.0, 0.02, 0.05, 0.08, 0.12, 0.18, 0.25, 0.4)
HEAT_OPACITIES = (0.04, 0.12, 0.23, 0.36, 0.5, 0.66, 0.83, 1.0)


@dataclass(frozen=True)
class FigureSpec:
    """A figure: its panels, drawn one by one on the page and side by side, up to three in a row, in the files.

    Attributes:
        name: The file's stem under `figures/`.
        title: The heading on the page.
        caption: One sentence: what it shows and how it was computed.
        panels: What draws each panel on its axes.
        width: A panel's width in inches; its height is 2.9.
        tabs: A short name for each panel, where the page shows one at a time behind buttons; empty for all at once.
    """

    name: str
    title: str
    caption: str
    panels: tuple[Callable[[Axes], None], ...]
    width: float = 4.0
    tabs: tuple[str, ...] = ()


def draw_trend(
    ax: Axes, x: FloatArray, y: FloatArray, *, color: str, label: str | None = None, linestyle: str = "-"
) -> None:
    """A strong smoothed line over a faint raw one; a short line raw, with markers."""
    x, y = finite_pair(x, y)
    window = smoothing_window(len(y))
    if window == 1:
        marker = "o" if len(y) <= FEW_POINTS else None
        ax.plot(x, y, color=color, label=label, linestyle=linestyle, marker=marker, markersize=3.5)
        return
    ax.plot(*thin_extremes(x, y), color=color, alpha=0.25, linewidth=0.8)
    ax.plot(*thin_evenly(x, moving_mean(y, window)), color=color, label=label, linestyle=linestyle)


def draw_stack(ax: Axes, x: FloatArray, parts: FloatArray, *, labels: Sequence[str], colors: Sequence[str]) -> None:
    """Smoothed (S, K) parts stacked over x (S,), the first at the bottom; bars where there are few points."""
    smooth = moving_mean(parts, smoothing_window(len(x)))
    if len(x) <= FEW_POINTS:
        width = 0.8 * float(np.diff(x).min(initial=np.inf)) if len(x) > 1 else 0.8
        bottom = np.zeros(len(x))
        for part, label, color in zip(smooth.T, labels, colors, strict=True):
            ax.bar(x, part, width, bottom=bottom, color=color, label=label)
            bottom += part
        return
    x, smooth = thin_evenly(x, smooth)
    ax.stackplot(x, smooth.T, labels=list(labels), colors=list(colors), linewidth=0.6, edgecolor=PAPER)
    ax.set_xlim(x[0], x[-1])


def draw_heatmap(ax: Axes, x_edges: FloatArray, y_edges: FloatArray, shares: FloatArray, *, color: str) -> None:
    """Shares (Y, X) as cells between edges (Y + 1,) and (X + 1,), the greater the stronger; 0 and NaN are left blank.

    Each level is one path of one colour and an opacity, so that the page can give it the colour of its scheme.
    """
    levels = [*HEAT_LEVELS[1:], np.inf]
    for low, high, opacity in zip(HEAT_LEVELS, levels, HEAT_OPACITIES, strict=True):
        rows, columns = np.nonzero((shares > low if low == 0 else shares >= low) & (shares < high))
        cells = [
            Outline([(x_edges[i], y_edges[j]), (x_edges[i + 1], y_edges[j]), (x_edges[i + 1], y_edges[j + 1]),
                     (x_edges[i], y_edges[j + 1]), (x_edges[i], y_edges[j])])
            for j, i in zip(rows.tolist(), columns.tolist(), strict=True)
        ]  # fmt: skip
        if cells:
            path = Outline.make_compound_path(*cells)
            ax.add_patch(PathPatch(path, facecolor=color, alpha=opacity, linewidth=0))
    ax.grid(visible=False)
    ax.set_xlim(x_edges[0], x_edges[-1])
    ax.set_ylim(y_edges[0], y_edges[-1])


def heatmap_legend(ax: Axes, *, color: str) -> None:
    """The levels of a heatmap, above the axes: from which share on, in percent."""
    names = ["<2", *(f"{100 * low:.0f}" for low in HEAT_LEVELS[1:-1]), f"{100 * HEAT_LEVELS[-1]:.0f}% or more"]
    handles = [Patch(facecolor=color, alpha=a, label=n) for a, n in zip(HEAT_OPACITIES, names, strict=True)]
    ax.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=len(handles), borderaxespad=0.2,
        columnspacing=0.7, handlelength=0.9, handletextpad=0.3,
    )  # fmt: skip


def finish_axes(ax: Axes, x_label: str, y_label: str, legend: bool = False) -> None:
    """Labels, ticks, and the legend above the axes, where it can hide no data."""
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    mark_ticks(ax, x_label)
    low, high = ax.dataLim.intervalx
    if x_label == "training step" and high - low < 1:
        ax.set_xlim((low + high) / 2 - 1.5, (low + high) / 2 + 1.5)  # one step: no fractions of a step on the axis
    if legend:
        labels = ax.get_legend_handles_labels()[1]
        longest = max(len(label) for label in labels) + LEGEND_HANDLE
        columns = len(labels) if sum(map(len, labels)) + LEGEND_HANDLE * len(labels) <= LEGEND_ROW else 0
        ax.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=columns or max(1, LEGEND_ROW // longest),
            borderaxespad=0.2,
            columnspacing=1.2,
            handlelength=1.6,
        )


def mark_ticks(ax: Axes, x_label: str) -> None:
    """About five ticks on the x axis; whole numbers where it counts something, as 20k where it counts many."""
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=x_label in COUNTED))
    if x_label in MANY:
        ax.xaxis.set_major_formatter(EngFormatter(sep=""))


def from_zero(ax: Axes, values: FloatArray) -> None:
    """Start the y axis at 0, unless there are values below."""
    known = finite(values)
    if known.min() >= 0:
        ax.set_ylim(0, 1.06 * (float(known.max()) or 1.0))


def legend_label(name: str, longest: int = LONGEST_LABEL) -> str:
    """A name of the user's as matplotlib shows it in a legend, cut where it is long; half a surrogate pair is `?`."""
    name = _NOT_IN_XML.sub(" ", name.encode("utf-8", errors="replace").decode())
    name = name if len(name) <= longest else name[: longest - 1] + "…"
    return f" {name}" if name.startswith("_") else name  # matplotlib leaves out labels that begin with "_"
