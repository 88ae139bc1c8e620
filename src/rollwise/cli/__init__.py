"""The command `rollwise`."""

from rollwise.cli.main import main

__all__ = ["main"]
