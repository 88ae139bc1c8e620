"""The figures of an evaluation of the adaptive decoder: Pareto fronts, reliability, AUC over the tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from rollwise.reports.drawing import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    FigureSpec,
    finish_axes,
)
from rollwise.runs.lines import enumeration

Found = Mapping[str, Any]
Place = Callable[[Found], Any]

COLOURS = {
    "prune": BLUE, "early-stop": ORANGE, "early-stop-finished": "#f0c27b", "utility": GREEN, "utility-at-once": SKY,
    "utility-one-by-one": "#8fbf9f", "sequential": PURPLE,
    "sequential-pairs": "#b58bc4", "until": "#a0703c", "adaptive-K": GREY, "blend": VERMILLION,
}  # fmt: skip
PEERS = {"majority": INK, "esc": GREEN, "adaptive-consistency": BLUE, "deepconf": ORANGE, "check": VERMILLION}
_MORE_PEERS = {"deepconf": "DeepConf's vote", "check": "a check of the text"}
BESIDE_PEERS = PEERS | {"early-stop": "#f0c27b", "sequential": PURPLE}
FEWEST_IN_BIN = 1
_WIDTH = 4.8


def build_figures(found: Found) -> list[FigureSpec]:
    """The figures with numbers to show, in the page's order."""
    figures = [pareto_figure(found), peers_figure(found), blend_figure(found), seconds_figure(found)]
    if found["calibration"]:
        figures += [reliability_figure(found), auc_figure(found)]
    return [figure for figure in figures if figure is not None]


def pareto_figure(found: Found) -> FigureSpec:
    """Figures 5 and 8: accuracy against cost and against latency."""
    caption = (
        "Accuracy against row-forwards (cost) and decode steps (latency) of a prompt: means over seeds, bars are "
        "standard deviations; a line joins a policy's settings. The black line is best-of-n for n = 1 to K at a fixed "
        "budget, chosen as the policies' answers are (dotted: by majority, without the head): what lies above it is "
        "worth its cost."
    )
    return FigureSpec("pareto", "Accuracy against cost and latency", caption, _fronts(found, COLOURS), width=_WIDTH)


def peers_figure(found: Found) -> FigureSpec | None:
    """Policies that need no head, beside two that use it."""
    if not any(policy.get("headless") for policy in found["policies"]):
        return None
    there = {policy["family"] for policy in found["policies"]}
    more = [words for family, words in _MORE_PEERS.items() if family in there]
    named = enumeration(["the majority of all", "of as many as it takes to agree (ESC, adaptive consistency)", *more])
    caption = f"Without a head: {named}; beside two policies that use the head."
    return FigureSpec("peers", "Without a head", caption, _fronts(found, BESIDE_PEERS), width=_WIDTH)


def blend_figure(found: Found) -> FigureSpec | None:
    """Figure 6 (A): adaptive K with pruning, against each by itself and fixed allocation."""
    families = {family: COLOURS[family] for family in ("prune", "adaptive-K", "blend")}
    if not any(policy["family"] == "blend" for policy in found["policies"]):
        return None
    caption = (
        "Adaptive K (more candidates for prompts that look hard), pruning, and both: does the blend lie left of "
        "best-of-n, where the same accuracy is cheaper?"
    )
    panel = partial(_draw_front, found, families, "row_forwards", "row-forwards of a prompt")
    return FigureSpec("blend", "Adaptive K with pruning", caption, (panel,), width=_WIDTH)


def seconds_figure(found: Found) -> FigureSpec | None:
    """Accuracy against measured seconds, of live runs."""
    if not any(policy["live"] for policy in found["policies"]):
        return None
    caption = (
        "Accuracy against the seconds that all prompts took, in live runs with freed slots refilled: wall-clock, and "
        "processor."
    )
    panels = tuple(
        partial(_draw_seconds, found, name, label)
        for name, label in (("wall_s", "wall-clock seconds"), ("cpu_s", "processor seconds"))
    )
    return FigureSpec("seconds", "Accuracy against seconds", caption, panels, width=_WIDTH)


def reliability_figure(found: Found) -> FigureSpec:
    """The share that succeeded against the predicted value."""
    caption = (
        "Share of rollouts that succeeded against the value at the prompt and at the end, in ten bins of equal width; "
        "on the diagonal the values are calibrated. Larger dots hold more rollouts."
    )
    return FigureSpec("reliability", "Calibration", caption, (partial(_draw_reliability, found),))


def auc_figure(found: Found) -> FigureSpec:
    """Can the value tell successes from failures by then?"""
    caption = (
        "ROC AUC of what a policy sees after this many tokens, among rollouts that go on: over all rollouts, and "
        "within prompts, which pruning depends on. Above the upper line prune aggressively, below the lower not at all."
    )
    return FigureSpec("auc", "Telling successes from failures", caption, (partial(_draw_auc, found),))


def _fronts(found: Found, families: Mapping[str, str]) -> tuple[Callable[[Axes], None], ...]:
    """A panel of cost and one of latency."""
    labels = {"row_forwards": "row-forwards of a prompt", "steps": "decode steps of a prompt"}
    return tuple(partial(_draw_front, found, families, axis, label) for axis, label in labels.items())


def _draw_front(found: Found, families: Mapping[str, str], axis: str, label: str, ax: Axes) -> None:
    _draw_best_of(found, axis, ax)
    _draw_families(found, families, lambda policy: policy[axis]["mean"], lambda policy: policy[axis]["sd"], ax)
    finish_axes(ax, label, "accuracy")
    if axis == "steps":  # candidates one after another take many times as long as side by side
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.xaxis.set_minor_formatter(NullFormatter())
    _legend(ax)


def _draw_seconds(found: Found, name: str, label: str, ax: Axes) -> None:
    live = {**found, "policies": [policy for policy in found["policies"] if policy["live"]]}
    baseline = next(policy for policy in live["policies"] if policy["baseline"])
    ax.plot([baseline["live"][name]["mean"]], [baseline["accuracy"]["mean"]], marker="*", markersize=9, color=INK,
            linestyle="none", label="none")  # fmt: skip
    _draw_families(
        live,
        COLOURS | PEERS,
        lambda policy: policy["live"][name]["mean"],
        lambda policy: policy["live"][name]["sd"],
        ax,
    )
    finish_axes(ax, label, "accuracy")
    ax.set_xlim(left=0)
    _legend(ax)


def _legend(ax: Axes) -> None:
    """Above the axes, in three columns: eight families would take half the panel in two."""
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2, columnspacing=1.2, handlelength=1.2)


def _draw_best_of(found: Found, axis: str, ax: Axes) -> None:
    rows = found["best_of"]
    ax.plot([row[axis] for row in rows], [row["accuracy"]["mean"] for row in rows], color=INK, linewidth=1.2,
            marker=".", markersize=5, label="best-of-n", zorder=1)  # fmt: skip
    ax.plot([row[axis] for row in rows], [row["majority"] for row in rows], color=INK, linewidth=1, linestyle=":",
            label="by majority", zorder=1)  # fmt: skip


def _draw_families(found: Found, families: Mapping[str, str], x: Place, x_sd: Place, ax: Axes) -> None:
    for family, color in families.items():
        mine = [policy for policy in found["policies"] if policy["family"] == family]
        mine = sorted(mine, key=lambda policy: x(policy) or 0.0)
        if not mine:
            continue
        right = [policy["accuracy"]["mean"] for policy in mine]
        ax.errorbar(
            [x(policy) for policy in mine], right, xerr=[x_sd(policy) or 0.0 for policy in mine],
            yerr=[policy["accuracy"]["sd"] or 0.0 for policy in mine], color=color, label=family, marker="o",
            markersize=3.5, linewidth=0.9, elinewidth=0.6, zorder=2,
        )  # fmt: skip


def _draw_reliability(found: Found, ax: Axes) -> None:
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--")
    for part, label, color in (("prompt", "at the prompt, V(x)", ORANGE), ("end", "at the end", BLUE)):
        curve = found["calibration"][part]["reliability"]
        rows = [row for row in zip(curve["predicted"], curve["outcome"], curve["count"], strict=True)
                if row[2] >= FEWEST_IN_BIN]  # fmt: skip
        predicted, outcome, counts = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
        ax.plot(predicted, outcome, color=color, linewidth=1, label=label)
        ax.scatter(predicted, outcome, s=8 + 60 * counts / counts.max(), color=color, linewidths=0)
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    finish_axes(ax, "value", "share that succeeded", legend=True)


def _draw_auc(found: Found, ax: Axes) -> None:
    at = found["calibration"]["auc_at"]
    for name, label, color in (("pooled", "pooled", GREY), ("within", "within prompts", BLUE)):
        values = [np.nan if one[name] is None else one[name] for one in at]
        ax.plot([one["step"] for one in at], values, color=color, marker="o", markersize=3.5, label=label)
    for bound in (0.60, 0.65):
        ax.axhline(bound, color=VERMILLION, linewidth=0.8, linestyle=":")
    finish_axes(ax, "generated tokens of a rollout", "AUC", legend=True)
