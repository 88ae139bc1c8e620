"""Figures of the pool: the method's own pools and flips, prompts by their last outcome, coverage and visits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, MaxNLocator

from rollwise.evaluation import RunData
from rollwise.evaluation.coverage import distinct_by_step, visits, visits_histogram
from rollwise.reports.drawing import (
    BLUE,
    FEW_POINTS,
    GREEN,
    GREY,
    GRID,
    INK,
    SKY,
    VERMILLION,
    WIDE,
    FigureSpec,
    draw_stack,
    draw_trend,
    finish_axes,
    from_zero,
)
from rollwise.reports.run.budgets import any_finite, complete, smoothing, stack_smoothing
from rollwise.reports.run.digest import RolloutDigest, pool_size
from rollwise.reports.run.figures import figure
from rollwise.reports.series import FloatArray, finite_pair, thin_evenly
from rollwise.runs.group_table import GroupTable

Panel = Callable[[Axes], None]
_POOLS = ("heap", "solved", "unsolved")
# Most bars of a histogram; with more, a bar spans several numbers of visits.
MOST_BARS = 24


@figure(80, "sizes of the pools (needs curriculum/.../heap, solved and unsolved: prioritized replay's)")
def pools_figure(run: RunData) -> FigureSpec | None:
    """Sizes of the heap, the solved and the unsolved pool, stacked; the unseen prompts as a line."""
    prefix = _pools_prefix(run)
    if prefix is None:
        return None
    steps, sizes = complete(run, [f"{prefix}{name}" for name in _POOLS])
    unseen = run.column(f"{prefix}unseen")

    def draw(ax: Axes) -> None:
        draw_stack(ax, steps, sizes, labels=list(_POOLS), colors=[VERMILLION, SKY, GREY])
        if any_finite(unseen):
            x, y = finite_pair(run.metrics["step"], unseen)
            marker = "o" if len(x) == 1 else None
            ax.plot(x, y, color=INK, linestyle="--", linewidth=1.3, marker=marker, label="not yet seen")
        ax.set_ylim(bottom=0)
        ax.yaxis.set_major_formatter(EngFormatter(sep=""))
        finish_axes(ax, "training step", "prompts", legend=True)

    line = "; the dashed line counts the prompts not yet seen, wherever they are kept" if any_finite(unseen) else ""
    caption = f"Prompts in the curriculum's heap, solved and unsolved pools{stack_smoothing(steps)}{line}."
    return FigureSpec("pools", "Sizes of the pools", caption, (draw,), WIDE)


def has_flips(run: RunData) -> bool:
    """Whether prioritized replay chose in this run, and logged what its paper's Figure 3 draws."""
    prefix = _pools_prefix(run)
    return prefix is not None and any_finite(run.column(f"{prefix}flips_solved"))


@figure(85, "rates, priorities and flips of prioritized replay", when=has_flips)
def replay_figure(run: RunData) -> FigureSpec | None:
    """Deviation of the success rates, mean priority, and what came back from the pools: PR's Figure 3, row 2."""
    prefix = str(_pools_prefix(run))
    spread, priority = run.column(f"{prefix}score_std"), run.column(f"{prefix}mean_priority")
    flips = {name: run.column(f"{prefix}flips_{name}") for name in ("solved", "unsolved")}

    def draw(ax: Axes, values: FloatArray, color: str, label: str) -> None:
        draw_trend(ax, run.metrics["step"], values, color=color)
        from_zero(ax, values)
        finish_axes(ax, "training step", label)

    def draw_flips(ax: Axes) -> None:
        for (name, values), color in zip(flips.items(), (SKY, GREY), strict=True):
            x, y = thin_evenly(*finite_pair(run.metrics["step"], values))
            marker = "o" if len(x) <= FEW_POINTS else None
            ax.plot(x, y, color=color, label=f"out of {name}", marker=marker, markersize=3.5)
        from_zero(ax, np.concatenate(list(flips.values())))
        finish_axes(ax, "training step", "prompts that left a pool", legend=True)

    panels: list[Panel] = []
    if any_finite(spread):
        panels.append(partial(draw, values=spread, color=BLUE, label="deviation of success rates"))
    if any_finite(priority):
        panels.append(partial(draw, values=priority, color=VERMILLION, label="mean priority"))
    caption = (
        "As prioritized replay's Figure 3, row 2: the standard deviation of the average success rates of all prompts "
        "seen (near 0: they can't be told apart), the mean priority of those of them that are in the heap (prompts not "
        "yet seen wait at initial_priority, 0.2 by default, until enough of the others fall below it), and how often, "
        f"from the beginning on, a prompt left the solved or the unsolved pool after a retest{smoothing(spread)}."
    )
    return FigureSpec("replay", "Priorities and flips", caption, (*panels, draw_flips), WIDE)


def _pools_prefix(run: RunData) -> str | None:
    """Where the pools are: `curriculum/`, or the lane of a composed curriculum that has them; the first such."""
    found = sorted(key.removesuffix("heap") for key in run.metrics if key.endswith("/heap"))
    for prefix in found:
        if len(complete(run, [f"{prefix}{name}" for name in _POOLS])[0]):
            return prefix
    return None


@figure(90, "prompts by their last outcome (needs rollouts.jsonl with step and rewards)")
def outcomes_of_pool_figure(run: RunData, groups: GroupTable, digest: RolloutDigest) -> FigureSpec | None:
    """The pool's prompts by how their last group went, stacked; for any method, from the rollouts alone."""
    steps, counts = digest.last_outcomes
    if not len(steps):
        return None
    parts, at = counts.astype(np.float64), steps.astype(np.float64)
    labels, colors = ["mixed", "all solved", "all failed"], [VERMILLION, SKY, GREY]
    size = pool_size(run, groups)
    if size is not None:
        parts = np.column_stack([parts, size - parts.sum(axis=1)])
        labels, colors = [*labels, "not yet seen"], [*colors, GRID]

    def draw(ax: Axes) -> None:
        draw_stack(ax, at, parts, labels=labels, colors=colors)
        ax.set_ylim(bottom=0)
        ax.yaxis.set_major_formatter(EngFormatter(sep=""))
        finish_axes(ax, "training step", "prompts", legend=True)

    caption = (
        "Every prompt by how its latest group went: learnable (mixed), all solved, all failed. Counted in "
        f"rollouts.jsonl, so that it is there for any method{stack_smoothing(at)}."
    )
    if not groups.train.all():
        caption += " Groups to measure or screen don't count: a prompt that has no other is not yet seen here."
    return FigureSpec("last_outcomes", "The pool by last outcome", caption, (draw,), WIDE)


@figure(170, "coverage of the pool (needs rollouts.jsonl with step)")
def coverage_figure(run: RunData, groups: GroupTable) -> FigureSpec | None:
    """Share of the pool asked at least once over steps, and how often prompts were asked."""
    kept = groups.in_training
    if not kept.any():
        return None
    steps, distinct = distinct_by_step(groups.step[kept], groups.prompt[kept])
    counts = visits(groups.prompt[groups.train], len(groups.prompts))
    size = pool_size(run, groups)
    histogram = visits_histogram(counts[counts > 0], int((counts > 0).sum()) if size is None else size)

    def draw_share(ax: Axes) -> None:
        x, y = thin_evenly(steps.astype(np.float64), distinct / (size or 1))
        ax.plot(x, y, color=GREEN, marker="o" if len(x) <= FEW_POINTS else None, markersize=3.5)
        if size is None:
            ax.set_ylim(bottom=0)
        else:
            ax.set_ylim(0, 1.02)
        finish_axes(ax, "training step", "prompts asked" if size is None else "share asked at least once")

    def draw_visits(ax: Axes) -> None:
        first = 1 if size is None else 0
        width = -(-(len(histogram) - first) // MOST_BARS)
        starts = np.arange(first, len(histogram), width)
        heights = np.add.reduceat(histogram, starts)
        ax.bar(starts + (width - 1) / 2, heights, width * 0.86, color=[GREY if s == 0 else BLUE for s in starts])
        ax.yaxis.set_major_formatter(EngFormatter(sep=""))
        finish_axes(ax, "times asked", "prompts")
        ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))

    never = " of prompts" if size is None else f" of the pool's {size:,} prompts"
    zero = "" if size is None else " (the bar at 0: never)"
    caption = (
        f"First the {'number' if size is None else 'share'}{never} asked at least once by each step, then how many "
        f"prompts were asked how often{zero}. Tickets to train on, counted in rollouts.jsonl."
    )
    return FigureSpec("coverage", "Coverage of the pool", caption, (draw_share, draw_visits), WIDE)
