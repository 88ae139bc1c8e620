"""Figures and HTML of a file of `rollwise consistency`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from rollwise.reports.comparison.page_tables import table_section
from rollwise.reports.drawing import BLUE, GREY, VERMILLION, FigureSpec, finish_axes
from rollwise.reports.figure_files import inline_panels
from rollwise.reports.html import CSS, figure_section, html_page, page_header, verdict_section
from rollwise.reports.inference.consistency_words import Line, agreement, answer_table, cost_table, facts, sentences
from rollwise.reports.table_style import COMPARISON_CSS, SORTING

_BINS = np.linspace(0.0, 1.0, 11)


def render_consistency(name: str, options: Mapping[str, Any], numbers: Mapping[str, Any], lines: Sequence[Line]) -> str:
    """The whole page."""
    sections = [
        page_header("consistency", f"Votes: {name}", facts(options, numbers)),
        verdict_section("What came of it?", sentences(options, numbers, lines)),
        table_section(cost_table(options, numbers)),
        *(figure_section(spec, inline_panels(spec)) for spec in _figures(options, lines) if lines),
        table_section(answer_table(lines)),
    ]
    return html_page(f"{name}: rollwise", sections, css=CSS + COMPARISON_CSS, script=SORTING)


def _figures(options: Mapping[str, Any], lines: Sequence[Line]) -> list[FigureSpec]:
    agreed = "Prompts by the share of their samples that gave the chosen answer."
    drawn = f"Prompts by the samples that were judged before the rule stopped, at most {options['num_generations']}."
    return [
        FigureSpec("agreement", "Agreement", agreed, (partial(_draw_agreement, lines),)),
        FigureSpec("samples", "Samples a prompt", drawn, (partial(_draw_samples, lines, options["num_generations"]),)),
    ]


def _draw_agreement(lines: Sequence[Line], ax: Axes) -> None:
    groups = {"right": True, "wrong": False, "not known": None}
    bottom = np.zeros(len(_BINS) - 1)
    for (label, right), color in zip(groups.items(), (BLUE, VERMILLION, GREY), strict=True):
        shares = [agreement(line) for line in lines if line.get("correct") is right]
        if shares:
            counts = np.bincount(np.minimum((np.array(shares) * 10).astype(np.int64), 9), minlength=10)
            ax.bar(_BINS[:-1], counts, 0.09, bottom=bottom, align="edge", color=color, label=label)
            bottom += counts
    finish_axes(ax, "share of samples with the chosen answer", "prompts", legend=True)
    ax.set_xlim(0, 1)
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))


def _draw_samples(lines: Sequence[Line], k: int, ax: Axes) -> None:
    edges = np.unique(np.linspace(0, k, min(k, 20) + 1).round()) + 0.5
    counts = np.histogram([line["samples"] for line in lines], edges)[0]
    ax.bar(edges[:-1], counts, 0.9 * np.diff(edges), align="edge", color=BLUE)
    finish_axes(ax, "samples", "prompts")
    ax.set_xlim(0, k + 1)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(5, integer=True))
