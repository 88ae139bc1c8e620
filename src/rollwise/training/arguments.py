"""The arguments of TRL's trainer for a run: what its options imply, and what the user sets beside them."""

from __future__ import annotations

import logging
import os
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from transformers.integrations import get_available_reporting_integrations
from trl import GRPOConfig, RLOOConfig

from rollwise.errors import ConfigError
from rollwise.options import did_you_mean
from rollwise.runs.names import CHECKPOINTS
from rollwise.tasks import Task
from rollwise.training.config import TrainConfig
from rollwise.training.trainer.environments import environment_options
from rollwise.training.trainer.ranks import check_gpus, without_gpu
from rollwise.training.trainer.trainers import CurriculumGRPOTrainer, CurriculumRLOOTrainer

logger = logging.getLogger(__name__)

TRAINERS: dict[str, tuple[type, type]] = {
    "grpo": (CurriculumGRPOTrainer, GRPOConfig),
    "rloo": (CurriculumRLOOTrainer, RLOOConfig),
}

_NEVER = 10**9
"""Steps between evaluations where they come by generated tokens (`evaluations.py`)."""
_OURS = {"output_dir": "out", "max_steps": "steps", "seed": "seed", "report_to": "report_to"} | {
    "num_train_epochs": "steps", "resume_from_checkpoint": "resume", "shuffle_dataset": "curriculum",
    "data_seed": "seed",
}  # fmt: skip
"""Fields of the trainer's arguments that the run itself has to know, or would ignore: the option in place of each."""


def check_trainer_options(config: TrainConfig, *, begun: bool = False) -> None:
    """Say at once, and in one line, what TRL and transformers say only when the model has been loaded.

    Args:
        config: of the run.
        begun: whether it has been begun, so that its options can't be changed any more.

    Raises:
        ConfigError: a field that the trainer's arguments don't have, a value of another type, or a tracker that is not
            there.
    """
    kind = TRAINERS[config.trainer][1]
    known, types = [field.name for field in fields(kind)], get_type_hints(kind)
    if not begun:
        _check_heard(config)
    for name, value in config.trainer_options.items():
        if name not in known:
            raise ConfigError(f"{kind.__name__} has no option {name!r}{did_you_mean(name, known)} (trainer_options)")
        _check_type(name, value, types[name])
    usable = ["none", "all", *sorted(get_available_reporting_integrations())]
    if config.report_to not in usable:
        raise ConfigError(
            f"report_to {config.report_to!r} is not installed, or no tracker that transformers knows; install it, or "
            f"choose one of {usable}"
        )


def _check_heard(config: TrainConfig) -> None:
    """`ConfigError` for trainer options that the run itself has to know, or would ignore."""
    if config.reward_weights is not None and "reward_weights" in config.trainer_options:
        raise ConfigError("reward_weights and trainer_options.reward_weights both weigh the rewards; leave one out")
    for name, value in config.trainer_options.items():
        if name in _OURS:
            raise ConfigError(f"trainer_options can't have {name!r}: give --{_OURS[name]} instead")
        if name == "trust_remote_code" and value:
            raise ConfigError(
                "trainer_options can't have 'trust_remote_code': the command runs no code that came with a model; in a "
                "script of your own load it by rollwise.models.load_policy(MODEL, trust_remote_code=True)"
            )


def _check_type(name: str, value: Any, declared: Any) -> None:
    """`ConfigError` where a field of plain values is declared and this one has another type."""
    allowed = set(get_args(declared) or (declared,))
    allowed |= {int} if float in allowed else set()
    if allowed <= {bool, int, float, str, type(None)} and type(value) not in allowed:
        words = declared.__name__ if isinstance(declared, type) else declared
        raise ConfigError(f"trainer_options.{name} must be {words}, got {value!r}")


def trainer_arguments(config: TrainConfig, task: Task, folder: Path, *, begun: bool) -> Any:
    """TRL's arguments for a run in `folder`.

    Raises:
        ConfigError: options that don't fit, or a process without a launcher that sees several GPUs.
    """
    check_trainer_options(config, begun=begun)
    check_gpus()
    implied = _implied(config, task, folder)
    if config.trainer == "grpo":
        implied |= environment_options(task)
        implied["scale_rewards"] = "none" if config.advantages == "centred" else "group"
    else:
        implied["normalize_advantages"] = config.advantages == "std"
    kind = TRAINERS[config.trainer][1]
    try:
        made = kind(**{**implied, **config.trainer_options})
    except (TypeError, ValueError, ImportError) as error:  # ImportError: it needs a package, as deepspeed does
        raise ConfigError(f"{kind.__name__} refuses these options (trainer_options): {error}") from error
    if (asked := made.generation_batch_size // made.num_generations) != config.prompts_per_step:
        trained = asked * made.gradient_accumulation_steps // made.steps_per_generation
        logger.warning(
            f"trainer_options make a generation of {asked} prompts and an optimiser step of {trained}, where "
            f"prompts_per_step is {config.prompts_per_step}; the curriculum is asked for {asked} at a time"
        )
    return made


def _implied(config: TrainConfig, task: Task, folder: Path) -> dict[str, Any]:
    """What the run's options imply, whatever the trainer."""
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    per_pass, passes = config.batch(processes)
    cpu = without_gpu()
    evaluating = config.eval_prompts > 0
    return {
        "output_dir": str(folder / CHECKPOINTS),
        "max_steps": config.steps,
        "per_device_train_batch_size": per_pass,
        "gradient_accumulation_steps": passes,
        **({} if config.updates == 1 else {"steps_per_generation": passes * config.updates}),
        "num_generations": config.num_generations,
        "num_generations_eval": config.num_generations_eval,
        "per_device_eval_batch_size": config.eval_batch(processes),
        "max_completion_length": config.max_completion_length or task.max_completion_length,
        "temperature": config.temperature,
        "learning_rate": config.learning_rate,
        "lr_scheduler_type": "constant_with_warmup",
        "warmup_steps": config.warmup_steps,
        "beta": 0.0,
        "eval_strategy": "steps" if evaluating else "no",
        "eval_steps": config.eval_every if config.eval_every_tokens is None else _NEVER,
        "save_strategy": "steps",
        "save_steps": config.save_every,
        "save_total_limit": config.keep_checkpoints,
        "logging_steps": 1,
        "report_to": config.report_to,
        "run_name": str(folder),
        "project": "rollwise",
        "disable_tqdm": True,
        "seed": config.seed,
        "use_cpu": cpu,
        "bf16": not cpu,
        "gradient_checkpointing": not cpu,
    }
