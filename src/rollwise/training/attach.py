"""What listens to a run's trainer: recorder, budget and display in place of its own."""

from __future__ import annotations

from typing import Any

from transformers import PrinterCallback, ProgressCallback

from rollwise.runs.folder import RunFolder
from rollwise.tasks import Task
from rollwise.training.budget import Budget
from rollwise.training.config import TrainConfig
from rollwise.training.display import Display
from rollwise.training.evaluations import Evaluations
from rollwise.training.parts import end_sets_of
from rollwise.training.recording.recorder import Recorder


def attach(trainer: Any, config: TrainConfig, task: Task, folder: RunFolder, display: Display) -> None:
    """Have the trainer record itself, stop at its budget, evaluate and draw our display in place of its own."""
    for kind in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(kind)
    recorder = Recorder(
        folder, evaluate_first=config.eval_prompts > 0, same_run=True, judgments_per_step=config.judgments_per_step
    )
    recorder.attach(trainer)
    trainer.add_callback(Budget(recorder, tokens=config.token_budget, hours=config.max_hours))
    display.attach(trainer)
    Evaluations(recorder, config, end_sets_of(config, task)).attach(trainer)
