"""Bars over the long tasks of a command, on the standard error; where there is no terminal, a line every tenth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Console

from rollwise.progress_bar import progress_bar
from rollwise.sampling.progress import Tenths
from rollwise.terminal import make_console


class Bars:
    """A bar for each kind of work, which begins when it is first heard of; lines where there is no terminal."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console = console or make_console(stderr=True)
        self.progress = progress_bar(console, disable=not console.is_terminal)
        self.tasks: dict[str, Any] = {}
        self.lines: dict[str, Tenths] = {}

    def __enter__(self) -> Bars:
        self.progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.progress.stop()

    def update(self, what: str, done: int, total: int) -> None:
        """`done` of `total` of that work are done."""
        if self.progress.disable:
            self.lines.setdefault(what, Tenths(self.console, what)).update(done, total)
            return
        if what not in self.tasks:
            self.tasks[what] = self.progress.add_task(what, total=total)
        self.progress.update(self.tasks[what], completed=done, total=total)

    def of(self, what: str) -> Callable[[int, int], None]:
        """`update` for one kind of work."""
        return lambda done, total: self.update(what, done, total)
