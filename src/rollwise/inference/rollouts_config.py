"""Every option of `rollwise rollouts`, in one dataclass. Imports nothing heavy, so that `--help` is quick."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from rollwise.checks import check_whole
from rollwise.errors import ConfigError
from rollwise.models import EMBEDDED
from rollwise.profiling.config import check_setting
from rollwise.tasks import TASKS


@dataclass(kw_only=True)
class RolloutsConfig:
    """Options of `rollwise rollouts`.

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
        split: "train" for a task's training prompts, as by default, "eval" for its held-out ones. A file is taken
            whole by default; "train" is four fifths of its prompts, "eval" the others, by a hash of the prompt.
        prompts: How many prompts; of a file with more, a sample with every category in proportion.
        rollouts: Rollouts of each prompt.
        id: The file's column of ids; without one a prompt's id is the hash of its content.
        category: The column of categories; by default `category`, if it is there.
        temperature: Of the rollouts.
        top_p: The least set of tokens with this probability is drawn from.
        stop: Texts with which a rollout ends, besides the end of text, for example `--stop '["</answer>"]'`.
        max_completion_length: Most tokens of a rollout; by default what the task says is enough, for a file 512.
        batch_size: Rollouts generated at once; smaller needs less memory.
        seed: Root of everything random: the prompts of a task, the sample, the rollouts.
        out: The folder; by default rollouts/NAME-SPLIT.

    Raises:
        ConfigError: an option is out of its range.
    """

    data: str = ""
    task: str | None = None
    task_options: dict[str, Any] = field(default_factory=dict)
    reward: str | None = None
    reward_low: float = 0.0
    reward_high: float = 1.0
    solved_at: float | None = None
    model: str = EMBEDDED
    split: Literal["train", "eval"] | None = None
    prompts: int = 256
    rollouts: int = 4
    id: str = "id"
    category: str | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    stop: list[str] = field(default_factory=list)
    max_completion_length: int | None = None
    batch_size: int = 128
    seed: int = 0
    out: str | None = None

    answer: str | None = field(default=None, init=False, repr=False)
    """No column of answers is needed here."""

    def __post_init__(self) -> None:
        check_whole("rollouts", self.rollouts, least=1)
        if self.split not in (None, "train", "eval"):
            raise ConfigError(f"split must be train or eval, got {self.split!r}")
        check_setting(self)

    @property
    def folder(self) -> Path:
        """Where the rollouts go."""
        return Path(self.out or "-".join(["rollouts/" + Path(self.data).stem, *([self.split] if self.split else [])]))

    def deciding(self) -> dict[str, Any]:
        """The options that decide the rollouts: a folder goes on with the same ones only.

        A larger sample of a file goes on where a smaller one ended; a task's prompts depend on how many they are.
        """
        free = {"batch_size", "out", "answer"} | (set() if self.data in TASKS else {"prompts"})
        return {name: value for name, value in asdict(self).items() if name not in free}
