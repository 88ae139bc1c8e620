"""A bar over one long task of a command; where there is no terminal, a line every tenth."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class Bar:
    """A bar on the standard error; `update` fits wherever (done, in all) is reported.

    Args:
        what: What is counted, for example "rollouts read".
    """

    def __init__(self, what: str) -> None:
        self.what, self.console, self.tenths = what, Console(stderr=True), 0
        columns = (TextColumn("[bold]{task.description}"), BarColumn(bar_width=20), MofNCompleteColumn())
        times = (TimeElapsedColumn(), TextColumn("<"), TimeRemainingColumn())
        self.bar = Progress(*columns, *times, console=self.console, disable=not self.console.is_terminal)
        self.task = self.bar.add_task(what, total=None)

    def __enter__(self) -> Bar:
        self.bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.bar.stop()

    def update(self, done: int, total: int) -> None:
        """So many of so many are done."""
        self.bar.update(self.task, completed=done, total=total)
        if not self.console.is_terminal and done * 10 // total > self.tenths:
            self.tenths = done * 10 // total
            self.console.print(f"{self.what}: {done:,} of {total:,}", highlight=False)
