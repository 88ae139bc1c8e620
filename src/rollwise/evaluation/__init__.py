"""What a run achieved: reading a run's folder, and the field's measures of it. Needs numpy alone."""

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

__all__ = [
    "Faults",
    "GroupOutcomes",
    "RunData",
    "baseline_target",
    "best_so_far",
    "effective_task_ratio",
    "group_outcomes",
    "pass_at_k",
    "read_json_lines",
    "read_run",
    "relative_best_so_far",
    "relative_time_to_baseline",
    "time_to_baseline",
]
