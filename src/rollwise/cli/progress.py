"""Bars over the long tasks of a command, on the standard error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Console

from rollwise.progress_bar import progress_bar


class Bar:
    """A bar over one task; where there is no terminal, a line every tenth. `update` takes (done, in all).

    Args:
        what: What is counted, for example "rollouts read".
    """

    def __init__(self, what: str) -> None:
        self.what, self.console, self.tenths = what, Console(stderr=True), 0
        self.bar = progress_bar(self.console, disable=not self.console.is_terminal)
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


class Bars:
    """A bar for each kind of work, which begins when it is first heard of.

    Args:
        console: Where they are drawn.
    """

    def __init__(self, console: Console) -> None:
        self.progress = progress_bar(console)
        self.tasks: dict[str, Any] = {}

    def __enter__(self) -> Bars:
        self.progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.progress.stop()

    def update(self, what: str, done: int, total: int) -> None:
        """So many of so many of that work are done."""
        if what not in self.tasks:
            self.tasks[what] = self.progress.add_task(what, total=total)
        self.progress.update(self.tasks[what], completed=done, total=total)

    def of(self, what: str) -> Callable[[int, int], None]:
        """`update` for one kind of work."""
        return lambda done, total: self.update(what, done, total)
