"""Figures of a run's metrics: score, effective task ratio and its parts, learning signal, overhead."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
from matplotlib.axes import Axes

from rollwise.evaluation import RunData
from rollwise.evaluation.lengths import ALL, SOLVED, UNSOLVED, lengths_by_step
from rollwise.evaluation.named_sets import aggregate_name
from rollwise.evaluation.phases import EVALUATION, phase_seconds, phase_table, recorded_phases, step_seconds
from rollwise.reports.drawing import (
    BLUE,
    GREEN,
    GREY,
    INK,
    LINES,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    WIDE,
    FigureSpec,
    draw_stack,
    draw_trend,
    finish_axes,
    from_zero,
    legend_label,
)
from rollwise.reports.phases import PHASE_COLOURS, phase_label
from rollwise.reports.run.budgets import (
    Budget,
    any_finite,
    budget_names,
    budget_tabs,
    budgets,
    complete,
    evaluation_columns,
    smoothing,
    stack_smoothing,
)
from rollwise.reports.run.figures import figure
from rollwise.reports.series import FloatArray, finite_pair, time_unit
from rollwise.runs.group_table import GroupTable

# With fewer k than this pass@k is no curve.
FEWEST_KS = 3
# More evaluations than this get small markers, which then merge into a line.
MOST_MARKERS = 50
_LENGTHS = ((SOLVED, GREEN, "solved", "-"), (UNSOLVED, VERMILLION, "not solved", "-"), (ALL, INK, "all", "--"))


@figure(10, "score (needs eval/pass@k, eval/reward, success or reward)")
def score_figure(run: RunData) -> FigureSpec | None:
    """Evaluations as points, the training rollouts' success and reward as lines, against each budget."""
    keys = evaluation_columns(run)
    shown = keys if len(keys) <= 3 else [keys[0], keys[len(keys) // 2], keys[-1]]
    scores = [(key, run.column(key), color) for key, color in zip(shown, (BLUE, ORANGE, SKY), strict=False)]
    success, reward = run.column("success"), run.column("reward")
    if np.allclose(success, reward, equal_nan=True):
        reward = np.full_like(reward, np.nan)  # binary rewards: the two are one line
    lines = [(success, GREEN, "success", "-"), (reward, PURPLE, "reward", "--")]
    lines = [line for line in lines if any_finite(line[0])]
    if not lines and not scores:
        return None

    def draw(ax: Axes, budget: Budget) -> None:
        for y, color, label, linestyle in lines:
            draw_trend(ax, budget.spent, y, color=color, label=label, linestyle=linestyle)
        for key, score, color in scores:
            x, y = finite_pair(budget.spent, score)
            size = 4.0 if len(x) <= MOST_MARKERS else 1.5
            ax.plot(x, y, color=color, label=key.replace("/", " "), marker="o", markersize=size, linewidth=1.2)
        from_zero(ax, np.concatenate([success, reward, *(score for _, score, _ in scores)]))
        finish_axes(ax, budget.label, "score", legend=True)

    axes = budgets(run)
    made = f"; {aggregate}" if (aggregate := aggregate_name(run)) else ""
    points = f"points are the evaluations ({', '.join(shown)}{made}), " if shown else ""
    caption = (
        f"Score against {budget_names(axes)}: {points}lines are the mean over the step's training rollouts, "
        f"whose prompts the curriculum chose, so that they also show how hard those were{smoothing(success, reward)}."
    )
    return FigureSpec("score", "Score", caption, tuple(partial(draw, budget=b) for b in axes), WIDE, budget_tabs(axes))


def has_pass_at_curve(run: RunData) -> bool:
    """Whether its evaluations drew enough samples for pass@k at three k or more."""
    return len(evaluation_columns(run)) >= FEWEST_KS


@figure(20, "pass@k", when=has_pass_at_curve)
def pass_at_figure(run: RunData) -> FigureSpec | None:
    """pass@k against k, of the first and the last evaluation; None where none has every k."""
    keys = evaluation_columns(run)
    ks = [int(key.rpartition("@")[2]) for key in keys]
    steps, scores = complete(run, keys)
    if not len(steps):
        return None

    def draw(ax: Axes) -> None:
        for i, color in {0: SKY, len(steps) - 1: BLUE}.items():
            ax.plot(ks, scores[i], color=color, marker="o", markersize=4.0, label=f"step {steps[i]:.0f}")
        ax.set_xscale("log", base=2)
        finish_axes(ax, "k", "pass@k", legend=True)
        ax.set_xticks(ks, [str(k) for k in ks])

    which = "the first and the last evaluation" if len(steps) > 1 else "the only evaluation"
    caption = f"pass@k of {which}, all k from one sample of {ks[-1]} completions a prompt."
    return FigureSpec("pass_at_k", "pass@k", caption, (draw,), WIDE)


@figure(30, "effective task ratio (needs frac_mixed)")
def ratio_figure(run: RunData) -> FigureSpec | None:
    """The share of groups whose rewards differ, against each budget."""
    ratio = run.column("frac_mixed")
    if not any_finite(ratio):
        return None

    def draw(ax: Axes, budget: Budget) -> None:
        draw_trend(ax, budget.spent, ratio, color=VERMILLION)
        ax.set_ylim(0, 1.02)
        finish_axes(ax, budget.label, "effective task ratio")

    axes = budgets(run)
    caption = (
        f"Effective task ratio against {budget_names(axes)}: the share of a step's rollout groups whose rewards "
        f"differ, so that they teach something (frac_mixed){smoothing(ratio)}."
    )
    panels = tuple(partial(draw, budget=budget) for budget in axes)
    return FigureSpec("effective_task_ratio", "Effective task ratio", caption, panels, WIDE, budget_tabs(axes))


@figure(50, "parts of the ratio (needs frac_all_good, frac_mixed, frac_all_bad)")
def parts_figure(run: RunData) -> FigureSpec | None:
    """All solved, mixed and all failed groups, stacked by step."""
    steps, parts = complete(run, ["frac_mixed", "frac_all_good", "frac_all_bad"])
    if not len(steps):
        return None

    def draw(ax: Axes) -> None:
        labels, colors = ["mixed", "all solved", "all failed"], [VERMILLION, SKY, GREY]
        draw_stack(ax, steps, parts, labels=labels, colors=colors)
        ax.set_ylim(0, 1)
        finish_axes(ax, "training step", "share of groups", legend=True)

    caption = (
        "Each step's groups by outcome: rewards that differ (mixed), agree at or above the solved mark (all solved) "
        f"or agree below it (all failed){stack_smoothing(steps)}."
    )
    return FigureSpec("outcomes", "Outcomes of the groups", caption, (draw,), WIDE)


@figure(70, "mean advantage (needs abs_advantage)")
def advantage_figure(run: RunData) -> FigureSpec | None:
    """Mean absolute advantage by step."""
    advantage = run.column("abs_advantage")
    if not any_finite(advantage):
        return None

    def draw(ax: Axes) -> None:
        draw_trend(ax, run.metrics["step"], advantage, color=BLUE)
        from_zero(ax, advantage)
        finish_axes(ax, "training step", "mean |A|")

    caption = f"Mean absolute advantage of the step's rollouts, the size of the learning signal{smoothing(advantage)}."
    return FigureSpec("advantage", "Learning signal", caption, (draw,), WIDE)


def reward_names(run: RunData) -> list[str]:
    """The reward functions with a logged mean, from the keys `rewards/NAME/mean`."""
    keys = [key for key in run.metrics if key.startswith("rewards/") and key.endswith("/mean")]
    names = [key[len("rewards/") : -len("/mean")] for key in keys]
    return [] if names == ["reward"] else names  # a task's only one, which the score shows


@figure(60, "rewards", when=reward_names)
def rewards_figure(run: RunData) -> FigureSpec | None:
    """The mean of each reward function by step; the sum, with its weights, is trained on."""
    curves = {name: run.column(f"rewards/{name}/mean") for name in reward_names(run)}
    curves = {name: values for name, values in curves.items() if any_finite(values)}
    if not curves:
        return None

    def draw(ax: Axes) -> None:
        for (colour, style), (name, values) in zip(itertools.cycle(LINES), curves.items(), strict=False):
            draw_trend(ax, run.metrics["step"], values, color=colour, label=legend_label(name), linestyle=style)
        finish_axes(ax, "training step", "mean reward", legend=True)

    smooth = smoothing(*curves.values())
    caption = f"Mean of each reward function over the step's rollouts; their weighted sum is trained on{smooth}."
    return FigureSpec("rewards", "Rewards", caption, (draw,), WIDE)


@figure(65, "response length (needs rollouts.jsonl with step, rewards and tokens)")
def length_figure(groups: GroupTable) -> FigureSpec | None:
    """Mean tokens of a completion by step, of solved rollouts, of the others, and of all."""
    steps, lengths = lengths_by_step(groups)
    if not len(steps):
        return None
    at = steps.astype(np.float64)

    def draw(ax: Axes) -> None:
        for part, color, label, linestyle in _LENGTHS:
            if any_finite(lengths[:, part]):
                draw_trend(ax, at, lengths[:, part], color=color, label=label, linestyle=linestyle)
        from_zero(ax, lengths)
        finish_axes(ax, "training step", "tokens of a completion", legend=True)

    caption = (
        f"Mean length of the step's completions: of rollouts with {groups.rule.words} or more, of the others, and of "
        "all. Prioritized replay's bias (section 4.4) prefers prompts that are mostly solved, so that answers become "
        f"shorter; only the two apart tell shorter answers from more solved ones{smoothing(*lengths.T)}."
    )
    return FigureSpec("response_length", "Response length", caption, (draw,), WIDE)


def overhead_shares(run: RunData) -> FloatArray:
    """The time in `ask` and `tell` as a share of the step's training time, (S,); NaN where a step's time is unknown."""
    took = step_seconds(run)
    spent = np.nan_to_num(run.column("ask_s")) + np.nan_to_num(run.column("tell_s"))
    known = np.isfinite(run.column("ask_s")) | np.isfinite(run.column("tell_s"))
    return np.where(known & (took > 0), spent / np.where(took > 0, took, 1.0), np.nan)


@figure(160, "overhead (needs ask_s, tell_s and wall_s)")
def overhead_figure(run: RunData) -> FigureSpec | None:
    """The curriculum's share of each training step."""
    percent = 100 * overhead_shares(run)
    if not any_finite(percent):
        return None

    def draw(ax: Axes) -> None:
        draw_trend(ax, run.metrics["step"], percent, color=PURPLE)
        from_zero(ax, percent)
        finish_axes(ax, "training step", "% of the step")

    caption = (
        "What the curriculum costs: time in ask and tell (ask_s, tell_s) as a share of the step's training time, the "
        f"difference of wall_s to the step before{smoothing(percent)}."
    )
    return FigureSpec("overhead", "Overhead", caption, (draw,), WIDE)


@figure(165, "time by phase", when=recorded_phases)
def phases_figure(run: RunData) -> FigureSpec | None:
    """Stacked by step, and summed over the run beside the time for evaluations."""
    phases, steps, seconds = phase_table(run)
    if not len(steps):
        return None
    colours = [PHASE_COLOURS[phase] for phase in phases]

    def by_step(ax: Axes) -> None:
        draw_stack(ax, steps, seconds, labels=phases, colors=colours)
        finish_axes(ax, "training step", "seconds")  # the other panel names the colours: a legend of eight hides this

    totals = dict(zip(phases, seconds.sum(axis=0).tolist(), strict=True))
    evaluation = phase_seconds(run)[EVALUATION]
    totals |= {EVALUATION: evaluation} if np.isfinite(evaluation) else {}

    def whole(ax: Axes) -> None:
        unit, scale = time_unit(max(totals.values()))
        ax.barh(range(len(totals)), [s / scale for s in totals.values()], color=[PHASE_COLOURS[p] for p in totals])
        ax.set_yticks(range(len(totals)), [phase_label(phase) for phase in totals])
        ax.set_ylim(len(totals) - 0.4, -0.6)
        ax.grid(visible=False, axis="y")
        ax.set_xlabel(f"whole run ({unit})")

    caption = (
        f"Time by phase (time/...): each step's training time{stack_smoothing(steps)}, and in the same colours the sum "
        "over the run, with the time for evaluations, which is not training time. The rest is what the phases leave of "
        "it: data, logs, checkpoints, and what could not be told apart."
    )
    return FigureSpec("time_by_phase", "Time by phase", caption, (by_step, whole), WIDE)
