"""Reads a run's folder and computes the field's measures of it. Needs numpy alone."""

from rollwise.evaluation.comparison.compare import compare_runs
from rollwise.evaluation.comparison.results import Comparison
from rollwise.evaluation.metrics import (
    GroupOutcomes,
    baseline_target,
    best_so_far,
    effective_task_ratio,
    group_outcomes,
    relative_best_so_far,
    relative_time_to_baseline,
    time_to_baseline,
)
from rollwise.runs.by_method import group_runs
from rollwise.runs.lines import Faults, read_json_lines
from rollwise.runs.pass_at_k import pass_at_k
from rollwise.runs.reading import RunData, read_run
from rollwise.runs.sets import read_comparison

__all__ = [
    "Comparison",
    "Faults",
    "GroupOutcomes",
    "RunData",
    "baseline_target",
    "best_so_far",
    "compare_runs",
    "effective_task_ratio",
    "group_outcomes",
    "group_runs",
    "pass_at_k",
    "read_comparison",
    "read_json_lines",
    "read_run",
    "relative_best_so_far",
    "relative_time_to_baseline",
    "time_to_baseline",
]
