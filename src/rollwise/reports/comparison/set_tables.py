"""A comparison's tables of its named evaluation sets: each set at equal compute, and its scores by category."""

from __future__ import annotations

from dataclasses import replace

from rollwise.evaluation.comparison.results import Comparison
from rollwise.evaluation.run_measures import short_name
from rollwise.reports.comparison.cells import Table
from rollwise.reports.comparison.tables import relative_table, result_table


def set_tables(comparison: Comparison) -> list[Table]:
    """For each set what was reached at equal compute; none without sets."""
    shown = {name: own for name, own in comparison.sets.items() if own.budgets}
    return [
        replace(result_table(own), title=f"Set {name}", note=f"As at equal compute, by {short_name(str(own.score))}.")
        for name, own in shown.items()
    ]


def set_relative_tables(comparison: Comparison) -> list[Table]:
    """TTB, BSF and the time of the best of each set, on the axis of the verdict."""
    axis = comparison.headline_axis
    tables = {name: relative_table(own, axis) for name, own in comparison.sets.items() if axis in own.budgets}
    return [replace(table, title=f"Set {name}: {table.title}") for name, table in tables.items()]
