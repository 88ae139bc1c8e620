"""Checks of the options of `rollwise train` that concern several of them. Imports nothing heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollwise.errors import ConfigError
from rollwise.sampling.config import SELECTION

if TYPE_CHECKING:
    from rollwise.training.config import TrainConfig

NONE = "none"
"""In place of a gate or an allocator: without one."""


def check_choices(config: TrainConfig) -> None:
    """Options of a gate or an allocator need one, and the run's own options are not the method's."""
    if config.allocator == NONE and config.allocator_options:
        raise ConfigError(
            f"allocator_options {config.allocator_options!r} are given but no allocator; add for example allocator "
            "'knapsack'"
        )
    if config.gate == NONE and config.gate_options:
        raise ConfigError(f"gate_options {config.gate_options!r} are given but no gate; add for example gate 'mixed'")
    if given := sorted({"seed", "reward_spec"} & config.curriculum_options.keys()):
        raise ConfigError(f"curriculum_options can't have {given[0]!r}: it is the run's own; leave it out")


def check_evaluations(config: TrainConfig) -> None:
    """Options that need evaluations."""
    for name in ("keep_best", "eval_every_tokens", "eval_prompts_end"):
        if getattr(config, name) and not config.eval_prompts:
            raise ConfigError(f"{name} {getattr(config, name)!r} needs evaluations: give eval_prompts above 0")


def check_mini_batch(config: TrainConfig) -> None:
    """Whether `mini_batch_prompts` divides a step, and nothing else decides the same."""
    if config.mini_batch_prompts is None:
        return
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
            raise ConfigError(f"{name} describes your own data: give --data, or leave it out")
