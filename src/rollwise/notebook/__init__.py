"""A run in a notebook: its numbers as columns and data frames, the report's figures, a summary."""

from rollwise.notebook.run import LoadedRun, load_run

__all__ = ["LoadedRun", "load_run"]
