"""The loop that looks and draws."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console, RenderableType
from rich.live import Live

from rollwise.errors import StateFileError
from rollwise.options import check_number
from rollwise.watching.glyphs import ASCII, BLOCKS
from rollwise.watching.rows import render_rows
from rollwise.watching.screen import TALL, Canvas, render_run
from rollwise.watching.snapshot import Snapshot
from rollwise.watching.targets import Targets

# Lines that the last screen leaves to the shell, so that its top does not scroll away.
_PROMPT_LINES = 2


@dataclass(frozen=True, kw_only=True)
class WatchOptions:
    """How to watch.

    Args:
        once: show one snapshot and end; done anyway where the console is not a terminal that can be drawn on.
        stay: go on when every run is complete.
        every: seconds between two looks, in [0.1, 3600].
        ascii: draw with ASCII alone; done anyway where the console's encoding is not UTF-8.
    """

    once: bool = False
    stay: bool = False
    every: float = 1.0
    ascii: bool = False

    def __post_init__(self) -> None:
        check_number("every", self.every, low=0.1, high=3600.0)


def watch(
    paths: Sequence[str | os.PathLike[str]],
    console: Console,
    options: WatchOptions | None = None,
    *,
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Show runs while they go on, until all are complete; the last screen stays where the screen was.

    Args:
        paths: folders of runs or of comparisons.
        console: where to show them.
        options: how.
        now: the time, in seconds since the epoch.
        sleep: waits this many seconds.

    Raises:
        StateFileError: a file can't be read; or, for one snapshot, a folder holds no run.
        ConfigError: an option is out of its range.
    """
    options = options or WatchOptions()
    targets = Targets(paths)
    if options.once or not console.is_terminal or console.is_dumb_terminal:
        while targets.look():
            pass
        if targets.missing:
            raise StateFileError(
                f"{str(targets.missing[0])!r} holds no run: there is no config.yaml or metrics.jsonl in it; give a "
                "run's folder, or several: runs/*"
            )
        console.print(_draw(targets, targets.snapshots(now()), console, options, height=None))
        return
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            behind = targets.look()
            snapshots = targets.snapshots(now())
            live.update(_draw(targets, snapshots, console, options, height=console.height), refresh=True)
            if not behind and not options.stay and all(s.status == "complete" for s in snapshots):
                break
            if not behind:
                sleep(options.every)
    console.print(_draw(targets, snapshots, console, options, height=console.height - _PROMPT_LINES))


def _draw(
    targets: Targets, snapshots: Sequence[Snapshot], console: Console, options: WatchOptions, *, height: int | None
) -> RenderableType:
    plain = options.ascii or not console.encoding.lower().startswith("utf")
    glyphs = ASCII if plain else BLOCKS
    if not targets.side_by_side:
        return render_run(snapshots[0], Canvas(console.width, height or TALL, glyphs))
    return render_rows(snapshots, Canvas(console.width, height or len(snapshots) + TALL, glyphs))
