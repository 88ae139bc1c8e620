"""The main job: train a policy on a task with a curriculum, into a run folder, resumable."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

from accelerate import PartialState
from rich.console import Console
from transformers import PrinterCallback, ProgressCallback
from transformers.utils import logging as transformers_logging

from rollwise.errors import ConfigError, StateFileError
from rollwise.gates import make_dynamic_sampling
from rollwise.models import is_embedded
from rollwise.models.identity import made_by
from rollwise.runs.data_file import note_data
from rollwise.runs.folder import RunFolder
from rollwise.runs.names import CHECKPOINTS, CONFIG_FILE, LAUNCH_FILE, METRICS_FILE
from rollwise.sampling.own_task import OwnTask, task_of
from rollwise.sampling.setting import say_stop
from rollwise.tasks import Task
from rollwise.terminal import make_console
from rollwise.training.arguments import trainer_arguments
from rollwise.training.budget import Budget, is_spent
from rollwise.training.config import NO_GATE, TrainConfig
from rollwise.training.display import Display
from rollwise.training.make_trainer import make_trainer
from rollwise.training.parts import cautions, curriculum_of, judge_notes, left_out
from rollwise.training.recording.recorder import Recorder
from rollwise.training.trainer.checkpoint import newest_usable, step_of
from rollwise.training.trainer.environments import check_trainer
from rollwise.training.trainer.ranks import on_main, ranks_of_run
from rollwise.yaml_file import read_yaml


def start_run(config: TrainConfig, *, console: Console | None = None) -> Path:
    """Train from the beginning into a new run folder; its path.

    Raises:
        ConfigError: the folder holds a run already, or what is left of one, or an option does not fit.
    """
    check_new(config)
    return _train(config, resume=False, console=console)


def check_new(config: TrainConfig) -> None:
    """`ConfigError` where the folder of a new run holds a run already, or what is left of one."""
    if (config.folder / CONFIG_FILE).exists():
        raise ConfigError(
            f"{str(config.folder)!r} holds a run already: go on with --resume {config.folder}, or choose another --out"
        )
    left = [path for path in (config.folder / METRICS_FILE, *config.folder.glob(f"{CHECKPOINTS}/*")) if path.exists()]
    if left:
        raise ConfigError(
            f"there is no config.yaml, but {str(left[0])!r} is there, of another run: put its config.yaml back to go "
            "on with it, or choose another --out"
        )


def resume_run(
    path: str | os.PathLike[str],
    *,
    steps: int | None = None,
    token_budget: int | None = None,
    max_hours: float | None = None,
    console: Console | None = None,
) -> Path:
    """Go on with a run from its newest whole checkpoint, or from the beginning if it was killed before the first.

    A checkpoint that is damaged, or that the logs do not reach, is passed over with a warning.

    Args:
        path: the run's folder.
        steps: train until this step instead of the one configured; how a finished run is extended.
        token_budget: train until this many tokens are generated, likewise.
        max_hours: train for this many hours in all, likewise.
        console: where to show progress.

    Raises:
        StateFileError: there is no run in that folder, or its files are damaged: every checkpoint, say.
    """
    if not (Path(path) / CONFIG_FILE).exists():
        raise StateFileError(f"{str(path)!r} holds no run to resume: there is no config.yaml in it")
    launched = Path(path) / LAUNCH_FILE
    if launched.exists() and (engine := read_yaml(launched).get("engine")) != "trl":
        raise StateFileError(f"{str(path)!r} was trained by {engine}: rollwise launch --resume {path}")
    # A run of an earlier version had no stop texts, whatever its task.
    values = {**TrainConfig.from_dict({"stop": [], **RunFolder(path).read_config()}).to_dict(), "out": str(path)}
    limits = {"steps": steps, "token_budget": token_budget, "max_hours": max_hours}
    values |= {key: given for key, given in limits.items() if given is not None}
    return _train(TrainConfig.from_dict(values), resume=True, console=console)


def _train(config: TrainConfig, *, resume: bool, console: Console | None) -> Path:
    console = console or make_console(stderr=True)
    _hush()
    processes = ranks_of_run()
    task = task_of(config)
    check_trainer(task, config.trainer)
    curriculum = curriculum_of(config, task)
    _say(console, [*left_out(curriculum, config), *judge_notes(curriculum)])
    say_stop(config, task, console)
    gate = None if config.gate == NO_GATE else make_dynamic_sampling(config.gate, **config.gate_options)
    folder = RunFolder(config.folder)
    with ExitStack() as stack:
        if processes.is_main_process:
            stack.enter_context(folder.held())
            stack.enter_context(nullcontext() if resume else folder.begun())
        checkpoint = on_main(processes, lambda: newest_usable(folder.checkpoints, folder.lacking)) if resume else None
        if checkpoint is not None and is_over(config, folder, step_of(checkpoint)):
            step = step_of(checkpoint)
            console.print(f"{folder.path} is complete: {step} steps. Extend it with {_limit(config, folder, step)}.")
            return folder.path
        display = Display(console)
        arguments = trainer_arguments(config, task, folder.path, begun=resume)
        if is_embedded(config.model):  # the warm start takes a minute, and may be killed
            processes.wait_for_everyone()
            _write_config(folder, config, processes)
        trainer = make_trainer(config, task, curriculum, gate, arguments, console)
        _write_config(folder, config, processes)
        if processes.is_main_process:
            _note_origin(folder, task, None if checkpoint else trainer, console)
        _attach(trainer, config, folder, display)
        if resume:
            console.print(f"resuming {folder.path} from {checkpoint.name if checkpoint else 'the beginning'}")
        _say(console, cautions(config))
        trainer.checked = checkpoint
        try:
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        finally:
            display.close()
        _end(trainer)
    return folder.path


def _say(console: Console, notes: Iterable[str]) -> None:
    for note in notes:
        console.print(f"note: {note}", highlight=False, soft_wrap=True)


def _note_origin(folder: RunFolder, task: Task, new: Any, console: Console) -> None:
    """Write down what data the run has, and of a `new` trainer what model; say what has changed since it began."""
    if isinstance(task, OwnTask):
        _say(console, note_data(folder.path, task.fingerprint()))
    if new is not None:
        folder.write_model(made_by(new.model, new.processing_class))


def _end(trainer: Any) -> None:
    trainer.accelerator.wait_for_everyone()
    shut_engine(trainer)
    trainer.accelerator.end_training()


def _attach(trainer: Any, config: TrainConfig, folder: RunFolder, display: Display) -> None:
    """Have the trainer record itself, stop at its budget and draw our display in place of its own."""
    for kind in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(kind)
    recorder = Recorder(
        folder,
        evaluate_first=config.eval_prompts > 0,
        same_run=True,
        judgments_per_step=config.judgments_per_step,
    )
    recorder.attach(trainer)
    trainer.add_callback(Budget(recorder, tokens=config.token_budget, hours=config.max_hours))
    display.attach(trainer)


def shut_engine(trainer: Any) -> None:
    """End a vLLM engine of our own process while its process groups are still there; at exit it complains of theirs."""
    llm = getattr(getattr(trainer, "vllm_generation", None), "llm", None)
    core = getattr(getattr(llm, "llm_engine", None), "engine_core", None)
    if core is not None:
        core.shutdown()


def is_over(config: TrainConfig, folder: RunFolder, step: int) -> bool:
    """Whether a run whose newest checkpoint is of `step` has done all its steps or used up its tokens or hours."""
    return step >= config.steps or is_spent(folder.spent_by(step), tokens=config.token_budget, hours=config.max_hours)


def _limit(config: TrainConfig, folder: RunFolder, step: int) -> str:
    """The options that ended a run, with what they are now."""
    spent = folder.spent_by(step)
    ends = {
        "--steps": step >= config.steps,
        f"--token_budget (now {config.token_budget or 0:,})": is_spent(spent, tokens=config.token_budget, hours=None),
        f"--max_hours (now {config.max_hours or 0:g})": is_spent(spent, tokens=None, hours=config.max_hours),
    }
    return " and ".join(limit for limit, over in ends.items() if over)


def _write_config(folder: RunFolder, config: TrainConfig, processes: PartialState) -> None:
    """From here on the run can be resumed."""
    if processes.is_main_process:
        folder.write_config(config.to_dict())


def _hush() -> None:
    """Keep other libraries' bars and notices about their own options out of our display."""
    transformers_logging.disable_progress_bar()
    warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")
