"""The progress bar of `rollwise consistency`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console

from rollwise.inference.endpoint.samples import Line
from rollwise.progress_bar import progress_bar


@contextmanager
def answers_bar(console: Console, total: int, before: Sequence[Line]) -> Iterator[Any]:
    """Gives a function that takes each new line; without a terminal a line is printed for every tenth of the prompts.

    Args:
        console: Where to.
        total: Prompts in all.
        before: The lines of those that were done before.
    """
    count, samples = len(before), sum(line["samples"] for line in before)
    with progress_bar(console, note="signals", disable=not console.is_terminal) as progress:
        task = progress.add_task("prompts", total=total, completed=count, signals="")

        def show(line: Line) -> None:
            nonlocal count, samples
            count, samples = count + 1, samples + line["samples"]
            progress.update(task, completed=count, signals=f"{samples / count:.1f} samples each")
            if not console.is_terminal and count % max(1, total // 10) == 0:
                console.print(f"{count}/{total} prompts, {samples / count:.1f} samples each")

        yield show
