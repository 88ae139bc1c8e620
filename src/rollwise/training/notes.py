"""What is said of a run, and noted in its folder, as it begins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from accelerate import PartialState
from rich.console import Console

from rollwise.models.identity import made_by
from rollwise.runs.data_file import note_data
from rollwise.runs.folder import RunFolder
from rollwise.sampling.own_task import OwnTask
from rollwise.tasks import Task
from rollwise.training.config import TrainConfig


def say(console: Console, notes: Iterable[str]) -> None:
    """Print each as a note."""
    for note in notes:
        console.print(f"note: {note}", highlight=False, soft_wrap=True)


def note_origin(folder: RunFolder, task: Task, new: Any, console: Console) -> None:
    """Write down what data the run has, and of a `new` trainer what model; say what has changed since it began."""
    if isinstance(task, OwnTask):
        say(console, note_data(folder.path, task.fingerprint()))
    if new is not None:
        folder.write_model(made_by(new.model, new.processing_class))


def write_config(folder: RunFolder, config: TrainConfig, processes: PartialState) -> None:
    """From here on the run can be resumed."""
    if processes.is_main_process:
        folder.write_config(config.to_dict())
