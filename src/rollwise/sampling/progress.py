"""The bar over prompts that are rolled out, and lines in place of a bar where there is no terminal."""

from __future__ import annotations

import time

from rich.console import Console

from rollwise.progress_bar import progress_bar


class Tenths:
    """A line for each tenth of one task, with the time left: what a pipe or a log file gets in place of a bar."""

    def __init__(self, console: Console, what: str) -> None:
        self.console, self.what = console, what
        self.said = 0
        self._began: tuple[float, int] | None = None  # when it was first heard of, and what was done by then

    def update(self, done: int, total: int, note: str = "") -> None:
        """`done` of `total` are done; `note` stands at the end of the line."""
        now = time.monotonic()
        if self._began is None:
            self._began = now, done
        tenths = done * 10 // max(total, 1)
        if tenths <= self.said:
            return
        self.said = tenths
        since, before = self._began
        parts = [f"{self.what}: {done:,} of {total:,}", *([note] if note else [])]
        if done < total and done > before:
            parts.append(f"about {duration((now - since) * (total - done) / (done - before))} left")
        self.console.print(", ".join(parts), highlight=False, soft_wrap=True)


def duration(seconds: float) -> str:
    """Seconds as people say them.

    >>> duration(42.3), duration(760), duration(7300)
    ('42 s', '13 min', '2.0 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


class SamplingBar:
    """What is going on, with the time left; where there is no terminal, a line every tenth."""

    def __init__(self, console: Console) -> None:
        self.progress = progress_bar(console, note="signals", disable=not console.is_terminal)
        self.warming = self.progress.add_task("warm start", total=None, visible=False, signals="")
        self.sampling = self.progress.add_task("prompts", total=None, visible=False, signals="")
        self.lines = {name: Tenths(console, name) for name in ("warm start", "prompts rolled out")}

    def __enter__(self) -> SamplingBar:
        self.progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.progress.stop()

    def warmed(self, done: int, steps: int) -> None:
        """`done` of `steps` of the embedded policy's warm start are done."""
        self.progress.update(self.warming, completed=done, total=steps, visible=done < steps)
        if self.progress.disable:
            self.lines["warm start"].update(done, steps)

    def sampled(self, done: int, prompts: int, tokens: int) -> None:
        """`done` of `prompts` are rolled out."""
        if self.progress.tasks[self.sampling].total is None:
            self.progress.reset(self.sampling, completed=done, total=prompts, visible=True)
        if self.progress.disable:
            self.lines["prompts rolled out"].update(done, prompts, f"{tokens:,} tokens")
        self.progress.update(self.sampling, completed=done, total=prompts, signals=f"{tokens:,} tokens")
