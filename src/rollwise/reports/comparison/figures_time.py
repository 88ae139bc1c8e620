"""A comparison's figures of time: how fast each method is beside the baseline, and where its steps' time goes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from matplotlib.axes import Axes

from rollwise.evaluation.bootstrap import Interval
from rollwise.evaluation.comparison.estimates import Summary
from rollwise.evaluation.comparison.results import Comparison, MethodResult
from rollwise.evaluation.phases import EVALUATION, PHASES, REST
from rollwise.reports.comparison.panels import DOT_WIDTH, ComparisonFigure, Style, draw_dots, name_rows
from rollwise.reports.drawing import FigureSpec
from rollwise.reports.phases import PHASE_COLOURS, phase_label


def speed_figure(comparison: Comparison, styles: Mapping[str, Style]) -> ComparisonFigure | None:
    """Seconds a step and tokens a second, over the baseline's."""
    labels = {"step_time_ratio": "seconds a step", "throughput_ratio": "generated tokens a second"}
    panels = []
    for key, label in labels.items():
        rows = {
            method.name: (found.mean, _interval(found))
            for method in comparison.methods
            if method.name != comparison.baseline and (found := method.measures.get(key)) and math.isfinite(found.mean)
        }
        if rows:
            text = f"{label}, over {comparison.baseline}'s"
            panels.append(partial(draw_dots, styles, rows, 1.0, text))
    if not panels:
        return None
    caption = (
        f"Speed beside {comparison.baseline}'s run of the same seed (METIS, Figure 5), with 95 % bootstrap intervals "
        "over seeds: seconds of training a step (left of the line is faster) and generated tokens a second of training "
        "(right of it is faster). Evaluations are left out. It tells methods apart only where the runs had the machine "
        "to themselves."
    )
    title = "Speed beside the baseline"
    return ComparisonFigure(FigureSpec("speed", title, caption, tuple(panels), DOT_WIDTH))


def _interval(found: Summary) -> Interval | None:
    """That of a ratio whose baseline is 1 in every seed."""
    between = None if found.difference is None else found.difference.interval
    return None if between is None else Interval(1 + between.low, 1 + between.high)


def phases_figure(comparison: Comparison, styles: Mapping[str, Style]) -> ComparisonFigure | None:
    """A bar for each method: the mean seconds of a step, by phase."""
    rows = {method.name: found for method in comparison.methods if (found := step_by_phase(method))}
    if not rows:
        return None
    shown = [phase for phase in (*PHASES, REST) if any(phase in found for found in rows.values())]

    def draw(ax: Axes) -> None:
        left = [0.0] * len(rows)
        for phase in shown:
            widths = [found.get(phase, 0.0) for found in rows.values()]
            ax.barh(range(len(rows)), widths, left=left, color=PHASE_COLOURS[phase], height=0.6)
            left = [a + b for a, b in zip(left, widths, strict=True)]
        ax.set_xlim(left=0)
        name_rows(ax, styles, list(rows), "seconds a step")

    caption = (
        "Mean seconds of a training step by phase, over the whole run and then over seeds (BOTS, Figure 4). The rest "
        "is what the phases leave of the training time; evaluations are not in it."
    )
    legend = tuple(Style(phase_label(phase), PHASE_COLOURS[phase], "-", 4.0, False) for phase in shown)
    return ComparisonFigure(FigureSpec("time_by_phase", "Time by phase", caption, (draw,), DOT_WIDTH), legend)


def step_by_phase(method: MethodResult) -> dict[str, float]:
    """A method's mean seconds of a step in each phase and in the rest; empty where its runs recorded no phase."""
    means = {phase: method.mean(f"time/{phase}") for phase in PHASES if phase != EVALUATION}
    known = {phase: mean for phase, mean in means.items() if math.isfinite(mean)}
    if not known:
        return {}
    rest = method.mean("step_time") - sum(known.values())
    return {**known, REST: rest} if rest > 0 else known
