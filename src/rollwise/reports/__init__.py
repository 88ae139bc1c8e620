"""Figures and HTML reports of runs, read from their files. Needs matplotlib: `pip install "rollwise[report]"`."""

from rollwise.reports.comparison.report import write_comparison, write_run_comparison
from rollwise.reports.inference.consistency import write_consistency_report
from rollwise.reports.run.report import write_report

__all__ = ["write_comparison", "write_consistency_report", "write_report", "write_run_comparison"]
