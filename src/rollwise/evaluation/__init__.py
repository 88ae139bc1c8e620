"""What a run achieved: reading a run's folder, and the field's measures of it. Needs numpy alone."""

from rollwise.evaluation.comparison import compare_runs
from rollwise.evaluation.comparison_results import Comparison
from rollwise.evaluation.json_lines import Faults, read_json_lines
from rollwise.evaluation.metrics import (
    GroupOutcomes,
    baseline_target,
    best_so_far,
    effective_task_ratio,
    group_outcomes,
    pass_at_k,
    relative_best_so_far,
    relative_time_to_baseline,
    time_to_baseline,
)
from rollwise.evaluation.run_files import RunData, read_run
from rollwise.evaluation.run_groups import group_runs
from rollwise.evaluation.run_sets import read_comparison

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
