"""The main job: train a policy on a task with a curriculum, into a run folder, resumable."""

from __future__ import annotations

import os
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

from rich.console import Console

from rollwise.errors import ConfigError, StateFileError
from rollwise.gates import make_dynamic_sampling
from rollwise.models import is_embedded
from rollwise.runs.folder import RunFolder
from rollwise.runs.names import (
    CHECKPOINTS,
    CONFIG_FILE,
    EVALUATIONS_FILE,
    JUDGMENTS_FILE,
    METRICS_FILE,
    PROMPTS_FILE,
    ROLLOUTS_FILE,
)
from rollwise.sampling.own_task import task_of
from rollwise.sampling.setting import say_stop
from rollwise.terminal import make_console
from rollwise.training.arguments import trainer_arguments
from rollwise.training.attach import attach
from rollwise.training.budget import done_at, ended_early, limits_of
from rollwise.training.config import NO_GATE, TrainConfig
from rollwise.training.display import Display
from rollwise.training.make_trainer import make_trainer
from rollwise.training.notes import cautions, hush, needless, note_origin, say, write_config
from rollwise.training.parts import OptionErrors, curriculum_of, judge_notes, left_out
from rollwise.training.trainer.checkpoint import newest_usable
from rollwise.training.trainer.environments import check_trainer
from rollwise.training.trainer.ranks import on_main, ranks_of_run


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
    logs = (METRICS_FILE, ROLLOUTS_FILE, PROMPTS_FILE, EVALUATIONS_FILE, JUDGMENTS_FILE)  # a run begins with empty ones
    kept = (*(config.folder / name for name in logs), *config.folder.glob(f"{CHECKPOINTS}/*"))
    if left := [path for path in kept if path.exists()]:
        raise ConfigError(
            f"there is no config.yaml, but {str(left[0])!r} is there, of another run: put its config.yaml back to go "
            "on with it, or choose another --out"
        )


def started_again(config: TrainConfig) -> bool:
    """Whether torchrun starts the run once more, after one of its processes died (`max_restarts`): it goes on then."""
    if os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0" or not (config.folder / CONFIG_FILE).exists():
        return False
    return TrainConfig.from_dict(RunFolder(config.folder).read_config()) == config


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
        StateFileError: there is no run in that folder, its files are damaged (every checkpoint, say), or a complete run
            is to be extended whose checkpoints were deleted.
    """
    if not (Path(path) / CONFIG_FILE).exists():
        raise StateFileError(f"{str(path)!r} holds no run to resume: there is no config.yaml in it")
    launched = RunFolder(path).read_launch()
    if launched is not None and launched["engine"] != "trl":
        raise StateFileError(f"{str(path)!r} was trained by {launched['engine']}: rollwise launch --resume {path}")
    # A run of an earlier version had no stop texts, whatever its task.
    values = {**TrainConfig.from_dict({"stop": [], **RunFolder(path).read_config()}).to_dict(), "out": str(path)}
    limits = {"steps": steps, "token_budget": token_budget, "max_hours": max_hours}
    values |= {key: given for key, given in limits.items() if given is not None}
    return _train(TrainConfig.from_dict(values), resume=True, console=console)


def _train(config: TrainConfig, *, resume: bool, console: Console | None) -> Path:
    console = console or make_console(stderr=True)
    hush()
    processes = ranks_of_run()
    task = task_of(config)
    check_trainer(task, config.trainer)
    curriculum = curriculum_of(config, task)
    say(console, [*left_out(curriculum, config), *judge_notes(curriculum)])
    gate = None if config.gate == NO_GATE else make_dynamic_sampling(config.gate, **config.gate_options)
    folder = RunFolder(config.folder)
    with ExitStack() as stack:
        if processes.is_main_process:
            stack.enter_context(folder.held())
            stack.enter_context(nullcontext() if resume else folder.begun())
        checkpoint = on_main(processes, lambda: newest_usable(folder.checkpoints, folder.lacking)) if resume else None
        done = on_main(processes, lambda: done_at(config, folder, checkpoint)) if resume else None
        if done is not None:
            how = f"Extend it with {limits_of(config, folder, done)}" if checkpoint else "No checkpoint of it is kept"
            console.print(f"{folder.path} is complete: {done} steps. {how}.")
            return folder.path
        display = Display(console)
        arguments = trainer_arguments(config, task, folder.path, begun=resume)
        if is_embedded(config.model):  # the warm start takes a minute, and may be killed
            processes.wait_for_everyone()
            write_config(folder, config, processes)
        trainer = make_trainer(config, task, curriculum, gate, arguments, console)
        write_config(folder, config, processes)
        if processes.is_main_process:
            note_origin(folder, task, None if checkpoint else trainer, console)
        attach(trainer, config, task, folder, display)
        if resume:
            console.print(f"resuming {folder.path} from {checkpoint.name if checkpoint else 'the beginning'}")
        say_stop(config, task, console)
        say(console, cautions(config))
        trainer.checked = checkpoint
        stack.callback(display.close)
        with OptionErrors():
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        _end(trainer, config, folder, console)
    return folder.path


def _end(trainer: Any, config: TrainConfig, folder: RunFolder, console: Console) -> None:
    trainer.accelerator.wait_for_everyone()
    say(console, [*ended_early(config, folder, trainer.state.global_step), *needless(config, folder)])
    shut_engine(trainer)
    trainer.accelerator.end_training()


def shut_engine(trainer: Any) -> None:
    """End a vLLM engine of our own process while its process groups are still there; at exit it complains of theirs."""
    llm = getattr(getattr(trainer, "vllm_generation", None), "llm", None)
    core = getattr(getattr(llm, "llm_engine", None), "engine_core", None)
    if core is not None:
        core.shutdown()
