"""Figures of a judge: its reward, failures and predictions by step, and predicted against realised variance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter

from rollwise.evaluation import RunData
from rollwise.evaluation.calibration import reliability_curve
from rollwise.evaluation.judgments import (
    MAX_VARIANCE,
    curriculum_column,
    has_judgments,
    predictions_of,
    predicts_variances,
)
from rollwise.reports.drawing import (
    BLUE,
    GREEN,
    GREY,
    INK,
    PURPLE,
    VERMILLION,
    WIDE,
    FigureSpec,
    draw_trend,
    finish_axes,
)
from rollwise.reports.run.budgets import any_finite, smoothing
from rollwise.reports.run.figures import figure
from rollwise.reports.run.figures_belief import tracking_panel
from rollwise.reports.series import moving_mean, smoothing_window, thin_evenly
from rollwise.runs.group_table import GroupTable
from rollwise.runs.lines import enumeration

BINS = 10
TICKS = np.linspace(0, MAX_VARIANCE, 6)
Panel = Callable[[Axes], None]


@figure(140, "judgments (needs curriculum/judge_reward, judge_failure_rate or prediction_mean)", when=has_judgments)
def judge_figure(run: RunData, groups: GroupTable) -> FigureSpec | None:
    """Judge reward with its baseline, failure rate, and mean and spread of the predictions over the candidates."""
    drawn = [_reward_panel(run), _failure_panel(run), _spread_panel(run, predicts_variances(run, groups))]
    shown = [part for part in drawn if part is not None]
    if not shown:
        return None
    columns = [curriculum_column(run, name) for name in ("judge_reward", "judge_failure_rate", "prediction_mean")]
    said = enumeration([words for words, _ in shown])
    caption = f"{said[0].upper()}{said[1:]}{smoothing(*columns)}."
    return FigureSpec("judgments", "Judgments", caption, tuple(panel for _, panel in shown))


def _reward_panel(run: RunData) -> tuple[str, Panel] | None:
    reward, baseline = curriculum_column(run, "judge_reward"), curriculum_column(run, "judge_baseline")
    if not any_finite(reward):
        return None

    def draw(ax: Axes) -> None:
        draw_trend(ax, run.metrics["step"], reward, color=GREEN, label="judge reward")
        if any_finite(baseline):
            draw_trend(ax, run.metrics["step"], baseline, color=INK, label="baseline", linestyle="--")
        ax.set_ylim(0, 1.02)
        finish_axes(ax, "training step", "judge reward", legend=True)

    return "the judge reward, 1 - (4 (predicted - realised))² (METIS, equation 8), with its moving baseline", draw


def _failure_panel(run: RunData) -> tuple[str, Panel] | None:
    rate = curriculum_column(run, "judge_failure_rate")
    if not any_finite(rate):
        return None

    def draw(ax: Axes) -> None:
        draw_trend(ax, run.metrics["step"], rate, color=VERMILLION)
        ax.set_ylim(0, 1.02)
        finish_axes(ax, "training step", "answers not readable")

    return "the share of the step's answers that hold no prediction", draw


def _spread_panel(run: RunData, variances: bool) -> tuple[str, Panel] | None:
    mean, spread = curriculum_column(run, "prediction_mean"), curriculum_column(run, "prediction_std")
    known = np.isfinite(mean) & np.isfinite(spread)
    if not known.any():
        return None
    steps, mean, spread = run.metrics["step"][known], mean[known], spread[known]

    def draw(ax: Axes) -> None:
        window = smoothing_window(len(steps))
        x, band = thin_evenly(steps, moving_mean(np.stack([mean - spread, mean + spread], axis=1), window))
        ax.fill_between(x, band[:, 0], band[:, 1], color=PURPLE, alpha=0.25, linewidth=0, label="± 1 deviation")
        draw_trend(ax, steps, mean, color=PURPLE, label="mean")
        if variances:
            ax.axhline(MAX_VARIANCE, color=INK, linestyle="--", linewidth=1.0, label="ceiling")
        ax.set_ylim(0, 1.08 * MAX_VARIANCE if variances else 1.02)
        finish_axes(ax, "training step", f"predicted {'variance' if variances else 'pass rate'}", legend=True)

    ceiling = ", under the ceiling of 0.25" if variances else ""
    return f"mean and standard deviation of the predictions over the step's candidates{ceiling}", draw


@figure(
    150,
    "judgments against outcomes (needs rollouts.jsonl with predicted_variance, and rewards in the run's range)",
    when=has_judgments,
)
def judged_outcomes_figure(groups: GroupTable) -> FigureSpec | None:
    """Realised variance by predicted variance, how many groups each prediction had, and both measures over steps."""
    found = predictions_of(groups)
    if found is None:
        return None
    curve = reliability_curve(found.predicted / MAX_VARIANCE, found.realised / MAX_VARIANCE, bins=BINS)
    known = curve.count > 0
    middle = MAX_VARIANCE * (curve.edges[:-1] + curve.edges[1:]) / 2

    def draw_curve(ax: Axes) -> None:
        ends = [0, MAX_VARIANCE]
        ax.plot(ends, ends, color=GREY, linestyle="--", linewidth=1.0, label="as predicted")
        x, y = MAX_VARIANCE * curve.predicted[known], MAX_VARIANCE * curve.outcome[known]
        ax.plot(x, y, color=BLUE, marker="o", markersize=4, label="groups")
        ax.axhline(float(found.realised.mean()), color=INK, linestyle=":", linewidth=1.0, label="mean")
        ax.set_xlim(0, 1.02 * MAX_VARIANCE)
        ax.set_ylim(0, 1.02 * MAX_VARIANCE)
        finish_axes(ax, "predicted variance", "realised variance", legend=True)
        ax.set_xticks(TICKS)

    def draw_counts(ax: Axes) -> None:
        ax.bar(middle, curve.count, 0.86 * MAX_VARIANCE / BINS, color=BLUE)
        ax.set_xlim(0, 1.02 * MAX_VARIANCE)
        ax.yaxis.set_major_formatter(EngFormatter(sep=""))
        finish_axes(ax, "predicted variance", "groups")
        ax.set_xticks(TICKS)

    caption = (
        f"The groups that were trained on with a prediction, n = {len(found):,}, in {BINS} bins by predicted variance: "
        "the mean variance of their scores, on the dashed line where predictions are right on average; and how many "
        "groups each bin has."
    )
    panels: tuple[Panel, ...] = (draw_curve, draw_counts)
    numbers = found.step, found.predicted, found.realised, found.predicted, found.mixed
    if (over_steps := tracking_panel(*numbers, levels=[0.0, 0.5])) is not None:
        panels += (over_steps[0],)
        caption += (
            " Then, within spans of steps, Pearson's correlation of predicted and realised variance, and ROC AUC of "
            "telling groups whose rewards differ from the others (0.5, dashed, is chance)."
        )
    return FigureSpec("judged_outcomes", "Judgments against outcomes", caption, panels, WIDE)
