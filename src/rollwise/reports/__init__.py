"""Figures and the HTML report of a run, read from its files. Needs matplotlib: `pip install "rollwise[report]"`."""

from rollwise.reports.report import write_report

__all__ = ["write_report"]
