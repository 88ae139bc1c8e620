"""A comparison's figures of differences from the baseline: with intervals, along the budget, as ratios and shares."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from rollwise.evaluation.comparison.estimates import Difference
from rollwise.evaluation.comparison.results import AxisResult, Comparison, MethodResult
from rollwise.evaluation.curves import AXES
from rollwise.evaluation.run_measures import short_name
from rollwise.reports.comparison.panels import DOT_WIDTH, ComparisonFigure, Style, draw_dots, draw_gap
from rollwise.reports.drawing import GREY, FigureSpec


def others(comparison: Comparison) -> list[tuple[MethodResult, AxisResult | None]]:
    """Every method but the baseline, with what it has on the headline's axis."""
    found = [(method, comparison.on_headline(method)) for method in comparison.methods]
    return [(method, result) for method, result in found if method.name != comparison.baseline]


def difference_figure(comparison: Comparison, styles: Mapping[str, Style]) -> ComparisonFigure | None:
    """Differences from the baseline, with intervals."""
    score = short_name(str(comparison.score))
    rows: dict[str, dict[str, Difference]] = {"at the budget": {}, "mean over the budget": {}}
    for method, found in others(comparison):
        for label, summary in zip(rows, (found.score, found.area) if found else (), strict=False):
            if summary.difference:
                rows[label][method.name] = summary.difference
    panels = []
    for label, gains in rows.items():
        if gains:
            dots = {name: (gain.mean, gain.interval) for name, gain in gains.items()}
            thin = {name: gain.t_interval for name, gain in gains.items()}
            title = f"{score} {label}, from {comparison.baseline}"
            panels.append(partial(draw_dots, styles, dots, 0.0, title, thin=thin))
    if not panels:
        return None
    caption = (
        f"Paired differences from {comparison.baseline} at equal {AXES[comparison.headline_axis]}, with 95 % intervals "
        "over seeds: thin the t interval, thick the bootstrap; an open dot has too few seeds for one. The vertical "
        "line is no difference."
    )
    return ComparisonFigure(FigureSpec("difference", "Difference from the baseline", caption, tuple(panels), DOT_WIDTH))


def gap_figure(comparison: Comparison, styles: Mapping[str, Style]) -> ComparisonFigure | None:
    """The difference from the baseline along the budget, a panel for each method that has a colour."""
    axis, score = comparison.headline_axis, short_name(str(comparison.score))
    bands = {m.name: found.gap for m, found in others(comparison) if found and found.gap}
    bands = {name: band for name, band in bands.items() if styles[name].color != GREY}
    if not bands:
        return None
    label = f"{score}, from {comparison.baseline}"
    ends = [end for band in bands.values() for end in (*band.mean, *band.low, *band.high)]
    room = 0.05 * (max(ends) - min(ends)) or 0.1
    height = min(ends) - room, max(ends) + room  # the same in every panel
    panels = tuple(partial(draw_gap, styles[name], band, axis, label, height) for name, band in bands.items())
    caption = (
        f"Paired difference from {comparison.baseline} all along the budget: the mean over seeds, and a 95 % band for "
        "the whole curve. Where the band leaves out 0 the method was ahead or behind at every such place at once; a "
        "single place's t interval is narrower. Of few seeds the band is too narrow; of fewer than three there is none."
    )
    return ComparisonFigure(FigureSpec("difference_curve", "Difference along the budget", caption, panels))


def relative_figure(comparison: Comparison, styles: Mapping[str, Style]) -> ComparisonFigure | None:
    """TTB and BSF with intervals."""
    shown = {method.name: found for method, found in others(comparison) if found is not None}
    times, bests = (
        {name: (one.value, one.interval) for name, one in values.items() if not math.isnan(one.value)}
        for values in ({n: a.ttb[100] for n, a in shown.items()}, {n: a.bsf[100] for n, a in shown.items()})
    )
    singles = {name: found.ttb[100].singles for name, found in shown.items()}
    unit = AXES[comparison.headline_axis]
    labels = (f"time to baseline, TTB(100 %), in {unit}", f"best so far, BSF(100 %), in {unit}")
    panels = tuple(
        partial(draw_dots, styles, found, 1.0, label, singles=seeds)
        for label, found, seeds in zip(labels, (times, bests), (singles, None), strict=True)
        if found
    )
    if not panels:
        return None
    caption = (
        f"TTB: time to reach {comparison.baseline}'s best score (left of the line is faster; an arrow goes on to "
        "never), and BSF: best score so far (right of the line is better), as ratios; of the curves averaged over "
        "seeds, with 95 % bootstrap intervals. Ticks are the single seeds' TTB; seeds that never get there have none."
    )
    title = "Time to baseline (TTB), best so far (BSF)"
    return ComparisonFigure(FigureSpec("ttb_bsf", title, caption, panels, DOT_WIDTH))


def share_figure(comparison: Comparison, styles: Mapping[str, Style]) -> ComparisonFigure | None:
    """Each method's share of the oracle's gain, where the oracle gains."""
    labels = {"score": "at the budget", "area": "mean over the budget"}
    panels = []
    for key, label in labels.items():
        rows = {m.name: (share.value, share.interval) for m, _ in others(comparison) if (share := m.shares.get(key))}
        if rows:
            panels.append(partial(draw_dots, styles, rows, 1.0, f"share of the gain {label}", percent=True))
    if not panels:
        return None
    caption = (
        f"Each method's gain over {comparison.baseline} as a share of the oracle's, with 95 % bootstrap intervals over "
        "seeds. An oracle at a pass rate of 0.5 is the limit of the frontier idea, not of learning: 100 % is no bound."
    )
    return ComparisonFigure(FigureSpec("oracle_share", "Share of the oracle's gain", caption, tuple(panels), DOT_WIDTH))
