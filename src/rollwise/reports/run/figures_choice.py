"""Figures of what was sampled: success rates, lanes, categories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes

from rollwise.evaluation.difficulty import Difficulty, difficulty_of
from rollwise.evaluation.dynamics import sums_by_step
from rollwise.evaluation.success_rates import rate_counts, success_map
from rollwise.reports.drawing import (
    BLUE,
    FEW_POINTS,
    GREEN,
    PALETTE,
    WIDE,
    FigureSpec,
    draw_stack,
    draw_trend,
    finish_axes,
    legend_label,
)
from rollwise.reports.run.budgets import any_finite, smoothing, stack_smoothing
from rollwise.reports.run.digest import RolloutDigest, pooled_names
from rollwise.reports.run.figures import figure
from rollwise.reports.series import FloatArray, moving_mean, smoothing_window, thin_evenly
from rollwise.reports.success_map import draw_success_map
from rollwise.runs.group_table import NO_NAME, GroupTable

# Most columns of steps in a heatmap.
MOST_COLUMNS = 80
# A mean over fewer groups than this is noise, and not drawn.
FEWEST_IN_WINDOW = 3


@figure(40, "success rates of the sampled prompts (needs rollouts.jsonl with step and rewards)")
def heatmap_figure(groups: GroupTable) -> FigureSpec | None:
    """Success rates of the sampled prompts over steps, as BOTS draws them (appendix F.4, Figure 7)."""
    counts = rate_counts(groups)
    found = None if counts is None else success_map([counts], MOST_COLUMNS)
    if found is None:
        return None
    span = "a step" if found.width == 1 else f"{found.width} steps"
    caption = (
        f"As BOTS draws it (Figure 7): each column is {span}, each row a success rate, from 0 to 1 in steps of "
        f"1/{len(found.shares) - 1}; the stronger a cell, the greater the share (percent, above) of the groups sampled "
        f"then that had that rate. A rollout succeeds from {groups.rule.words} on. The bottom row (none solved) and "
        "the top row (all solved) teach nothing, but for partial rewards that differ. Dashed: the mean."
    )
    panel = partial(draw_success_map, found=found)
    return FigureSpec("success_rates", "Success rates of the sampled prompts", caption, (panel,), WIDE)


@figure(100, "lanes (needs rollouts.jsonl with step and lane)")
def lanes_figure(digest: RolloutDigest) -> FigureSpec | None:
    """Share of each step's groups by the lane they were chosen through, and how often those groups were mixed."""
    lanes, steps, shares = digest.lane_shares()
    if not lanes:
        return None
    at, mixed = _mixed_by_lane(digest.table, lanes)
    caption = (
        "Why the prompts were chosen: first each lane's share of the step's rollout groups, then the share of the "
        f"lane's groups whose rewards differ; counted in rollouts.jsonl{stack_smoothing(steps)}."
    )
    panels = _panels(lanes, steps, shares, at, mixed, "share mixed")
    return FigureSpec("lanes", "Lanes", caption, panels, WIDE)


def _mixed_by_lane(table: GroupTable, lanes: list[str]) -> tuple[FloatArray, FloatArray]:
    """The steps (S,), and for each shown lane the smoothed share of mixed groups (S, L)."""
    place = {name: i for i, name in enumerate(lanes)}
    shown = np.array([place.get(name, len(lanes) - 1) for name in table.lanes], dtype=np.int64)
    kept = table.in_training & table.judged & (table.lane != NO_NAME)
    kinds = shown[table.lane[kept]]
    steps, counts = sums_by_step(table.step[kept], kinds, len(lanes))
    _, sums = sums_by_step(table.step[kept], kinds, len(lanes), table.mixed[kept].astype(np.float64))
    return steps.astype(np.float64), smooth_ratio(sums, counts)


def _panels(
    names: Sequence[str], steps: FloatArray, shares: FloatArray, at: FloatArray, rates: FloatArray, rate: str
) -> tuple[Callable[[Axes], None], ...]:
    """Each kind's share of a step's groups, stacked, and its smoothed rates (S, K) as lines, where there are any.

    A line has a gap where there is nothing, and single points where there are few.
    """
    labels, colors = [legend_label(name) for name in names], PALETTE[: len(names)]

    def draw_shares(ax: Axes) -> None:
        draw_stack(ax, steps, shares, labels=labels, colors=colors)
        ax.set_ylim(0, 1)
        finish_axes(ax, "training step", "share of groups", legend=True)

    def draw_rates(ax: Axes) -> None:
        x, thin = thin_evenly(at, rates)
        for values, label, color in zip(thin.T, labels, colors, strict=True):
            lonely = np.isfinite(values).sum() <= FEW_POINTS
            ax.plot(x, values, color=color, label=label, marker="o" if lonely else None, markersize=3.5)
        ax.set_ylim(0, 1.02)
        finish_axes(ax, "training step", rate, legend=True)

    return (draw_shares, draw_rates) if any_finite(rates) else (draw_shares,)


@figure(110, "categories (needs rollouts.jsonl with step, category and rewards)")
def categories_figure(groups: GroupTable) -> FigureSpec | None:
    """Each category's share of the groups, and its mean pass rate, over steps."""
    kept = groups.in_training & groups.judged & (groups.category != NO_NAME)
    if not kept.any():
        return None
    names, kinds = pooled_names(groups.categories, groups.category[kept], by_name=True)
    steps, counts = sums_by_step(groups.step[kept], kinds, len(names))
    _, sums = sums_by_step(groups.step[kept], kinds, len(names), groups.solved[kept])
    at, rates = steps.astype(np.float64), smooth_ratio(sums, counts)
    caption = (
        "First each category's share of the step's groups, then the mean pass rate of its groups (share of rollouts "
        f"with {groups.rule.words} or more){stack_smoothing(at)}."
    )
    shares = counts / counts.sum(axis=1, keepdims=True)
    panels = _panels(names, at, shares, at, rates, "mean pass rate")
    return FigureSpec("categories", "Categories", caption, panels, WIDE)


@figure(115, "mean difficulty", when=difficulty_of)
def difficulty_figure(groups: GroupTable, found: Difficulty) -> FigureSpec | None:
    """Mean difficulty of the step's prompts, beside the data set's: SEC's Figure 3."""
    kept = groups.in_training
    if not any_finite(found.sampled[kept]):
        return None
    kept &= np.isfinite(found.sampled)
    steps, row = np.unique(groups.step[kept], return_inverse=True)
    means = np.bincount(row, found.sampled[kept]) / np.bincount(row)

    def draw(ax: Axes) -> None:
        draw_trend(ax, steps.astype(np.float64), means, color=BLUE, label="sampled")
        if np.isfinite(found.mean):
            ax.axhline(found.mean, color=GREEN, linestyle="--", linewidth=1.2, label="data set")
        finish_axes(ax, "training step", f"mean {found.of}", legend=True)

    data = "the folder does not say the data's"
    if np.isfinite(found.mean):
        data = (
            "dashed, the mean of the whole data set: above it the curriculum samples harder prompts than uniform "
            "sampling would"
        )
    words = "level, the number in the category's name" if found.of == "level" else "difficulty, the column of that name"
    caption = f"As SEC's Figure 3: the mean {words}, of the step's prompts; {data}{smoothing(means)}."
    return FigureSpec("difficulty", "Difficulty of the sampled prompts", caption, (draw,), WIDE)


def smooth_ratio(sums: FloatArray, counts: FloatArray) -> FloatArray:
    """Smoothed sums over smoothed counts, (S, K): a mean weighted by groups; NaN where a window has almost none."""
    window = smoothing_window(len(sums))
    top, bottom = moving_mean(sums, window), moving_mean(counts, window)
    known = bottom * window > (FEWEST_IN_WINDOW if window > 1 else 1) - 0.5  # less 0.5, as the mean is rounded
    return np.where(known, top / np.where(known, bottom, 1.0), np.nan)
