"""The report's figures, each built from a run's columns; one whose columns are absent is not built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, MaxNLocator

from rollwise.evaluation import RunData
from rollwise.reports.digest import RolloutDigest
from rollwise.reports.drawing import (
    BLUE,
    GREEN,
    GREY,
    INK,
    PALETTE,
    PURPLE,
    SKY,
    VERMILLION,
    FigureSpec,
    draw_stack,
    draw_trend,
)
from rollwise.reports.series import MOST_POINTS, FloatArray, cumulative, finite_pair, smoothing_window

WIDE = 4.4
# More evaluations than this get small markers, which then merge into a line.
MOST_MARKERS = 50
# A legend entry longer than this is cut; a legend row has room for so many characters, counting a handle as 8.
LONGEST_LABEL = 32
LEGEND_ROW = 58
LEGEND_HANDLE = 8


@dataclass(frozen=True)
class Budget:
    """What a run spends, as an x axis: its label and its value at each of the run's lines, (S,)."""

    label: str
    spent: FloatArray
    short: str


def build_figures(run: RunData, digest: RolloutDigest) -> tuple[list[FigureSpec], list[str]]:
    """The figures that the run's files allow, in the page's order, and for each other one what it lacks."""
    builders: list[tuple[str, Callable[[], FigureSpec | None]]] = [
        ("score (needs eval/pass@1, eval/reward, success or reward)", lambda: score_figure(run)),
        ("effective task ratio (needs frac_mixed)", lambda: ratio_figure(run)),
        ("parts of the ratio (needs frac_all_good, frac_mixed, frac_all_bad)", lambda: parts_figure(run)),
        ("mean advantage (needs abs_advantage)", lambda: advantage_figure(run)),
        ("sizes of the pools (needs curriculum/heap, /solved, /unsolved)", lambda: pools_figure(run)),
        ("lanes (needs rollouts.jsonl with step and lane)", lambda: lanes_figure(digest)),
    ]
    built = [(needs, build()) for needs, build in builders]
    return [spec for _, spec in built if spec is not None], [needs for needs, spec in built if spec is None]


def budgets(run: RunData) -> list[Budget]:
    """Training steps, and where they were recorded generated tokens and training time."""
    steps = run.metrics["step"]
    axes = [Budget("training step", steps, "training steps")]
    tokens = cumulative(steps, run.column("tokens"))
    if tokens is not None:
        axes.append(Budget("generated tokens", tokens, "generated tokens"))
    wall = cumulative(steps, run.column("wall_s"))
    if wall is not None:
        longest = float(wall.max(initial=0.0))
        unit, seconds = ("s", 1) if longest < 180 else ("min", 60) if longest < 10800 else ("h", 3600)
        axes.append(Budget(f"training time ({unit})", wall / seconds, "wall-clock"))
    return axes


def score_figure(run: RunData) -> FigureSpec | None:
    """Evaluations as points, the training rollouts' success and reward as lines, against each budget."""
    key = "eval/pass@1" if _any(run.column("eval/pass@1")) else "eval/reward"
    scores, success, reward = run.column(key), run.column("success"), run.column("reward")
    if np.allclose(success, reward, equal_nan=True):
        reward = np.full_like(reward, np.nan)  # binary rewards: the two are one line
    lines = [(success, GREEN, "success", "-"), (reward, PURPLE, "reward", "--")]
    lines = [line for line in lines if _any(line[0])]
    if not lines and not _any(scores):
        return None

    def draw(ax: Axes, budget: Budget) -> None:
        for y, color, label, linestyle in lines:
            draw_trend(ax, budget.spent, y, color=color, label=label, linestyle=linestyle)
        if _any(scores):
            x, y = finite_pair(budget.spent, scores)
            size = 4.0 if len(x) <= MOST_MARKERS else 1.5
            ax.plot(x, y, color=BLUE, label=key.replace("/", " "), marker="o", markersize=size, linewidth=1.2)
        _from_zero(ax, np.concatenate([scores, success, reward]))
        _finish(ax, budget.label, "score", legend=True)

    axes = budgets(run)
    points = f"points are the evaluations ({key}), " if _any(scores) else ""
    caption = (
        f"Score against {_list(axes)}: {points}lines are the mean over the step's training rollouts, "
        f"whose prompts the curriculum chose, so that they also show how hard those were{_smoothing(success, reward)}."
    )
    return FigureSpec("score", "Score", caption, tuple(partial(draw, budget=budget) for budget in axes))


def ratio_figure(run: RunData) -> FigureSpec | None:
    """The share of groups whose rewards differ, against each budget."""
    ratio = run.column("frac_mixed")
    if not _any(ratio):
        return None

    def draw(ax: Axes, budget: Budget) -> None:
        draw_trend(ax, budget.spent, ratio, color=VERMILLION)
        ax.set_ylim(0, 1.02)
        _finish(ax, budget.label, "effective task ratio")

    axes = budgets(run)
    caption = (
        f"Effective task ratio against {_list(axes)}: the share of a step's rollout groups whose rewards differ, so "
        f"that they teach something (frac_mixed){_smoothing(ratio)}."
    )
    panels = tuple(partial(draw, budget=budget) for budget in axes)
    return FigureSpec("effective_task_ratio", "Effective task ratio", caption, panels)


def parts_figure(run: RunData) -> FigureSpec | None:
    """All solved, mixed and all failed groups, stacked by step."""
    steps, parts = _complete(run, ["frac_mixed", "frac_all_good", "frac_all_bad"])
    if not len(steps):
        return None

    def draw(ax: Axes) -> None:
        labels, colors = ["mixed", "all solved", "all failed"], [VERMILLION, SKY, GREY]
        draw_stack(ax, steps, parts, labels=labels, colors=colors)
        ax.set_ylim(0, 1)
        _finish(ax, "training step", "share of groups", legend=True)

    caption = (
        "Each step's groups by outcome: rewards that differ (mixed), agree at or above the solved mark (all solved) "
        f"or agree below it (all failed){_stack_smoothing(steps)}."
    )
    return FigureSpec("outcomes", "Outcomes of the groups", caption, (draw,), WIDE)


def advantage_figure(run: RunData) -> FigureSpec | None:
    """Mean absolute advantage by step."""
    advantage = run.column("abs_advantage")
    if not _any(advantage):
        return None

    def draw(ax: Axes) -> None:
        draw_trend(ax, run.metrics["step"], advantage, color=BLUE)
        _from_zero(ax, advantage)
        _finish(ax, "training step", "mean |A|")

    caption = f"Mean absolute advantage of the step's rollouts, the size of the learning signal{_smoothing(advantage)}."
    return FigureSpec("advantage", "Learning signal", caption, (draw,), WIDE)


def pools_figure(run: RunData) -> FigureSpec | None:
    """Sizes of the heap, the solved and the unsolved pool, stacked; the unseen prompts as a line."""
    steps, sizes = _complete(run, ["curriculum/heap", "curriculum/solved", "curriculum/unsolved"])
    if not len(steps):
        return None
    unseen = run.column("curriculum/unseen")

    def draw(ax: Axes) -> None:
        draw_stack(ax, steps, sizes, labels=["heap", "solved", "unsolved"], colors=[VERMILLION, SKY, GREY])
        if _any(unseen):
            x, y = finite_pair(run.metrics["step"], unseen)
            marker = "o" if len(x) == 1 else None
            ax.plot(x, y, color=INK, linestyle="--", linewidth=1.3, marker=marker, label="not yet seen")
        ax.set_ylim(bottom=0)
        ax.yaxis.set_major_formatter(EngFormatter(sep=""))
        _finish(ax, "training step", "prompts", legend=True)

    line = "; the dashed line counts the prompts not yet seen, wherever they are kept" if _any(unseen) else ""
    caption = f"Prompts in the curriculum's heap, solved and unsolved pools{_stack_smoothing(steps)}{line}."
    return FigureSpec("pools", "Sizes of the pools", caption, (draw,), WIDE)


def lanes_figure(digest: RolloutDigest) -> FigureSpec | None:
    """Share of each step's groups by the lane they were chosen through."""
    lanes, steps, shares = digest.lane_shares()
    if not lanes:
        return None

    def draw(ax: Axes) -> None:
        draw_stack(ax, steps, shares, labels=[_legend_label(lane) for lane in lanes], colors=PALETTE[: len(lanes)])
        ax.set_ylim(0, 1)
        _finish(ax, "training step", "share of groups", legend=True)

    caption = (
        "Why the prompts were chosen: each lane's share of the step's rollout groups, counted in rollouts.jsonl"
        f"{_stack_smoothing(steps)}."
    )
    return FigureSpec("lanes", "Lanes", caption, (draw,), WIDE)


def _finish(ax: Axes, x_label: str, y_label: str, legend: bool = False) -> None:
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=x_label == "training step"))
    low, high = ax.dataLim.intervalx
    if x_label == "training step" and high - low < 1:
        ax.set_xlim((low + high) / 2 - 1.5, (low + high) / 2 + 1.5)  # one step: no fractions of a step on the axis
    if x_label == "generated tokens":
        ax.xaxis.set_major_formatter(EngFormatter(sep=""))
    if legend:  # above the axes, where it can hide no data
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


def _from_zero(ax: Axes, values: FloatArray) -> None:
    """Start the y axis at 0, unless there are values below."""
    finite = values[np.isfinite(values)]
    if finite.min() >= 0:
        ax.set_ylim(0, 1.06 * (float(finite.max()) or 1.0))


def _legend_label(name: str) -> str:
    name = name if len(name) <= LONGEST_LABEL else name[: LONGEST_LABEL - 1] + "…"
    return f" {name}" if name.startswith("_") else name  # matplotlib leaves out labels that begin with "_"


def _complete(run: RunData, keys: list[str]) -> tuple[FloatArray, FloatArray]:
    """The steps at which all the columns are finite, (S,), and the columns there, (S, K)."""
    parts = np.stack([run.column(key) for key in keys], axis=1)
    kept = np.isfinite(parts).all(axis=1)
    return run.metrics["step"][kept], parts[kept]


def _any(values: FloatArray) -> bool:
    return bool(np.isfinite(values).any())


def _list(axes: list[Budget]) -> str:
    names = [budget.short for budget in axes]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _smoothing(*columns: FloatArray) -> str:
    points = max(int(np.isfinite(column).sum()) for column in columns)
    window = smoothing_window(points)
    faint = "each step" if points <= MOST_POINTS else "the range of neighbouring steps"
    return f"; faint is {faint}, strong the centred moving mean over {window} steps" if window > 1 else ""


def _stack_smoothing(steps: FloatArray) -> str:
    window = smoothing_window(len(steps))
    return f", as the centred moving mean over {window} steps" if window > 1 else ""
