"""The panels of a comparison's figures: curves, dots with intervals, bars, and a legend."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter

from rollwise.evaluation.bootstrap import Interval
from rollwise.evaluation.comparison.mean_curves import GapBand, MeanCurve
from rollwise.evaluation.comparison.results import AxisResult, Comparison, MethodResult
from rollwise.evaluation.curves import AXES
from rollwise.reports.drawing import GREY, INK, PALETTE, FigureSpec, legend_label, mark_ticks
from rollwise.reports.series import time_unit

LONGEST_NAME = 26
# Panels in a file, the legend's among them.
FILE_PANELS = 6
DOT_WIDTH = 4.8
_ROW_INCHES, _AXIS_INCHES = 0.22, 0.75


@dataclass(frozen=True)
class Style:
    """How a method is drawn."""

    label: str
    color: str
    linestyle: str
    width: float
    band: bool


@dataclass(frozen=True)
class ComparisonFigure:
    """A figure, and the styles that its legend explains; none where its axes name the methods.

    Attributes:
        spec: The figure.
        legend: The styles.
        closed: Whether it is in the section that is closed at first.
    """

    spec: FigureSpec
    legend: tuple[Style, ...] = ()
    closed: bool = False

    def files(self) -> list[FigureSpec]:
        """As it is saved: the legend as a last panel, and no more than a few panels in a file."""
        panels = list(self.spec.panels)
        if self.legend:
            panels.append(partial(draw_legend, self.legend))
        files = [panels[i : i + FILE_PANELS] for i in range(0, len(panels), FILE_PANELS)]
        if len(files) == 1:
            return [replace(self.spec, panels=tuple(files[0]))]
        return [replace(self.spec, name=f"{self.spec.name}_{i}", panels=tuple(file)) for i, file in enumerate(files, 1)]


def draw_curves(
    comparison: Comparison,
    styles: Mapping[str, Style],
    axis: str,
    label: str,
    pick: Callable[[AxisResult], MeanCurve | None],
    ax: Axes,
) -> None:
    """Every method's mean curve on one axis."""
    longest = _longest(comparison, styles, axis)
    scale, unit = _unit(axis, longest)
    for method in reversed(comparison.methods):  # the best on top
        found = method.axes.get(axis)
        curve = None if found is None else pick(found)
        if curve is not None:
            draw_curve(ax, curve, scale, styles[method.name])
    finish_panel(ax, unit, label, longest / scale)


def draw_curve(ax: Axes, curve: MeanCurve, scale: float, style: Style) -> None:
    """One mean curve, with its band where its style has one; its x divided by `scale`."""
    x, mean = np.array(curve.x) / scale, np.array(curve.mean)
    order = 3.0 if style.color == INK else 1.0 if style.color == GREY else 2.0
    if style.band and curve.sd:
        sd = np.array(curve.sd)
        ax.fill_between(x, mean - sd, mean + sd, color=style.color, alpha=0.13, linewidth=0, zorder=order)
    ax.plot(x, mean, color=style.color, linestyle=style.linestyle, linewidth=style.width, zorder=order)


def draw_pair(comparison: Comparison, styles: Mapping[str, Style], method: MethodResult, label: str, ax: Axes) -> None:
    """One method's mean curve beside the baseline's, on the verdict's axis."""
    axis = comparison.headline_axis
    scale, unit = _unit(axis, _longest(comparison, styles, axis))
    base = comparison.method(comparison.baseline).axes.get(axis)
    own = styles[method.name]
    color = PALETTE[0] if own.color == GREY else own.color
    if base is not None:
        draw_curve(ax, base.curve, scale, Style("", INK, "--", 1.1, False))
    draw_curve(ax, method.axes[axis].curve, scale, Style("", color, "-", 1.8, True))
    ax.set_title(short_label(method.name), fontsize=9, loc="left")
    finish_panel(ax, unit, label, comparison.budgets[axis].value / scale)
    every = [mean for m in comparison.methods if axis in m.axes for mean in m.axes[axis].curve.mean]
    room = 0.15 * (max(every) - min(every)) or 0.1
    ax.set_ylim(min(every) - room, max(every) + room)  # the same in every panel


def draw_gap(style: Style, band: GapBand, axis: str, label: str, height: tuple[float, float], ax: Axes) -> None:
    """A method's difference from the baseline along the budget, with its band."""
    scale, unit = _unit(axis, band.x[-1])
    x = np.array(band.x) / scale
    if band.low:
        ax.fill_between(x, band.low, band.high, color=style.color, alpha=0.18, linewidth=0)
    ax.plot(x, band.mean, color=style.color, linestyle=style.linestyle, linewidth=1.8)
    ax.axhline(0.0, color=INK, linewidth=1.0)
    ax.set_title(short_label(style.label), fontsize=9, loc="left")
    finish_panel(ax, unit, label, x[-1])
    ax.set_ylim(*height)


def draw_dots(
    styles: Mapping[str, Style],
    rows: Mapping[str, tuple[float, Interval | None]],
    neutral: float,
    label: str,
    ax: Axes,
    *,
    thin: Mapping[str, Interval | None] | None = None,
    singles: Mapping[str, Sequence[float]] | None = None,
    percent: bool = False,
) -> None:
    """A dot with an interval for each method; what is infinite is an arrow at the right edge.

    Args:
        styles: How methods are drawn.
        rows: Each method's value and interval, from the top.
        neutral: Where a line is drawn.
        label: The axis'.
        ax: Where to draw.
        thin: Second intervals, drawn thin.
        singles: The single seeds' values, drawn as ticks.
        percent: Write the axis in percent.
    """
    thin, singles = thin or {}, singles or {}
    ends = [end for value, interval in rows.values() for end in (value, *_ends(interval))]
    ends += [end for interval in thin.values() for end in _ends(interval)]
    ends += [value for values in singles.values() for value in values]
    finite = [end for end in ends if math.isfinite(end)] + [neutral]
    span = (max(finite) - min(finite)) or 1.0
    low, high = min(finite) - 0.06 * span, max(finite) + 0.12 * span
    for i, (name, (value, interval)) in enumerate(rows.items()):
        color = styles[name].color
        if second := thin.get(name):
            ax.plot([second.low, second.high], [i, i], color=color, linewidth=0.7, solid_capstyle="butt")
        single = [one for one in singles.get(name, ()) if math.isfinite(one)]
        ax.plot(single, [i] * len(single), marker="|", color=color, markersize=7, alpha=0.6, linestyle="none")
        if interval is not None:
            left, right = (min(end, high) for end in (interval.low, interval.high))
            ax.plot([left, right], [i, i], color=color, linewidth=1.6, solid_capstyle="butt")
        if math.isinf(value) or (interval is not None and math.isinf(interval.high)):
            ax.plot([high], [i], marker=">", color=color, markersize=5, clip_on=False, linestyle="none")
        if math.isfinite(value):
            face = "none" if interval is None else color
            ax.plot([value], [i], marker="o", color=color, markerfacecolor=face, markersize=5, linestyle="none")
    ax.axvline(neutral, color=INK, linewidth=1.0)
    ax.set_xlim(low, high)
    if percent:
        ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    name_rows(ax, styles, list(rows), label)


def draw_pass_at(comparison: Comparison, styles: Mapping[str, Style], ax: Axes) -> None:
    """Every method's last pass@k against k."""
    ks = comparison.pass_at_ks
    for method in reversed(comparison.methods):  # the best on top
        found = [method.measures.get(f"final_pass@{k}") for k in ks]
        if all(found):
            mean, sd = (np.array([getattr(one, name) for one in found]) for name in ("mean", "sd"))
            curve = MeanCurve(x=tuple(ks), mean=tuple(mean), sd=tuple(sd))
            draw_curve(ax, curve, 1.0, styles[method.name])
    ax.set_xscale("log", base=2)
    ax.set_xticks(ks, [str(k) for k in ks])
    ax.set_xlabel("k")
    ax.set_ylabel("pass@k")


def draw_bars(styles: Mapping[str, Style], rows: Mapping[str, float], label: str, ax: Axes) -> None:
    """A bar for each method."""
    ax.barh(range(len(rows)), list(rows.values()), color=[styles[name].color for name in rows], height=0.6)
    ax.xaxis.set_major_formatter(PercentFormatter(1.0))
    ax.set_xlim(left=0)
    name_rows(ax, styles, list(rows), label)


def name_rows(ax: Axes, styles: Mapping[str, Style], names: Sequence[str], label: str) -> None:
    """The methods down the left, the first at the top, and a figure high enough for them."""
    ax.set_yticks(range(len(names)), [short_label(styles[name].label) for name in names])
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.grid(visible=False, axis="y")
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.set_xlabel(label)
    if isinstance(ax.figure, Figure):
        ax.figure.set_figheight(max(1.6, _AXIS_INCHES + _ROW_INCHES * len(names)))


def draw_legend(legend: Sequence[Style], ax: Axes) -> None:
    """The legend alone, for a file."""
    ax.axis("off")
    handles = [Line2D([], [], color=s.color, linestyle=s.linestyle, linewidth=s.width) for s in legend]
    ax.legend(handles, [short_label(style.label) for style in legend], loc="center left", borderaxespad=0)


def finish_panel(ax: Axes, x_label: str, y_label: str, right: float) -> None:
    """Labels, ticks, and the x axis from 0 to `right`."""
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    mark_ticks(ax, x_label)
    ax.set_xlim(0, right)


def _longest(comparison: Comparison, styles: Mapping[str, Style], axis: str) -> float:
    """How far the longest curve goes that is not grey: of many methods a single one may have many times the steps."""
    shown = [m.axes[axis] for m in comparison.methods if axis in m.axes and styles[m.name].color != GREY]
    return max((found.curve.x[-1] for found in shown if found.curve.x), default=comparison.budgets[axis].value)


def _unit(axis: str, longest: float) -> tuple[float, str]:
    """What to divide the values of an axis so long by, and its label."""
    if axis != "wall_s":
        return 1.0, AXES[axis]
    unit, scale = time_unit(longest)
    return scale, f"training time ({unit})"


def _ends(interval: Interval | None) -> tuple[float, ...]:
    return () if interval is None else (interval.low, interval.high)


def short_label(name: str) -> str:
    """A method's name as a figure has it, cut where it is long."""
    return legend_label(name, LONGEST_NAME)
