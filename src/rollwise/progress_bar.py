"""The bar of every long task, which looks the same wherever it runs.

rich is no dependency of the core. It is imported by the call, not with this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


def progress_bar(
    console: Console, *, note: str | None = None, disable: bool = False, transient: bool = False
) -> Progress:
    """What is done, a bar, how many of how many, the time taken and the time left.

    Args:
        console: Where it is drawn.
        note: The field of its tasks whose plain text stands at the end of the line.
        disable: Draw nothing.
        transient: Clear it at the end; nothing is drawn but on a terminal.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("<"),
        TimeRemainingColumn(),
        *([] if note is None else [TextColumn(f"{{task.fields[{note}]}}", markup=False)]),
        console=console,
        disable=disable or (transient and not console.is_terminal),
        transient=transient,
    )
