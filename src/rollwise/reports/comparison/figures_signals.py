"""A comparison's figures of what the steps were like: groups, advantages, rewards, judgments, lengths, heat maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from matplotlib.axes import Axes

from rollwise.evaluation.comparison.mean_curves import MeanCurve
from rollwise.evaluation.comparison.results import Comparison
from rollwise.evaluation.curves import AXES
from rollwise.evaluation.signals import SIGNALS
from rollwise.evaluation.sizes import MIDDLES, GroupSizes
from rollwise.evaluation.success_rates import SuccessMap
from rollwise.reports.comparison.figures import MOST_COLOURED, legend_of
from rollwise.reports.comparison.panels import ComparisonFigure, Style, draw_curve, finish_panel, short_label
from rollwise.reports.drawing import GREY, PALETTE, PURPLE, WIDE, FigureSpec
from rollwise.reports.success_map import draw_success_map
from rollwise.reports.words import count

# Most heat maps: the baseline's, and those of the best.
MOST_MAPS = 6
_SHARES = ("mixed", "some_solved", "some_failed", "judge_reward")

_PARTS = "averaged over parts of the run, then over seeds"


def signal_figures(comparison: Comparison, styles: Mapping[str, Style]) -> list[ComparisonFigure]:
    """Those that the runs have the data for, to be shown in a section that is closed at first."""
    draw = partial(_curves, comparison, styles)
    built = [
        draw("group_shares", "Groups by what they teach", ("mixed", "some_solved", "some_failed"),
             "As BOTS draws it (Figure 2): of each step's groups, the share whose rewards differ, that did not all "
             f"fail alike, and that was not all solved; {_PARTS}. Where rewards are 0 or 1 their success rates are "
             "between 0 and 1, above 0, and below 1. What the second lacks to 1 was too hard, the third too easy."),
        draw("learning_signal", "Learning signal and reward", ("abs_advantage", "reward"),
             "As METIS draws it (Figures 3, 4): mean absolute advantage, and mean reward of the step's rollouts on a "
             f"scale from 0 to 1; {_PARTS}. Dashed: 0.5, where binary rewards vary most. The prompts are each method's "
             "own choice, so a high reward is no high score."),
        draw("judgments", "Judgments", ("judge_reward", "prediction_mean", "prediction_std"),
             "As METIS draws it (Figures 6, 10): the judge reward, mean and standard deviation of the predictions over "
             f"the step's candidates, of the methods that predict; {_PARTS}. Predictions of variance are at most 0.25, "
             "those of pass rates at most 1."),
        draw("response_length", "Response length", ("solved_length", "unsolved_length"),
             f"Mean tokens of a completion, of solved rollouts and of the others; {_PARTS}."),
        sizes_figure(comparison, styles),
        maps_figure(comparison, styles),
    ]  # fmt: skip
    return [replace(figure, closed=True) for figure in built if figure is not None]


def _curves(
    comparison: Comparison, styles: Mapping[str, Style], name: str, title: str, signals: Sequence[str], caption: str
) -> ComparisonFigure | None:
    """A panel for each signal that any method has."""
    found = comparison.signals
    shown = [signal for signal in signals if any(signal in own.curves for own in found.values())]
    own = [m.name for m in comparison.methods if m.name in found and any(s in found[m.name].curves for s in shown)]
    if not shown:
        return None
    coloured = _coloured({name: styles[name] for name in own})
    panels = tuple(partial(draw_signal, comparison, coloured, signal) for signal in shown)
    return ComparisonFigure(FigureSpec(name, title, caption, panels), legend_of(coloured))


def _coloured(styles: Mapping[str, Style]) -> dict[str, Style]:
    """Where only a few of many methods are drawn, each has a colour, those of the whole page first."""
    grey = [name for name, style in styles.items() if style.color == GREY]
    free = [color for color in PALETTE if color not in {style.color for style in styles.values()}]
    if len(styles) > MOST_COLOURED or len(grey) > len(free):
        return dict(styles)
    new = {name: replace(styles[name], color=color, width=1.6) for name, color in zip(grey, free, strict=False)}
    return {name: new.get(name, style) for name, style in styles.items()}


def maps_figure(comparison: Comparison, styles: Mapping[str, Style]) -> ComparisonFigure | None:
    """Heat maps of the sampled success rates: the baseline's, then those of the methods that gained most."""
    others = [method.name for method in comparison.methods if method.name != comparison.baseline]
    maps = {
        name: rates
        for name in (comparison.baseline, *others)
        if name in comparison.signals and (rates := comparison.signals[name].rates) is not None
    }
    shown = list(maps)[:MOST_MAPS]
    if not shown:
        return None
    last = max(maps[name].edges[-1] for name in shown)
    panels = tuple(partial(draw_rates, styles[name].label, maps[name], last) for name in shown)
    less = len(maps) - len(shown)
    more = f" Left out: {count(less, 'method')} that gained less." if less else ""
    caption = (
        "As BOTS draws it (Figures 7, 8): success rates of the sampled groups over steps, of all seeds together; the "
        "stronger a cell, the greater the share (percent, above) of the groups sampled then that had that rate. The "
        "bottom row (none solved) and the top row (all solved) teach nothing, but for partial rewards that differ. "
        f"Dashed: the mean.{more}"
    )
    return ComparisonFigure(FigureSpec("success_rates", "Sampled success rates", caption, panels, WIDE))


def sizes_figure(comparison: Comparison, styles: Mapping[str, Style]) -> ComparisonFigure | None:
    """How many groups have which size, and the mean size by success rate, of the methods whose groups differ."""
    names = [m.name for m in comparison.methods if m.name in comparison.signals]
    sizes = {name: found for name in names if (found := comparison.signals[name].sizes) is not None}
    if not sizes:
        return None
    coloured = _coloured({name: styles[name] for name in sizes})
    believed = any(found.believed.any for found in sizes.values())
    parts = ["histogram", *(["believed"] if believed else []), "realised"]
    panels = tuple(partial(draw_sizes, coloured, sizes, part) for part in parts)
    caption = (
        "How many rollouts groups have, of methods whose groups differ in size, all seeds together: the share of the "
        "groups with each size, and the mean by success rate in tenths, as it was expected when the prompt was "
        "asked for (believed) and as the group's own rollouts had it (realised). A small group's realised rate is "
        "mostly luck."
    )
    return ComparisonFigure(FigureSpec("group_sizes", "Group sizes", caption, panels), legend_of(coloured))


def draw_sizes(styles: Mapping[str, Style], sizes: Mapping[str, GroupSizes], part: str, ax: Axes) -> None:
    """A line for each method: the share of groups by size, or the mean size by success rate."""
    for name in reversed(list(sizes)):  # the best on top
        found = sizes[name]
        x, y = found.shares if part == "histogram" else (MIDDLES, getattr(found, part).means)
        draw_curve(ax, MeanCurve(tuple(x), tuple(y), ()), 1.0, styles[name])
        if part != "histogram":
            ax.lines[-1].set(marker="o", markersize=3.5)  # a tenth between two without groups is no line
    if part == "histogram":
        finish_panel(
            ax, "rollouts of a group", "share of groups", max(found.histogram[-1][0] for found in sizes.values())
        )
    else:
        finish_panel(ax, f"{part} success rate", "mean rollouts", 1.0)


def draw_signal(comparison: Comparison, styles: Mapping[str, Style], signal: str, ax: Axes) -> None:
    """What the steps of each method were like, as one of `SIGNALS`, over training steps."""
    shown = [m.name for m in comparison.methods if m.name in styles and signal in comparison.signals[m.name].curves]
    curves = {name: comparison.signals[name].curves[signal] for name in shown}
    for name in reversed(shown):  # the best on top
        draw_curve(ax, curves[name], 1.0, styles[name])
    if signal == "reward":
        ax.axhline(0.5, color=PURPLE, linestyle="--", linewidth=1.0)
    if signal in _SHARES:
        ax.set_ylim(0, 1.02)
    coloured = [curve.x[-1] for name, curve in curves.items() if styles[name].color != GREY]
    finish_panel(ax, AXES["steps"], SIGNALS[signal], max(coloured or [curve.x[-1] for curve in curves.values()]))


def draw_rates(label: str, found: SuccessMap, last: float, ax: Axes) -> None:
    """One method's heat map of success rates, up to the step where the longest of them ends."""
    draw_success_map(ax, found)
    ax.set_xlim(found.edges[0], last)
    ax.set_title(short_label(label), fontsize=9, loc="left", pad=18)
