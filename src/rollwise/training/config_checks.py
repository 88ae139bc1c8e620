"""Checks of the options of `rollwise train` that concern several of them. Imports nothing heavy."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rollwise.errors import ConfigError
from rollwise.options import check_number, check_text, check_whole
from rollwise.sampling.config import SELECTION

if TYPE_CHECKING:
    from rollwise.training.config import TrainConfig

NONE = "none"
"""In place of a gate or an allocator: without one."""


def check_choices(config: TrainConfig) -> None:
    """Gate, allocator, trainer, advantages and log: names that exist, and options that go with them."""
    if config.allocator == NONE and config.allocator_options:
        raise ConfigError(
            f"allocator_options {config.allocator_options!r} are given but no allocator; add for example allocator "
            "'knapsack'"
        )
    if config.gate == NONE and config.gate_options:
        raise ConfigError(f"gate_options {config.gate_options!r} are given but no gate; add for example gate 'mixed'")
    if config.trainer not in ("grpo", "rloo"):
        raise ConfigError(f"trainer must be 'grpo' or 'rloo', got {config.trainer!r}")
    if config.advantages not in ("centred", "std"):
        raise ConfigError(f"advantages must be 'centred' or 'std', got {config.advantages!r}")
    if config.log not in ("main", "all"):
        raise ConfigError(f"log must be 'main' or 'all', got {config.log!r}")


def check_evaluations(config: TrainConfig) -> None:
    """Sizes of evaluations, and options that need some."""
    for name in ("eval_every", "num_generations_eval", "num_generations_end"):
        check_whole(name, getattr(config, name), least=1)
    for name in ("eval_prompts", "eval_prompts_end"):
        check_whole(name, getattr(config, name), least=0)
    if config.eval_every_tokens is not None:
        check_whole("eval_every_tokens", config.eval_every_tokens, least=1)
    if config.eval_temperature is not None:
        check_number("eval_temperature", config.eval_temperature, low=0.0, high=10.0)
    for name in ("keep_best", "eval_every_tokens", "eval_prompts_end"):
        if getattr(config, name) and not config.eval_prompts:
            raise ConfigError(f"{name} {getattr(config, name)!r} needs evaluations: give eval_prompts above 0")


def check_mini_batch(config: TrainConfig) -> None:
    """Whether `mini_batch_prompts` divides a step, and nothing else decides the same."""
    if config.mini_batch_prompts is None:
        return
    check_whole("mini_batch_prompts", config.mini_batch_prompts, least=1)
    if config.prompts_per_step % config.mini_batch_prompts:
        raise ConfigError(
            f"mini_batch_prompts must divide prompts_per_step {config.prompts_per_step}, got "
            f"{config.mini_batch_prompts!r}"
        )
    for name in ("steps_per_generation", "gradient_accumulation_steps"):
        if name in config.trainer_options:
            raise ConfigError(f"mini_batch_prompts decides trainer_options {name!r}; leave one of them out")


def check_own(config: TrainConfig) -> None:
    """Options of data and rewards: with `data` they must be whole, without it there is nothing for them."""
    config.check_own_data()
    if config.data and config.task is not None and config.rewards:
        raise ConfigError(
            f"prompts are scored by one of the two: task {config.task!r} or reward {config.reward!r}; leave one out"
        )
    if config.data:
        return
    for name in ("reward", "eval_data", "system", "template", "answer_column", "category", *SELECTION):
        if getattr(config, name) is not None:
            raise ConfigError(f"{name} describes data of one's own: give --data, or leave it out")


def check_names(config: TrainConfig) -> None:
    """Texts and mappings: YAML reads `model: 5` as a number, which would fail when the model is loaded."""
    for name in ("model", "profile", "out"):
        if isinstance(getattr(config, name), os.PathLike):
            setattr(config, name, os.fspath(getattr(config, name)))
    for name in ("model", "curriculum", "gate", "allocator", "report_to", "eval_aggregate"):
        check_text(name, getattr(config, name))
    for name in ("task", "profile", "out", "keep_best"):
        if getattr(config, name) is not None:
            check_text(name, getattr(config, name))
    for name in (
        "task_options",
        "curriculum_options",
        "gate_options",
        "allocator_options",
        "trainer_options",
        "peft",
    ):
        if not isinstance(getattr(config, name), dict):
            raise ConfigError(f"{name} must map names to values, got {getattr(config, name)!r}")
        for key in getattr(config, name):
            check_text(f"a name in {name}", key)
    if given := sorted({"seed", "reward_spec"} & config.curriculum_options.keys()):
        raise ConfigError(f"curriculum_options can't have {given[0]!r}: it is the run's own; leave it out")
