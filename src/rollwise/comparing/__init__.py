"""Methods x seeds on one task: which runs a comparison has, and running them. Needs the `train` extra."""

from rollwise.comparing.plan import Plan, Run, read_plan
from rollwise.comparing.runner import run_comparison

__all__ = ["Plan", "Run", "read_plan", "run_comparison"]
