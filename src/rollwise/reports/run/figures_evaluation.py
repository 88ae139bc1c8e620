"""Figures of a run's evaluations: on several named sets, and by category of the prompts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import partial

from matplotlib.axes import Axes

from rollwise.evaluation import RunData
from rollwise.evaluation.categories import category_scores
from rollwise.evaluation.named_sets import aggregate_name, set_columns
from rollwise.evaluation.run_measures import pass_at_columns
from rollwise.reports.drawing import INK, LINES, PALETTE, WIDE, FigureSpec, finish_axes, legend_label
from rollwise.reports.run.budgets import Budget, budget_names, budget_tabs, budgets, evaluation_columns
from rollwise.reports.run.figures import figure
from rollwise.reports.series import finite_pair
from rollwise.reports.words import count
from rollwise.runs.evaluations import Evaluation


@figure(15, "score on each set", when=set_columns)
def sets_figure(run: RunData) -> FigureSpec | None:
    """Each set's score, and the score made of them, against each budget."""
    return _by_set(run, set_columns(run), evaluation_columns(run)[:1], "score_by_set", "Score on each set")


def wide_columns(run: RunData) -> dict[str, str]:
    """The run's sets and the column of each one's widest pass@k; without those that have pass@1 alone."""
    found = {name: pass_at_columns([run], f"eval/{name}/")[-1:] for name in set_columns(run)}
    return {name: columns[0] for name, columns in found.items() if columns}


@figure(16, "pass@k on each set", when=wide_columns)
def wide_figure(run: RunData) -> FigureSpec | None:
    """The same of the widest pass@k."""
    columns = wide_columns(run)
    score = next(iter(columns.values())).rpartition("/")[2]
    return _by_set(run, columns, pass_at_columns([run])[-1:], "pass_at_k_by_set", f"{score} on each set")


def _by_set(run: RunData, columns: Mapping[str, str], whole: Sequence[str], name: str, title: str) -> FigureSpec:
    """A line for each set's column, and a dashed one for what is made of them."""
    styled = zip(columns.items(), itertools.cycle(LINES), strict=False)
    lines = [(label, key, colour, style) for (label, key), (colour, style) in styled]
    lines += [(aggregate_name(run), key, INK, "--") for key in whole]

    def draw(ax: Axes, budget: Budget) -> None:
        for label, key, colour, linestyle in lines:
            x, y = finite_pair(budget.spent, run.column(key))
            ax.plot(x, y, linestyle, color=colour, label=legend_label(label), marker="o", markersize=3.5, linewidth=1.2)
        ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
        finish_axes(ax, budget.label, next(iter(columns.values())).rpartition("/")[2], legend=True)

    axes = budgets(run)
    said = f"; dashed is what is made of them, {aggregate_name(run)}" if whole else ""
    caption = f"{title} against {budget_names(axes)}{said}."
    panels = tuple(partial(draw, budget=budget) for budget in axes)
    return FigureSpec(name, title, caption, panels, WIDE, budget_tabs(axes))


@figure(17, "score by category", when=category_scores)
def categories_figure(evaluations: Sequence[Evaluation]) -> FigureSpec | None:
    """pass@1 of the largest categories over the steps, a panel for each set."""
    every = category_scores(evaluations)
    sets = {name: [one for one in every if one.of.set == name] for name in dict.fromkeys(one.of.set for one in every)}
    shown = {name: sorted(found, key=lambda one: -one.of.prompts)[: len(PALETTE)] for name, found in sets.items()}

    def draw(ax: Axes, name: str) -> None:
        for one, colour in zip(sorted(shown[name], key=lambda one: one.of.category), PALETTE, strict=False):
            label = legend_label(one.of.category)
            ax.plot(one.steps, one.scores, color=colour, label=label, marker="o", markersize=3.5, linewidth=1.2)
        ax.set_ylim(0, 1.02)
        finish_axes(ax, "training step", f"{name}/pass@1" if name else "pass@1", legend=True)

    left = sum(len(found) - len(shown[name]) for name, found in sets.items())
    caption = "pass@1 by category of the evaluation sets' prompts (evaluations.jsonl)"
    caption += f"; {count(left, 'smaller one')} in the table alone." if left else "."
    panels = tuple(partial(draw, name=name) for name in shown)
    return FigureSpec("score_by_category", "Score by category", caption, panels, WIDE)
