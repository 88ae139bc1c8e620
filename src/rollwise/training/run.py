"""The main job: train a policy on a task with a curriculum, into a run folder, resumable."""

from __future__ import annotations

import os
import warnings
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from datasets import Dataset
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from transformers import PrinterCallback, ProgressCallback
from transformers.integrations import get_available_reporting_integrations
from transformers.utils import logging as transformers_logging
from trl import GRPOConfig, RLOOConfig

from rollwise.curricula import Curriculum, make_curriculum
from rollwise.errors import ConfigError, StateFileError
from rollwise.gates import DynamicSampling, make_dynamic_sampling
from rollwise.models import EMBEDDED, JUDGING, is_embedded, load_policy, policy_source, task_for
from rollwise.models.identity import made_by
from rollwise.options import did_you_mean
from rollwise.profiling import add_pass_rates
from rollwise.runs.folder import RunFolder
from rollwise.runs.names import CHECKPOINTS, CONFIG_FILE, METRICS_FILE
from rollwise.sampling.scoring import reward_spec_of
from rollwise.tasks import Task
from rollwise.terminal import make_console
from rollwise.training.budget import TokenBudget
from rollwise.training.config import NO_GATE, TrainConfig
from rollwise.training.display import Display
from rollwise.training.recording.recorder import Recorder
from rollwise.training.trainer.checkpoint import newest_usable, step_of
from rollwise.training.trainer.checkpoint_mixin import on_main
from rollwise.training.trainer.environments import check_trainer, environment_arguments, environment_options
from rollwise.training.trainer.trainers import CurriculumGRPOTrainer, CurriculumRLOOTrainer

_TRAINERS: dict[str, tuple[type, type]] = {
    "grpo": (CurriculumGRPOTrainer, GRPOConfig),
    "rloo": (CurriculumRLOOTrainer, RLOOConfig),
}

_OURS = {"output_dir": "out", "max_steps": "steps", "seed": "seed", "report_to": "report_to"}
"""Fields of the trainer's arguments that the run itself has to know: the option that sets each."""


def start_run(config: TrainConfig, *, console: Console | None = None) -> Path:
    """Train from the beginning into a new run folder; its path.

    Raises:
        ConfigError: the folder holds a run already, or what is left of one, or an option does not fit.
    """
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
    return _train(config, resume=False, console=console)


def resume_run(
    path: str | os.PathLike[str],
    *,
    steps: int | None = None,
    max_tokens: int | None = None,
    console: Console | None = None,
) -> Path:
    """Go on with a run from its newest whole checkpoint, or from the beginning if it was killed before the first.

    A checkpoint that is damaged, or that the logs do not reach, is passed over with a warning.

    Args:
        path: the run's folder.
        steps: train until this step instead of the one configured; how a finished run is extended.
        max_tokens: train until this many tokens are generated, likewise.
        console: where to show progress.

    Raises:
        StateFileError: there is no run in that folder, or its files are damaged: every checkpoint, say.
    """
    if not (Path(path) / CONFIG_FILE).exists():
        raise StateFileError(f"{str(path)!r} holds no run to resume: there is no config.yaml in it")
    values = {**RunFolder(path).read_config(), "out": str(path)}
    values |= {key: given for key, given in (("steps", steps), ("max_tokens", max_tokens)) if given is not None}
    return _train(TrainConfig.from_dict(values), resume=True, console=console)


def _train(config: TrainConfig, *, resume: bool, console: Console | None) -> Path:
    console = console or make_console(stderr=True)
    _hush()
    task = task_of(config)
    check_trainer(task, config.trainer)
    curriculum = curriculum_of(config, task)
    for part in left_out(curriculum, config):
        console.print(f"note: {part}", highlight=False, soft_wrap=True)
    gate = None if config.gate == NO_GATE else make_dynamic_sampling(config.gate, **config.gate_options)
    folder = RunFolder(config.folder)
    processes = PartialState(cpu=not torch.cuda.is_available())
    with folder.held() if processes.is_main_process else nullcontext():
        checkpoint = None
        if resume:
            checkpoint = on_main(processes, lambda: newest_usable(folder.checkpoints, folder.lacking))
        if checkpoint is not None and is_over(config, folder, step_of(checkpoint)):
            step = step_of(checkpoint)
            limit = "--steps" if step >= config.steps else f"--max_tokens (now {config.max_tokens:,})"
            console.print(f"{folder.path} is complete: {step} steps. Extend it with {limit}.")
            return folder.path
        display = Display(console)
        arguments = _trainer_arguments(config, task, folder, begun=resume)
        if is_embedded(config.model):  # the warm start takes a minute, and may be killed
            processes.wait_for_everyone()
            _write_config(folder, config, processes)
        try:
            trainer = _make_trainer(config, task, curriculum, gate, arguments, console)
        except Exception:
            if not resume and processes.is_main_process:  # so that the command can be given again with other options
                folder.config.unlink(missing_ok=True)
            raise
        _write_config(folder, config, processes)
        if checkpoint is None and processes.is_main_process:
            folder.write_model(made_by(trainer.model, trainer.processing_class))
        for kind in (PrinterCallback, ProgressCallback):
            trainer.remove_callback(kind)
        recorder = Recorder(folder, evaluate_first=config.eval_prompts > 0, same_run=True)
        recorder.attach(trainer)
        if config.max_tokens is not None:
            trainer.add_callback(TokenBudget(config.max_tokens, recorder))
        display.attach(trainer)
        if resume:
            console.print(
                f"resuming {folder.path} " + (f"from {checkpoint.name}" if checkpoint else "from the beginning")
            )
        trainer.checked = checkpoint
        try:
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        finally:
            display.close()
        trainer.accelerator.wait_for_everyone()
        shut_engine(trainer)
        trainer.accelerator.end_training()
    return folder.path


def shut_engine(trainer: Any) -> None:
    """End a vLLM engine of our own process while its process groups are still there; at exit it complains of theirs."""
    llm = getattr(getattr(trainer, "vllm_generation", None), "llm", None)
    core = getattr(getattr(llm, "llm_engine", None), "engine_core", None)
    if core is not None:
        core.shutdown()


def curriculum_of(config: TrainConfig, task: Task) -> Curriculum:
    """The curriculum of a run, unbound.

    Raises:
        ConfigError: an option that the method does not have, or a policy that can't answer what it asks.
    """
    curriculum = make_curriculum(
        config.curriculum, seed=config.seed, reward_spec=reward_spec_of(task), **config.method_options()
    )
    if curriculum.wants_answers and config.model == EMBEDDED:
        raise ConfigError(
            f"curriculum {config.curriculum!r} asks the policy for judgments, which the embedded one has not learnt to "
            f"write; use --model {JUDGING}, or a pretrained instruct model"
        )
    return curriculum


def left_out(curriculum: Curriculum, config: TrainConfig) -> list[str]:
    """The parts of the method's paper that the run's options leave out, in words."""
    name, parts = config.curriculum, []
    if curriculum.paper_gate is not None and config.gate == NO_GATE:
        gate, options = curriculum.paper_gate
        flags = " ".join([f"--gate {gate}", *(f"--gate_options.{key} {value}" for key, value in options.items())])
        parts.append(f"{name} has a gate in its paper, which this run has not: {flags}")
    if curriculum.paper_trainer not in (None, config.trainer):
        parts.append(f"{name}'s paper trains by {curriculum.paper_trainer}: --trainer {curriculum.paper_trainer}")
    return parts


def check_trainer_options(config: TrainConfig, *, begun: bool = False) -> None:
    """Say at once, and in one line, what TRL and transformers say only when the model has been loaded.

    Args:
        config: of the run.
        begun: whether it has been begun, so that its options can't be changed any more.

    Raises:
        ConfigError: a field that the trainer's arguments don't have, or a tracker that is not there.
    """
    kind = _TRAINERS[config.trainer][1]
    known = [field.name for field in fields(kind)]
    for name in config.trainer_options:
        if name in _OURS and not begun:
            raise ConfigError(f"trainer_options can't have {name!r}: give --{_OURS[name]} instead")
        if name not in known:
            raise ConfigError(f"{kind.__name__} has no option {name!r}{did_you_mean(name, known)} (trainer_options)")
    usable = ["none", "all", *sorted(get_available_reporting_integrations())]
    if config.report_to not in usable:
        raise ConfigError(
            f"report_to {config.report_to!r} is not installed, or no tracker that transformers knows; install it, or "
            f"choose one of {usable}"
        )


def is_over(config: TrainConfig, folder: RunFolder, step: int) -> bool:
    """Whether a run whose newest checkpoint is of `step` has done all its steps or used up its tokens."""
    spent = config.max_tokens is not None and folder.spent_by(step).tokens >= config.max_tokens
    return step >= config.steps or spent


def task_of(config: TrainConfig) -> Task:
    """The task of a run, with its options; in words where the model is a pretrained one."""
    return task_for(config.model, config.task, config.task_options)


def _write_config(folder: RunFolder, config: TrainConfig, processes: PartialState) -> None:
    """From here on the run can be resumed."""
    if processes.is_main_process:
        folder.write_config(config.to_dict())


def _make_trainer(
    config: TrainConfig,
    task: Task,
    curriculum: Curriculum,
    gate: DynamicSampling | None,
    arguments: Any,
    console: Console,
) -> Any:
    source = make_embedded(config.model, task, console) if is_embedded(config.model) else config.model
    model, tokenizer = load_policy(source)
    train = Dataset.from_list(task.train_records(config.train_prompts, config.seed))
    if config.profile is not None:
        train = add_pass_rates(train, config.profile)
    held_out = task.eval_records(config.eval_prompts, config.seed) if config.eval_prompts else []
    return _TRAINERS[config.trainer][0](
        model=model,
        reward_funcs=task.reward,
        args=arguments,
        train_dataset=train,
        eval_dataset=Dataset.from_list(held_out) if held_out else None,
        processing_class=tokenizer,
        curriculum=curriculum,
        gate=gate,
        probe_batch=config.probe_batch,
        max_judgment_length=config.max_judgment_length,
        failure_of=task.failure_of,
        **environment_arguments(task, trainer=config.trainer, tokenizer=tokenizer),
    )


def _trainer_arguments(config: TrainConfig, task: Task, folder: RunFolder, *, begun: bool) -> Any:
    check_trainer_options(config, begun=begun)
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    per_pass, passes = config.batch(processes)
    cpu = not torch.cuda.is_available()
    evaluating = config.eval_prompts > 0
    implied = {
        "output_dir": str(folder.checkpoints),
        "max_steps": config.steps,
        "per_device_train_batch_size": per_pass,
        "gradient_accumulation_steps": passes,
        "num_generations": config.group_size,
        "num_generations_eval": config.eval_samples,
        "per_device_eval_batch_size": config.eval_samples * max(1, per_pass // config.eval_samples),
        "max_completion_length": config.max_completion_length or task.max_completion_length,
        "temperature": config.temperature,
        "learning_rate": config.learning_rate,
        "lr_scheduler_type": "constant_with_warmup",
        "warmup_steps": config.warmup_steps,
        "beta": 0.0,
        "eval_strategy": "steps" if evaluating else "no",
        "eval_steps": config.eval_every,
        "save_strategy": "steps",
        "save_steps": config.save_every,
        "save_total_limit": config.keep_checkpoints,
        "logging_steps": 1,
        "report_to": config.report_to,
        "run_name": str(folder.path),
        "project": "rollwise",
        "disable_tqdm": True,
        "seed": config.seed,
        "use_cpu": cpu,
        "bf16": not cpu,
        "gradient_checkpointing": not cpu,
    }
    if config.trainer == "grpo":
        implied |= environment_options(task)
        implied["scale_rewards"] = "group" if config.advantages == "std" else "none"
    else:
        implied["normalize_advantages"] = config.advantages == "std"
    kind = _TRAINERS[config.trainer][1]
    try:
        return kind(**{**implied, **config.trainer_options})
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{kind.__name__} refuses these options (trainer_options): {error}") from error


def _hush() -> None:
    """Keep other libraries' bars and notices about their own options out of our display."""
    transformers_logging.disable_progress_bar()
    warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")


def make_embedded(model: str, task: Task, console: Console) -> str | Path:
    """Where to load a model from; an embedded one is made, with a bar on the console, unless it is cached."""
    processes = PartialState(cpu=not torch.cuda.is_available())
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
