"""The options that all commands share which roll out prompts. Imports nothing heavy, so that `--help` is quick."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rollwise.errors import ConfigError
from rollwise.models import EMBEDDED
from rollwise.options import check_number, check_whole


@dataclass(kw_only=True)
class DataConfig:
    """Options that all commands share which roll out prompts.

    Args:
        data: The name of a task (`rollwise tasks` lists them), or a .jsonl, .json or .parquet file with a column
            `prompt` (text or chat messages) and the columns that the reward needs.
        task: The task whose verifier scores the file's prompts.
        task_options: The task's own options, for example `--task_options.levels [1,2]`.
        reward: Instead of a task: a reward function of TRL's signature, as `rewards.py:accuracy` or
            `package.module:accuracy`.
        reward_low: The least reward of that function.
        reward_high: Its greatest.
        solved_at: The reward from which on a rollout counts as solved; by default the greatest.
        model: "embedded" is a task's own tiny policy; else a folder or hub id of any causal LM of transformers.
        prompts: How many prompts; of a file with more, a sample with every category in proportion.
        id: The file's column of ids; without one a prompt's id is the hash of its content.
        category: The column of categories; by default `category`, if it is there.
        temperature: Of the rollouts.
        top_p: Nucleus sampling: draw from the smallest set of tokens with this total probability.
        max_completion_length: Most tokens of a rollout; by default what the task says is enough, for a file 512.
        seed: Root of everything random: the prompts of a task, the sample, the rollouts.

    Raises:
        ConfigError: an option is out of its range, or says who scores where that is said already.
    """

    data: str = ""
    task: str | None = None
    task_options: dict[str, Any] = field(default_factory=dict)
    reward: str | None = None
    reward_low: float = 0.0
    reward_high: float = 1.0
    solved_at: float | None = None
    model: str = EMBEDDED
    prompts: int = 256
    id: str = "id"
    category: str | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    max_completion_length: int | None = None
    seed: int = 0

    answer: str | None = field(default=None, init=False, repr=False)
    """The column of recorded answers, for those who look at it."""

    def __post_init__(self) -> None:
        check_whole("prompts", self.prompts, least=1)
        check_whole("seed", self.seed, least=0)
        if self.max_completion_length is not None:
            check_whole("max_completion_length", self.max_completion_length, least=1)
        check_number("temperature", self.temperature, low=0.0, high=10.0, open_low=True)
        check_number("top_p", self.top_p, low=0.0, high=1.0, open_low=True)
        if self.task is not None and self.reward is not None:
            raise ConfigError(
                f"prompts are scored by one of the two: task {self.task!r} or reward {self.reward!r}; leave one out"
            )
        if self.reward is None and (self.reward_low, self.reward_high, self.solved_at) != (0.0, 1.0, None):
            raise ConfigError("reward_low, reward_high and solved_at describe --reward; a task knows its own range")
