"""Watching runs in the terminal while they go on: reads their folders, and nothing else."""

from rollwise.watching.live import WatchOptions, watch

__all__ = ["WatchOptions", "watch"]
