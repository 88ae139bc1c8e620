"""What is said of a run, and noted in its folder, as it begins and ends."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from statistics import fmean
from typing import Any

from accelerate import PartialState
from rich.console import Console
from transformers.utils import logging as transformers_logging

from rollwise.models.identity import made_by
from rollwise.models.sources import USUAL_LEARNING_RATE, made_here
from rollwise.runs.data_file import note_data
from rollwise.runs.folder import RunFolder
from rollwise.runs.log_ends import read_log
from rollwise.sampling.own_task import OwnTask
from rollwise.tasks import Task
from rollwise.training.config import TrainConfig

RARELY_HIGHER = 1e-4
"""Learning rates of pretrained models are rarely as high."""
_MANY = 0.3
"""From this share of rollouts without an advantage on, the time that their update takes is worth a sentence."""


def hush() -> None:
    """Keep other libraries' bars and notices about their own options out of our display."""
    transformers_logging.disable_progress_bar()
    warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")


def cautions(config: TrainConfig) -> list[str]:
    """What is rarely meant, in words: a learning rate for the embedded policy, with a pretrained model."""
    if made_here(config.model) or config.peft or config.learning_rate < RARELY_HIGHER:
        return []
    return [
        f"learning rate {config.learning_rate:g} is for the embedded policy; {USUAL_LEARNING_RATE} is usual for a "
        f"pretrained model (--learning_rate {USUAL_LEARNING_RATE})"
    ]


def needless(config: TrainConfig, folder: RunFolder) -> list[str]:
    """A sentence where many rollouts of the run had an advantage of 0 and were trained on all the same; else none."""
    if config.skip_zero_advantage:
        return []
    shares = [line["zero_advantage"] for _, line in read_log(folder.metrics) if "zero_advantage" in line]
    if not shares or fmean(shares) < _MANY:
        return []
    return [
        f"{fmean(shares):.0%} of the rollouts had an advantage of 0; --skip_zero_advantage true makes the same update "
        "without them, in less time"
    ]


def say(console: Console, notes: Iterable[str]) -> None:
    """Print each as a note."""
    for note in notes:
        console.print(f"note: {note}", highlight=False, soft_wrap=True)


def note_origin(folder: RunFolder, task: Task, new: Any, console: Console) -> None:
    """Write down what data the run has, and of a `new` trainer what model; say what has changed since it began."""
    if isinstance(task, OwnTask):
        say(console, note_data(folder.path, task.fingerprint(), anew=new is not None))
    if new is not None:
        folder.write_model(made_by(new.model, new.processing_class))


def write_config(folder: RunFolder, config: TrainConfig, processes: PartialState) -> None:
    """From here on the run can be resumed."""
    if processes.is_main_process:
        folder.write_config(config.to_dict())
