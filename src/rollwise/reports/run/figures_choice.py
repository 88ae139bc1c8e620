"""Figures of what was sampled: success rates, lanes, categories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from rollwise.evaluation import RunData
from rollwise.evaluation.difficulty import Difficulty, sampled_difficulty
from rollwise.evaluation.dynamics import success_rate_heatmap, sums_by_step
from rollwise.reports.drawing import (
    BLUE,
    FEW_POINTS,
    GREEN,
    INK,
    PALETTE,
    WIDE,
    FigureSpec,
    draw_heatmap,
    draw_stack,
    draw_trend,
    finish_axes,
    heatmap_legend,
    legend_label,
)
from rollwise.reports.run.budgets import any_finite, smoothing, stack_smoothing
from rollwise.reports.run.digest import MOST_LANES, OTHER_LANES, RolloutDigest
from rollwise.reports.run.figures import figure
from rollwise.reports.series import FloatArray, moving_mean, smoothing_window, thin_evenly
from rollwise.runs.group_table import NO_NAME, NO_STEP, GroupTable, is_real
from rollwise.runs.lines import Faults

# Most columns of steps in a heatmap, and most success rates besides 0.
MOST_COLUMNS = 80
MOST_RATES = 16
# A mean over fewer groups than this is noise, and not drawn.
FEWEST_IN_WINDOW = 3


@figure(40, "success rates of the sampled prompts (needs rollouts.jsonl with step and rewards)")
def heatmap_figure(groups: GroupTable) -> FigureSpec | None:
    """Success rates of the sampled prompts over steps, as BOTS draws them (appendix F.4, Figure 7)."""
    kept = groups.train & groups.judged & (groups.step != NO_STEP)
    steps, rates, counts = groups.step[kept], groups.solved[kept], groups.count[kept]
    if not steps.size:
        return None
    size = Counter(counts.tolist()).most_common(1)[0][0]
    levels = min(max(size, 1), MOST_RATES) + 1
    first, last = int(steps.min()), int(steps.max())
    width = -(-(last - first + 1) // MOST_COLUMNS)
    edges = np.arange(first, last + width + 1, width, dtype=np.float64) - 0.5
    shares = success_rate_heatmap(steps, rates, edges, levels)
    rate_edges = (np.arange(levels + 1) - 0.5) / (levels - 1)
    means = (shares * np.linspace(0, 1, levels)[:, None]).sum(axis=0)
    centres = (edges[:-1] + edges[1:]) / 2

    def draw(ax: Axes) -> None:
        draw_heatmap(ax, edges, rate_edges, shares, color=BLUE)
        window = smoothing_window(int(np.isfinite(means).sum()))
        known = np.isfinite(means)
        ax.plot(centres[known], moving_mean(means[known], window), color=INK, linestyle="--", linewidth=1.2)
        finish_axes(ax, "training step", "success rate of a group")
        ax.set_xlim(edges[0], edges[-1])
        heatmap_legend(ax, color=BLUE)

    span = "a step" if width == 1 else f"{width} steps"
    caption = (
        f"As BOTS draws it (Figure 7): each column is {span}, each row a success rate, from 0 to 1 in steps of "
        f"1/{levels - 1}; the stronger a cell, the greater the share (percent, above) of the groups sampled then that "
        f"had that rate. A rollout succeeds from {groups.rule.words} on. The bottom row (all failed) and the "
        "top row (all solved) teach nothing. "
        "Dashed: the mean."
    )
    return FigureSpec("success_rates", "Success rates of the sampled prompts", caption, (draw,), WIDE)


@figure(100, "lanes (needs rollouts.jsonl with step and lane)")
def lanes_figure(digest: RolloutDigest) -> FigureSpec | None:
    """Share of each step's groups by the lane they were chosen through, and how often those groups were mixed."""
    lanes, steps, shares = digest.lane_shares()
    if not lanes:
        return None
    labels, colors = [legend_label(lane) for lane in lanes], PALETTE[: len(lanes)]
    at, mixed = _mixed_by_lane(digest.table, lanes)

    def draw_shares(ax: Axes) -> None:
        draw_stack(ax, steps, shares, labels=labels, colors=colors)
        ax.set_ylim(0, 1)
        finish_axes(ax, "training step", "share of groups", legend=True)

    def draw_mixed(ax: Axes) -> None:
        _draw_rates(ax, at, mixed, labels=labels, colors=colors)
        finish_axes(ax, "training step", "share mixed", legend=True)

    caption = (
        "Why the prompts were chosen: first each lane's share of the step's rollout groups, then the share of the "
        f"lane's groups whose rewards differ; counted in rollouts.jsonl{stack_smoothing(steps)}."
    )
    panels = (draw_shares, draw_mixed) if len(at) else (draw_shares,)
    return FigureSpec("lanes", "Lanes", caption, panels, WIDE)


def _mixed_by_lane(table: GroupTable, lanes: list[str]) -> tuple[FloatArray, FloatArray]:
    """The steps (S,), and for each shown lane the smoothed share of mixed groups (S, L)."""
    place = {name: i for i, name in enumerate(lanes)}
    shown = np.array([place.get(name, len(lanes) - 1) for name in table.lanes], dtype=np.int64)
    kept = table.train & table.judged & (table.step != NO_STEP) & (table.lane != NO_NAME)
    kinds = shown[table.lane[kept]]
    steps, counts = sums_by_step(table.step[kept], kinds, len(lanes))
    _, sums = sums_by_step(table.step[kept], kinds, len(lanes), table.mixed[kept].astype(np.float64))
    return steps.astype(np.float64), smooth_ratio(sums, counts)


def _draw_rates(ax: Axes, at: FloatArray, rates: FloatArray, *, labels: list[str], colors: Sequence[str]) -> None:
    """Smoothed shares (S, K) as lines, with a gap where there is nothing; single points where there is one step."""
    x, thin = thin_evenly(at, rates)
    for rate, label, color in zip(thin.T, labels, colors, strict=True):
        lonely = np.isfinite(rate).sum() <= FEW_POINTS
        ax.plot(x, rate, color=color, label=label, marker="o" if lonely else None, markersize=3.5)
    ax.set_ylim(0, 1.02)


@figure(110, "categories (needs rollouts.jsonl with step, category and rewards)")
def categories_figure(groups: GroupTable) -> FigureSpec | None:
    """Each category's share of the groups, and its mean pass rate, over steps."""
    kept = groups.train & groups.judged & (groups.step != NO_STEP) & (groups.category != NO_NAME)
    if not kept.any():
        return None
    names, kinds = pooled_names(groups.categories, groups.category[kept])
    steps, counts = sums_by_step(groups.step[kept], kinds, len(names))
    _, sums = sums_by_step(groups.step[kept], kinds, len(names), groups.solved[kept])
    at = steps.astype(np.float64)
    labels, colors = [legend_label(name) for name in names], PALETTE[: len(names)]

    def draw_shares(ax: Axes) -> None:
        draw_stack(ax, at, counts / counts.sum(axis=1, keepdims=True), labels=labels, colors=colors)
        ax.set_ylim(0, 1)
        finish_axes(ax, "training step", "share of groups", legend=True)

    def draw_rates(ax: Axes) -> None:
        _draw_rates(ax, at, smooth_ratio(sums, counts), labels=labels, colors=colors)
        finish_axes(ax, "training step", "mean pass rate", legend=True)

    caption = (
        "First each category's share of the step's groups, then the mean pass rate of its groups (share of rollouts "
        f"with {groups.rule.words} or more){stack_smoothing(at)}."
    )
    return FigureSpec("categories", "Categories", caption, (draw_shares, draw_rates), WIDE)


def difficulty_of(run: RunData, groups: GroupTable) -> Difficulty | None:
    """How difficult the sampled prompts were, by their levels or by the column `difficulty`."""
    numbers = {id_: columns.get("difficulty") for id_, columns in run.prompt_columns(Faults()).items()}
    return sampled_difficulty(groups, run.pool, {id_: float(n) for id_, n in numbers.items() if is_real(n)})


@figure(115, "mean difficulty", when=difficulty_of)
def difficulty_figure(run: RunData, groups: GroupTable) -> FigureSpec | None:
    """Mean difficulty of the step's prompts, beside the data set's: SEC's Figure 3."""
    found = difficulty_of(run, groups)
    kept = groups.train & (groups.step != NO_STEP)
    if found is None or not any_finite(found.sampled[kept]):
        return None
    kept &= np.isfinite(found.sampled)
    whole = np.zeros(np.count_nonzero(kept), dtype=np.int64)
    steps, sums = sums_by_step(groups.step[kept], whole, 1, found.sampled[kept])
    means = sums[:, 0] / sums_by_step(groups.step[kept], whole, 1)[1][:, 0]

    def draw(ax: Axes) -> None:
        draw_trend(ax, steps.astype(np.float64), means, color=BLUE, label="sampled")
        if np.isfinite(found.mean):
            ax.axhline(found.mean, color=GREEN, linestyle="--", linewidth=1.2, label="data set")
        finish_axes(ax, "training step", f"mean {found.of}", legend=True)

    data = "dashed, the mean of the whole data set" if np.isfinite(found.mean) else "the folder does not say the data's"
    words = "level, the number in the category's name" if found.of == "level" else "difficulty, the column of that name"
    caption = (
        f"As SEC's Figure 3: the mean {words}, of the step's prompts; {data}. Above the dashed line the curriculum "
        f"samples harder prompts than uniform sampling would{smoothing(means)}."
    )
    return FigureSpec("difficulty", "Difficulty of the sampled prompts", caption, (draw,), WIDE)


def pooled_names(names: list[str], kinds: FloatArray) -> tuple[list[str], FloatArray]:
    """The greatest names by number, in alphabetical order, the small ones pooled; and each entry's place among them."""
    counts = np.bincount(kinds, minlength=len(names))
    largest = sorted(range(len(names)), key=lambda i: (-counts[i], names[i]))
    shown = largest if len(largest) <= MOST_LANES else largest[: MOST_LANES - 1]
    ordered = sorted((i for i in shown if counts[i]), key=lambda i: names[i])
    place = np.full(len(names), len(ordered))
    place[ordered] = np.arange(len(ordered))
    labels = [names[i] for i in ordered] + ([OTHER_LANES] if len(shown) < len(largest) else [])
    return labels, place[kinds]


def smooth_ratio(sums: FloatArray, counts: FloatArray) -> FloatArray:
    """Smoothed sums over smoothed counts, (S, K): a mean weighted by groups; NaN where a window has almost none."""
    window = smoothing_window(len(sums))
    top, bottom = moving_mean(sums, window), moving_mean(counts, window)
    known = bottom * window > (FEWEST_IN_WINDOW if window > 1 else 1) - 0.5  # less 0.5, as the mean is rounded
    return np.where(known, top / np.where(known, bottom, 1.0), np.nan)
