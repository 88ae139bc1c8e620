"""A comparison's figures, readable with two methods and with twenty-five."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

from matplotlib.axes import Axes

from rollwise.evaluation.comparison.results import Comparison
from rollwise.evaluation.curves import AXES
from rollwise.evaluation.run_measures import short_name
from rollwise.reports.comparison.figures_differences import (
    difference_figure,
    gap_figure,
    others,
    relative_figure,
    share_figure,
)
from rollwise.reports.comparison.panels import (
    DOT_WIDTH,
    ComparisonFigure,
    Style,
    draw_bars,
    draw_curves,
    draw_pair,
    draw_pass_at,
)
from rollwise.reports.comparison.words.sentences import amount
from rollwise.reports.comparison.words.verdict import contenders
from rollwise.reports.drawing import GREY, INK, PALETTE, FigureSpec
from rollwise.runs.lines import enumeration

# With more methods than this besides baseline and oracle, only the best few have a colour.
MOST_COLOURED = len(PALETTE)
BEST_COLOURED = 3
# With more methods than this in all, bands are drawn for the baseline, the oracle and the best alone.
MOST_BANDS = 4
# With fewer k than this pass@k is no curve.
FEWEST_KS = 3

Draw = Callable[[Axes], None]


def build_figures(comparison: Comparison) -> list[ComparisonFigure]:
    """The figures that the comparison has the data for, in the page's order."""
    if not any(method.axes for method in comparison.methods):
        return []
    styles = method_styles(comparison)
    built = [
        score_figure(comparison, styles),
        difference_figure(comparison, styles),
        gap_figure(comparison, styles),
        relative_figure(comparison, styles),
        share_figure(comparison, styles),
        ratio_figure(comparison, styles),
        pass_at_figure(comparison, styles),
        each_figure(comparison, styles),
        cost_figure(comparison, styles),
    ]
    return [figure for figure in built if figure is not None]


def method_styles(comparison: Comparison) -> dict[str, Style]:
    """How each method is drawn: baseline and oracle in ink, a colour for each other, or for the best few of many."""
    ranked = [method.name for method in comparison.methods]
    others = [name for name in ranked if name not in (comparison.baseline, comparison.oracle)]
    best = [method.name for method, _ in contenders(comparison)]
    coloured = others if len(others) <= MOST_COLOURED else (best or others)[:BEST_COLOURED]
    colours = dict(zip(coloured, PALETTE, strict=False))
    all_bands = len(ranked) <= MOST_BANDS
    styles = {}
    for name in ranked:
        if name == comparison.baseline:
            styles[name] = Style(_with_role(name, "baseline"), INK, "-", 2.0, True)
        elif name == comparison.oracle:
            styles[name] = Style(_with_role(name, "oracle"), INK, ":", 1.8, True)
        elif name in colours:
            band = all_bands or name in (best or others)[:1]
            styles[name] = Style(name, colours[name], "-", 1.6, band)
        else:
            styles[name] = Style(name, GREY, "-", 0.8, False)
    return styles


def _with_role(name: str, role: str) -> str:
    return name if name == role else f"{name} ({role})"


def score_figure(comparison: Comparison, styles: Mapping[str, Style]) -> ComparisonFigure:
    """Mean score against each budget."""
    score = short_name(str(comparison.score))
    panels = tuple(
        partial(draw_curves, comparison, styles, axis, score, lambda found: found.curve) for axis in comparison.budgets
    )
    axes = ", ".join(AXES[axis] for axis in comparison.budgets)
    caption = (
        f"{score} against {axes}: means over seeds, each as far as all of the method's runs came by "
        f"{amount(comparison.budgets[comparison.headline_axis].value, comparison.headline_axis)}. "
        f"{'Grey ones may go on beyond the edge. ' if _has_grey(styles) else ''}{_bands(comparison, styles)}"
    )
    return ComparisonFigure(FigureSpec("score", "Score", caption, panels), legend_of(styles))


def ratio_figure(comparison: Comparison, styles: Mapping[str, Style]) -> ComparisonFigure | None:
    """Mean effective task ratio."""
    axes = [axis for axis in ("steps", "tokens") if axis in comparison.budgets]
    if not any(found.ratio for method in comparison.methods for found in method.axes.values()):
        return None
    panels = tuple(
        partial(draw_curves, comparison, styles, axis, "effective task ratio", lambda found: found.ratio)
        for axis in axes
    )
    caption = (
        "Effective task ratio: the share of rollout groups whose rewards differ, so that they teach something; "
        f"averaged over parts of the run, then over seeds. {_bands(comparison, styles)} A high ratio is a means: "
        "whether it pays is what the scores say."
    )
    return ComparisonFigure(
        FigureSpec("effective_task_ratio", "Effective task ratio", caption, panels), legend_of(styles)
    )


def pass_at_figure(comparison: Comparison, styles: Mapping[str, Style]) -> ComparisonFigure | None:
    """pass@k against k at the end of the runs; None for fewer than three k."""
    ks = comparison.pass_at_ks
    if len(ks) < FEWEST_KS:
        return None
    caption = (
        f"pass@k of each run's last evaluation, all k from one sample of {ks[-1]} completions a held-out prompt, so "
        f"that it shows whether few samples gained, or many. Means over seeds. {_bands(comparison, styles)}"
    )
    panel = partial(draw_pass_at, comparison, styles)
    return ComparisonFigure(FigureSpec("pass_at_k", "pass@k", caption, (panel,)), legend_of(styles))


def cost_figure(comparison: Comparison, styles: Mapping[str, Style]) -> ComparisonFigure | None:
    """Time in ask and tell, and rollouts that were not chosen to be trained on."""
    overhead, judging = (
        {method.name: mean for method in comparison.methods if math.isfinite(mean := method.mean(key))}
        for key in ("overhead", "judgment_tokens")
    )
    extra = {
        method.name: (method.mean("probe_rollouts") + method.mean("refill_rollouts")) / rollouts
        for method in comparison.methods
        if (rollouts := method.mean("rollouts")) > 0
    }
    bars = [
        (overhead, "time in ask and tell, of the training time", "of the training time spent in the curriculum"),
        (extra if any(extra.values()) else {}, "rollouts to probe and refill, of all",
         "of the rollouts spent to measure prompts or in place of groups that a gate rejected"),
        (judging, "tokens for judgments, of all", "of the tokens that the policy's judgments take"),
    ]  # fmt: skip
    shown = [bar for bar in bars if bar[0]]
    if not shown:
        return None
    panels = tuple(partial(draw_bars, styles, rows, label) for rows, label, _ in shown)
    words = enumeration([said for _, _, said in shown])
    caption = f"What choosing costs: the share {words}. All of it is charged to the method."
    return ComparisonFigure(FigureSpec("overhead", "Overhead", caption, panels, DOT_WIDTH))


def each_figure(comparison: Comparison, styles: Mapping[str, Style]) -> ComparisonFigure | None:
    """Each method beside the baseline, where they are too many for one figure."""
    if not _has_grey(styles):
        return None
    score, shown = short_name(str(comparison.score)), [method for method, found in others(comparison) if found]
    panels = tuple(partial(draw_pair, comparison, styles, method, score) for method in shown)
    caption = (
        f"Each method's mean {score} with its standard deviation over seeds, beside {comparison.baseline}'s (dashed)."
    )
    return ComparisonFigure(FigureSpec("score_each", "Each method beside the baseline", caption, panels))


def _has_grey(styles: Mapping[str, Style]) -> bool:
    return any(style.color == GREY for style in styles.values())


def legend_of(styles: Mapping[str, Style]) -> tuple[Style, ...]:
    """The styles that differ; all grey methods share one entry."""
    coloured = [style for style in styles.values() if style.color != GREY]
    grey = len(styles) - len(coloured)
    return (*coloured, Style(f"{grey} others", GREY, "-", 0.8, False)) if grey else tuple(coloured)


def _bands(comparison: Comparison, styles: Mapping[str, Style]) -> str:
    banded = [name for name, style in styles.items() if style.band]
    whose = "" if len(banded) == len(comparison.methods) else f", of {enumeration(banded)}"
    said = f"Bands are one standard deviation over seeds{whose}."
    if len({method.seeds for method in comparison.methods if method.seeds}) > 1:
        said += " Methods have different seeds here, so curves can differ by these; the differences below are paired."
    return said
