"""A comparison's tables of its named evaluation sets: each set at equal compute, and its scores by category."""

from __future__ import annotations

from dataclasses import replace

from rollwise.evaluation.categories import Category
from rollwise.evaluation.comparison.results import Comparison, MethodResult
from rollwise.evaluation.run_measures import short_name
from rollwise.reports.comparison.between import between_tables
from rollwise.reports.comparison.tables import all_tables, relative_table, result_table
from rollwise.reports.comparison.words.cells import Cell, Table, measure_cell, name_cell
from rollwise.reports.comparison.words.sentences import NOTHING, difference_text, plain, with_spread
from rollwise.reports.words import count

# Of more categories the largest have a column.
MOST_CATEGORIES = 12


def every_table(comparison: Comparison) -> list[Table]:
    """All tables: of the whole, between methods, and of the sets."""
    of_sets = [*set_tables(comparison), *category_tables(comparison), *set_relative_tables(comparison)]
    return [*all_tables(comparison), *between_tables(comparison), *of_sets]


def set_tables(comparison: Comparison) -> list[Table]:
    """For each set what was reached at equal compute, and the last of its widest pass@k; none without sets."""
    return [_set_table(name, own) for name, own in comparison.sets.items() if own.budgets]


def _set_table(name: str, own: Comparison) -> Table:
    table, score = result_table(own), short_name(str(own.score))
    wide = [key for key in own.measures if key.startswith(f"final_{name}/pass@") and key != f"final_{score}"][-1:]
    rows = tuple(
        (*row, *(measure_cell(found[key], own.measures[key]) if key in found else Cell(NOTHING) for key in wide))
        for row, found in zip(table.rows, (method.measures for method in own.methods), strict=True)
    )
    note = f"As at equal compute, by {score}."
    note += " The last column is of whole runs, not cut." if wide else ""
    head = (*table.head, *(own.measures[key].label for key in wide))
    return Table(f"Set {name}", head, rows, note)


def category_tables(comparison: Comparison) -> list[Table]:
    """For each set the last and the best score by category, the largest categories first; none without categories."""
    return [_category_table(comparison, name) for name in dict.fromkeys(one.set for one in comparison.categories)]


def _category_table(comparison: Comparison, name: str) -> Table:
    every = [one for one in comparison.categories if one.set == name]
    shown = every if len(every) <= MOST_CATEGORIES else sorted(every, key=lambda one: -one.prompts)[:MOST_CATEGORIES]
    head = ("method", *(f"{one.category} ({count(one.prompts, 'prompt')})" for one in shown))
    rows = tuple(
        (name_cell(comparison, method), *(_category_cell(method, one) for one in shown))
        for method in comparison.methods
    )
    note = (
        "pass@1 of the last evaluation of whole runs, not cut: mean ± standard deviation over seeds; below, the paired "
        f"difference from {comparison.baseline} with its 95 % bootstrap interval, and the best of the evaluations, "
        "which is too high by chance, the more so the fewer prompts a category has."
    )
    if len(shown) < len(every):
        less = len(every) - len(shown)
        note += f" {less} smaller categor{'y is' if less == 1 else 'ies are'} in results.csv alone."
    return Table(f"Set {name} by category" if name else "By category", head, rows, note)


def _category_cell(method: MethodResult, category: Category) -> Cell:
    final, best = (method.measures.get(category.key(which)) for which in ("final", "best"))
    if final is None or best is None or not final.n:
        return Cell(NOTHING)
    gain = [difference_text(final.difference)] if final.difference else []
    below = ", ".join([*gain, f"best {plain(best.mean)}"])
    return Cell(with_spread(final.mean, final.sd), below, final.mean)


def set_relative_tables(comparison: Comparison) -> list[Table]:
    """TTB, BSF and the time of the best of each set, on the axis of the verdict."""
    axis = comparison.headline_axis
    tables = {name: relative_table(own, axis) for name, own in comparison.sets.items() if axis in own.budgets}
    return [replace(table, title=f"Set {name}: {table.title}") for name, table in tables.items()]
