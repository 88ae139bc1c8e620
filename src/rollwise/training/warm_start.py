"""The embedded policy, made before training with a bar on the console."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from rollwise.models import policy_source
from rollwise.tasks import Task
from rollwise.training.trainer.ranks import ranks_of_run


def make_embedded(model: str, task: Task, console: Console) -> str | Path:
    """Where to load a model from; an embedded one is made, with a bar on the console, unless it is cached."""
    processes = ranks_of_run()
    columns = (
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=console, disable=not processes.is_main_process)
    with processes.local_main_process_first(), bar:  # the others find it in the cache
        warming = bar.add_task(f"warm start: {task.name}", total=None, visible=False)
        return policy_source(model, task, progress=lambda d, n: bar.update(warming, completed=d, total=n, visible=True))
