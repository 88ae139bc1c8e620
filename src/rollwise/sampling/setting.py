"""What a command that rolls out prompts works with: the task, who scores, how rollouts are drawn, the model."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from rollwise.errors import ConfigError
from rollwise.models import is_embedded, load_policy, policy_source, task_for
from rollwise.models.loading import need
from rollwise.models.sampler import SamplingOptions
from rollwise.sampling.config import DataConfig, OwnData
from rollwise.sampling.files import is_file_like
from rollwise.sampling.rewards import reward_functions
from rollwise.sampling.scoring import Scorer, task_scorer
from rollwise.tasks import TASKS, Task
from rollwise.tickets.outcome import RewardSpec

logger = logging.getLogger(__name__)

FILE_COMPLETION_LENGTH = 512


def make_task_of(config: DataConfig) -> Task | None:
    """The task whose prompts, or whose verifier, are wanted; None with a reward function.

    Raises:
        ConfigError: prompts without anybody who scores them, or with two who would.
    """
    named = config.source in TASKS
    if named and (config.task not in (None, config.source) or config.rewards):
        raise ConfigError(
            f"{config.source!r} is a task with prompts and verifier of its own; leave out --task and --reward"
        )
    if not named and config.task is None:
        if not config.rewards and is_file_like(config.sources[0]):
            raise ConfigError(
                f"who scores the prompts of {config.source!r}? give --reward math, exact, regex:PATTERN or "
                f"file.py:function, or --task NAME ({', '.join(sorted(TASKS))})"
            )
        if is_embedded(config.model) and config.rewards:
            raise ConfigError("the embedded policy is a task's own: with --reward, name a model with --model")
        if config.task_options:
            raise ConfigError(f"task_options {config.task_options!r} are given but no task; add --task NAME")
        return None
    name = config.source if named else str(config.task)
    return task_for(config.model, name, config.task_options, own_prompts=named)


def make_scorer(config: DataConfig, task: Task | None) -> tuple[Scorer, str]:
    """Who scores the rollouts, and a hash of the reward function's file."""
    if task is not None:
        return task_scorer(task), ""
    if not config.rewards:  # neither a task nor a file: say so where files are read
        return Scorer(lambda **_: [], name="no reward", spec=RewardSpec()), ""
    rewards = reward_functions(config)
    if rewards.why:
        logger.warning("%s; name another with --success", rewards.why)
    own = rewards.functions if rewards.success is None else [rewards.functions[rewards.success]]
    scorer = Scorer(
        rewards.told,
        name=f"reward {' + '.join(config.rewards) if len(own) > 1 else getattr(own[0], '__name__', '')!r}",
        spec=rewards.spec,
        declared=rewards.declared,
        functions=own,
    )
    return scorer, rewards.digest


def completion_length(config: DataConfig, task: Task | None) -> int:
    """Most tokens of a rollout: the option, else what the task says is enough, else that for a file."""
    enough = FILE_COMPLETION_LENGTH if task is None else task.max_completion_length
    return config.max_completion_length or enough


def stop_texts(config: OwnData, task: Task | None) -> tuple[str, ...]:
    """Texts with which a completion ends, besides the end of text: the option, else the task's."""
    if config.stop is None:
        return () if task is None else task.stop_texts
    return (config.stop,) if isinstance(config.stop, str) else tuple(config.stop)


def say_stop(config: OwnData, task: Task | None, console: Console) -> None:
    """Say where completions end, if stop texts are the task's and nobody named them."""
    if config.stop is None and (texts := stop_texts(config, task)):
        said = f"note: completions end with {' or '.join(map(repr, texts))}, as the task says; --stop [] for none"
        console.print(said, highlight=False, markup=False, soft_wrap=True)


def sampling_options(config: DataConfig, task: Task | None, *, n: int, batch_size: int) -> SamplingOptions:
    """How they are drawn: `n` of each prompt, `batch_size` at once."""
    return SamplingOptions(
        n=n,
        temperature=config.temperature,
        top_p=config.top_p,
        max_new_tokens=completion_length(config, task),
        stop=stop_texts(config, task),
        batch_size=batch_size,
        seed=config.seed,
    )


def load_model(model: str, task: Task | None, *, progress: Callable[[int, int], None] | None = None) -> tuple[Any, Any]:
    """Model and tokenizer, on the GPU if there is one of CUDA, else on the CPU in float32.

    Args:
        model: An embedded policy's name, a folder or a hub id.
        task: What an embedded policy is warm-started on.
        progress: Called with (steps done, steps in all) of a warm start.
    """
    torch = need("torch", "rolling out")
    transformers = need("transformers", "rolling out")
    transformers.utils.logging.disable_progress_bar()
    source: str | Path = model if task is None else policy_source(model, task, progress=progress)
    gpu = torch.cuda.is_available()
    policy, tokenizer = load_policy(source, dtype=None if gpu else "float32")  # an Apple machine's is not used
    return policy.to(torch.device("cuda" if gpu else "cpu")), tokenizer
