"""Methods x seeds on one task: which runs a comparison has, and running them. Needs the `train` extra."""

from rollwise.comparing.plan import Plan, Run, read_plan
from rollwise.comparing.runner import dry_run_comparison, run_comparison

__all__ = ["Plan", "Run", "dry_run_comparison", "read_plan", "run_comparison"]
