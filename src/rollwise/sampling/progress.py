"""The bar over prompts that are rolled out."""

from __future__ import annotations

from rich.console import Console

from rollwise.progress_bar import progress_bar


class SamplingBar:
    """What is going on, with the time left; where there is no terminal, a line every tenth."""

    def __init__(self, console: Console) -> None:
        self.progress = progress_bar(console, note="signals", disable=not console.is_terminal)
        self.warming = self.progress.add_task("warm start", total=None, visible=False, signals="")
        self.said = 0  # tenths
        self.sampling = self.progress.add_task("prompts", total=None, visible=False, signals="")

    def __enter__(self) -> SamplingBar:
        self.progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.progress.stop()

    def warmed(self, done: int, steps: int) -> None:
        """So many steps of the embedded policy's warm start."""
        self.progress.update(self.warming, completed=done, total=steps, visible=done < steps)

    def sampled(self, done: int, prompts: int, tokens: int) -> None:
        """So many prompts are rolled out."""
        if self.progress.tasks[self.sampling].total is None:
            self.progress.reset(self.sampling, completed=done, total=prompts, visible=True)
        if self.progress.disable and done * 10 // prompts > self.said:
            self.progress.console.print(f"{done:,} of {prompts:,} prompts rolled out, {tokens:,} tokens")
        self.said = done * 10 // prompts
        self.progress.update(self.sampling, completed=done, total=prompts, signals=f"{tokens:,} tokens")
