"""`--dry_run`: what a run would ask first, how its rewards score that, and what it would cost. Writes nothing."""

from __future__ import annotations

from rich.console import Console

from rollwise.models import is_embedded
from rollwise.models.loading import load_tokenizer
from rollwise.sampling.own_task import task_of
from rollwise.sampling.setting import say_stop
from rollwise.training.arguments import trainer_arguments
from rollwise.training.beforehand import check_beforehand
from rollwise.training.config import TrainConfig
from rollwise.training.cost import Estimate
from rollwise.training.dry_run_display import show_data, show_notes, show_prompt, show_sets, show_tokens
from rollwise.training.parts import curriculum_of, datasets_of, end_sets_of, first_rows
from rollwise.training.trainer.dataset import pool_from_dataset
from rollwise.training.trainer.environments import check_trainer

SHOWN = 2
"""Prompts that are shown."""


def dry_run(config: TrainConfig, *, console: Console) -> Estimate:
    """Show the first prompts, their rewards, the tokens and the cost of a run.

    Raises:
        ConfigError: what the run itself would refuse before its first step.
        PoolError, MissingColumnError: data that can't be used.
        RewardError: a reward that fails on the first prompts.
    """
    task = task_of(config)
    check_trainer(task, config.trainer)
    curriculum = curriculum_of(config, task)
    show_notes(curriculum, config, console)
    arguments = trainer_arguments(config, task, config.folder, begun=False)
    train, held_out = datasets_of(config, task)
    limit = arguments.max_completion_length
    check_beforehand(config, task, arguments, (train, *held_out.values()))
    tokenizer = None if is_embedded(config.model) else load_tokenizer(config.model)[0]
    curriculum.start_from(config.model)  # a name only: no policy is loaded
    curriculum.bind(pool_from_dataset(train))
    rows = [train[slot] for slot in first_rows(curriculum, SHOWN, group=config.num_generations)]
    say_stop(config, task, console)
    prompts = sum(map(len, held_out.values()))
    show_data(task, len(train), prompts, console)
    show_sets(held_out, config, console)
    for row in rows:
        show_prompt(row, task, tokenizer, console)
    at_end = sum(map(len, end_sets_of(config, task).values()))
    estimate = Estimate(show_tokens(train["prompt"], tokenizer, limit, console), limit, prompts, at_end)
    console.print(f"[bold]cost[/]: {estimate.of(config)}", highlight=False, soft_wrap=True)
    console.print("nothing was written; leave out --dry_run to train", highlight=False)
    return estimate
