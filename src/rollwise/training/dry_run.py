"""`--dry_run`: what a run would ask first, how its rewards score that, and what it would cost. Writes nothing."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape

from rollwise.models import is_embedded
from rollwise.models.loading import load_tokenizer
from rollwise.models.prompt_check import check_prompts
from rollwise.models.sampler import encode
from rollwise.profiling import add_pass_rates
from rollwise.sampling.own_task import OwnTask, task_of
from rollwise.sampling.scoring import scores_by_name
from rollwise.sampling.setting import say_stop
from rollwise.tasks import Task
from rollwise.training.arguments import trainer_arguments
from rollwise.training.config import TrainConfig
from rollwise.training.parts import curriculum_of, datasets_of, lora_config
from rollwise.training.trainer.dataset import pool_from_dataset
from rollwise.training.trainer.environments import check_trainer
from rollwise.training.trainer.refusals import check_enough

SHOWN = 2
"""Prompts that are shown."""
SHOWN_KINDS = 20
"""Categories of a set that are named."""
COUNTED = 1000
"""Prompts whose tokens are counted."""


@dataclass(frozen=True)
class Cost:
    """What training costs at most, without a curriculum's probes and a gate's refills.

    Attributes:
        rollouts: completions, those of evaluations included.
        tokens: generated tokens at most.
        read: tokens of prompts.
    """

    rollouts: int = 0
    tokens: int = 0
    read: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.rollouts + other.rollouts, self.tokens + other.tokens, self.read + other.read)

    def __str__(self) -> str:
        return f"{self.rollouts:,} rollouts, at most {self.tokens:,} generated tokens, about {self.read:,} of prompts"


@dataclass(frozen=True)
class Estimate:
    """What a run's cost depends on besides its options: median tokens of a prompt, completion limit, held-out prompts.

    Without a tokenizer (the embedded policy before its warm start) the prompts count 0.
    """

    prompt: float
    limit: int
    held_out: int

    def of(self, config: TrainConfig) -> Cost:
        """The cost of a run with these options."""
        evaluations = config.steps // config.eval_every + 1 if self.held_out else 0
        asks = -(-config.steps // config.updates)
        rollouts = asks * config.prompts_per_step * config.num_generations
        rollouts += evaluations * self.held_out * config.num_generations_eval
        return Cost(rollouts, rollouts * self.limit, round(rollouts * self.prompt))


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
    arguments = trainer_arguments(config, task, config.folder, begun=False)
    lora_config(config.peft)
    train, held_out = datasets_of(config, task)
    limit = arguments.max_completion_length
    tokenizer = None
    if not is_embedded(config.model):
        tokenizer, settings = load_tokenizer(config.model)
        for part in (train, *held_out.values()) if isinstance(task, OwnTask) else ():
            check_prompts(part["prompt"], tokenizer, settings, limit)
    if config.profile is not None:
        train = add_pass_rates(train, config.profile)
    check_enough(config.prompts_per_step, len(train))
    curriculum.bind(pool_from_dataset(train))
    asked = curriculum.ask(min(SHOWN, len(train)), step=1, n_rollouts=config.num_generations)
    rows = [train[int(slot)] for slot in curriculum.pool.slots_of([ticket.prompt_id for ticket in asked])]
    say_stop(config, task, console)
    prompts = sum(map(len, held_out.values()))
    _show_data(task, len(train), prompts, console)
    _show_sets(held_out, config, console)
    for row in rows:
        _show_prompt(row, task, tokenizer, console)
    estimate = Estimate(_show_tokens(train["prompt"], tokenizer, limit, console), limit, prompts)
    console.print(f"[bold]cost[/]: {estimate.of(config)}", highlight=False, soft_wrap=True)
    console.print("nothing was written; leave out --dry_run to train", highlight=False)
    return estimate


def _show_data(task: Task, train: int, held_out: int, console: Console) -> None:
    names = [getattr(function, "__name__", str(function)) for function in task.rewards.functions]
    solved = task.rewards.success or " + ".join(names)
    console.print(
        f"[bold]{escape(task.name)}[/]: {train:,} prompts to train on, {held_out:,} held out; rewards: "
        f"{escape(', '.join(names))}; solved by: {escape(solved)}",
        highlight=False,
        soft_wrap=True,
    )


def _show_sets(held_out: Mapping[str, Any], config: TrainConfig, console: Console) -> None:
    """Each evaluation set with its prompts by category, and what the score of several is."""
    for name, dataset in held_out.items():
        kinds = Counter(map(str, dataset["category"])) if "category" in dataset.column_names else {}
        shown = [f"{kind} {count:,}" for kind, count in sorted(kinds.items())[:SHOWN_KINDS]]
        more = [f"{len(kinds) - SHOWN_KINDS} more"] if len(kinds) > SHOWN_KINDS else []
        by_kind = f"; by category: {', '.join(shown + more)}" if kinds else ""
        console.print(
            f"[bold]evaluation set[/] {escape(name or '(without a name)')}: {len(dataset):,} prompts{escape(by_kind)}",
            highlight=False,
            soft_wrap=True,
        )
    if len(held_out) > 1:
        console.print(f"their score together: {escape(config.eval_aggregate)} (eval_aggregate)", highlight=False)


def _show_prompt(row: Mapping[str, Any], task: Task, tokenizer: Any, console: Console) -> None:
    """A prompt as the model reads it, and the rewards of the recorded answer and of an empty one."""
    prompt = row["prompt"]
    text = prompt if isinstance(prompt, str) else str(prompt)
    if tokenizer is not None:
        text = tokenizer.decode(encode(tokenizer, prompt))
    console.print(f"\n[bold]prompt[/] {escape(text)}", highlight=False, soft_wrap=True)
    answers = {"an empty answer": ""}
    if row.get("answer") is not None:
        answers = {f"the recorded answer {str(row['answer'])[:60]!r}": str(row["answer"]), **answers}
    for words, answer in answers.items():
        scores = scores_by_name(task.rewards.functions, row, answer)
        rewards = task.rewards
        told = scores.get(rewards.success or "") if len(scores) > 1 else next(iter(scores.values()))
        if rewards.declared and told is not None:
            rewards.spec.check([told], "dry-run")
        said = ", ".join(f"{name} {value}" for name, value in scores.items())
        console.print(f"  {escape(words)}: {escape(said)}", highlight=False, soft_wrap=True)


def _show_tokens(prompts: Sequence[Any], tokenizer: Any, limit: int, console: Console) -> float:
    """Tokens of the prompts, those of the first ones where there are many; their median."""
    if tokenizer is None:
        console.print("\n[bold]tokens[/]: not counted, as the embedded policy is made when training begins")
        return 0.0
    lengths = [len(encode(tokenizer, prompt)) for prompt in prompts[:COUNTED]]
    median = statistics.median(lengths)
    of = f"first {COUNTED:,} prompts" if len(prompts) > COUNTED else "prompts"
    console.print(
        f"\n[bold]tokens[/]: {of} median {median:g}, longest {max(lengths):,}; completions at most {limit:,}",
        highlight=False,
        soft_wrap=True,
    )
    return float(median)
