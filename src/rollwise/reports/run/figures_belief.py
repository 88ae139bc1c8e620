"""Figures of belief against outcome: the reliability curve, correlation and AUC over the steps, sizes of groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter
from numpy.typing import NDArray

from rollwise.evaluation.beliefs import FEWEST_BELIEFS, beliefs_of
from rollwise.evaluation.calibration import expected_contrast, pearson_correlation, reliability_curve, roc_auc
from rollwise.evaluation.curves import finite
from rollwise.evaluation.sizes import MIDDLES, sizes_of
from rollwise.reports.drawing import BLUE, GREY, INK, ORANGE, VERMILLION, WIDE, FigureSpec, finish_axes
from rollwise.reports.run.budgets import any_finite
from rollwise.reports.run.figures import figure
from rollwise.reports.series import FloatArray
from rollwise.runs.group_table import NO_STEP, GroupTable

BINS = 10
# The steps are cut into at most this many spans; each measure is taken within a span.
MOST_SPANS = 20
# A span with fewer groups than this gives a correlation that is mostly noise.
FEWEST_IN_SPAN = 30


@figure(120, "belief against outcome (needs rollouts.jsonl with predicted, and rewards in the run's range)")
def reliability_figure(groups: GroupTable) -> FigureSpec | None:
    """Mean outcome by belief, and how many groups each belief had."""
    beliefs = beliefs_of(groups)
    if beliefs is None:
        return None
    curve = reliability_curve(beliefs.predicted, beliefs.outcome, bins=BINS)
    known = curve.count > 0

    def draw_curve(ax: Axes) -> None:
        ax.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1.0, label="calibrated")
        ax.plot(curve.predicted[known], curve.outcome[known], color=BLUE, marker="o", markersize=4, label="groups")
        ax.axhline(float(beliefs.outcome.mean()), color=INK, linestyle=":", linewidth=1.0, label="base rate")
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1.02)
        finish_axes(ax, "mean score expected at ask", "mean score that came", legend=True)

    def draw_counts(ax: Axes) -> None:
        ax.bar((curve.edges[:-1] + curve.edges[1:]) / 2, curve.count, 0.86 / BINS, color=BLUE)
        ax.set_xlim(0, 1)
        ax.yaxis.set_major_formatter(EngFormatter(sep=""))
        finish_axes(ax, "mean score expected at ask", "groups")

    caption = (
        f"Reliability: groups in {BINS} bins by the mean score that the curriculum expected when it asked (predicted), "
        f"against the mean score of their rollouts; n = {len(beliefs.predicted):,} groups. On the dashed line beliefs "
        "are right on average. Then how many groups each bin has."
    )
    return FigureSpec("reliability", "Belief against outcome", caption, (draw_curve, draw_counts), WIDE)


@figure(130, "belief over the steps (needs the same at several steps)")
def tracking_figure(groups: GroupTable) -> FigureSpec | None:
    """Pearson's correlation and ROC AUC within spans of steps, as in BOTS's Figure 5."""
    beliefs = beliefs_of(groups)
    if beliefs is None:
        return None
    score = expected_contrast(beliefs.predicted)
    found = tracking_panel(beliefs.step, beliefs.predicted, beliefs.outcome, score, beliefs.mixed, levels=[0.5])
    if found is None:
        return None
    panel, spans = found
    caption = (
        f"As BOTS's Figure 5, within {spans} spans of steps: Pearson's correlation of expected and realised mean "
        "score, and ROC AUC of telling prompts whose rewards differ from the others by how near to 0.5 the "
        "expectation was (0.5, dashed, is chance)."
    )
    return FigureSpec("belief_over_steps", "Belief over the steps", caption, (panel,), WIDE)


def span_starts(step: NDArray[np.int64]) -> list[int]:
    """Where spans of about as many groups begin, and the end, in (B,) steps that don't decrease; no step is split."""
    spans = min(MOST_SPANS, len(step) // max(FEWEST_IN_SPAN, FEWEST_BELIEFS))
    if spans < 1:
        return [0]
    wanted = np.linspace(0, len(step), spans + 1).round().astype(int)
    cuts = [0, *np.searchsorted(step, step[wanted[1:-1]], side="left").tolist(), len(step)]
    return sorted(set(cuts))


def tracking_panel(
    step: NDArray[np.int64],
    predicted: FloatArray,
    came: FloatArray,
    score: FloatArray,
    mixed: NDArray[np.bool_],
    *,
    levels: Sequence[float],
) -> tuple[Callable[[Axes], None], int] | None:
    """Draws two measures within spans of steps, with dashed lines at some levels; and how many spans.

    They are the correlation of what was predicted of M groups and what came, and how well `score` tells mixed groups.
    None for fewer than two spans, and where no measure is defined.
    """
    order = np.argsort(step, kind="stable")
    order = order[step[order] != NO_STEP]
    parts = [order[a:b] for a, b in pairwise(span_starts(step[order]))]
    at = np.array([step[part].mean() for part in parts])
    correlation = np.array([pearson_correlation(predicted[part], came[part]) for part in parts])
    auc = np.array([roc_auc(score[part], mixed[part]) for part in parts])
    if len(parts) < 2 or not (any_finite(correlation) or any_finite(auc)):
        return None

    def draw(ax: Axes) -> None:
        for values, color, label in [(correlation, BLUE, "Pearson correlation"), (auc, ORANGE, "ROC AUC")]:
            ax.plot(at, values, color=color, marker="o", markersize=3.5, label=label)
        for level in levels:
            ax.axhline(level, color=GREY, linestyle="--", linewidth=1.0)
        ax.set_ylim(1.06 * float(finite(correlation).min(initial=0.0)), 1.02)
        finish_axes(ax, "training step", "", legend=True)

    return draw, len(parts)


@figure(105, "group sizes", when=sizes_of)
def sizes_figure(groups: GroupTable) -> FigureSpec | None:
    """How many groups have which size, and the mean size by believed and by realised success rate."""
    found = sizes_of(groups)
    if found is None:
        return None

    def draw_histogram(ax: Axes) -> None:
        sizes, counts = zip(*found.histogram, strict=True)
        ax.bar(sizes, counts, 0.8, color=BLUE)
        finish_axes(ax, "rollouts of a group", "groups")

    def draw_means(ax: Axes) -> None:
        for part, color, label in ((found.believed, BLUE, "believed"), (found.realised, VERMILLION, "realised")):
            if part.any:
                ax.plot(MIDDLES, part.means, color=color, label=label, marker="o", markersize=3.5)
        ax.set_xlim(0, 1)
        finish_axes(ax, "success rate", "mean rollouts", legend=True)

    caption = (
        f"How many rollouts the groups have, {found.mean:.1f} on the average, and the mean by success rate in tenths: "
        "by the rate that was expected when the prompt was asked for (believed), and by the share of the group's own "
        "rollouts that succeeded (realised). A small group's realised rate is mostly luck: 0 and 1 are common there."
    )
    return FigureSpec("group_sizes", "Group sizes", caption, (draw_histogram, draw_means), WIDE)
