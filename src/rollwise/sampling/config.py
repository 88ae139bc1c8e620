"""The options of data and rewards, shared by all commands. Imports nothing heavy, so that `--help` is quick."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any

from rollwise.errors import ConfigError
from rollwise.models import EMBEDDED
from rollwise.options import (
    Count,
    CountOrZero,
    NonEmptyText,
    Number,
    PositiveShare,
    Range,
    Temperature,
    check_fields,
    check_number,
    check_text,
    listed,
)
from rollwise.plugins import short_name
from rollwise.sampling.presets import is_preset, preset_reward, suite_of
from rollwise.sampling.selection import conditions
from rollwise.tasks import TASKS
from rollwise.tickets.outcome import RewardSpec

_ALWAYS = {"data", "reward", "id", "category", "solved_at"}
"""Options that stand in every folder, as they did before there were more of them."""
SELECTION = ("where", "limit", "stratify")
"""Options that choose rows of one's own data."""


@dataclass(kw_only=True)
class OwnData:
    r"""Where the prompts come from, what their columns are called, and who scores the rollouts.

    Args:
        data: A file (.jsonl, .json, .csv, .parquet), a folder written by `datasets`, or HUB_ID[:split]; several are
            read one after another. `preset:NAME` is one of the papers' data sets, `preset:NAME=COPY` a copy of it
            (docs/howto/presets.md). `train` has --task for the prompts of a task.
        prompt_column: The column of prompts: text or chat messages. Like all columns here it may be a path into nested
            ones, such as `extra_info.question`.
        answer_column: The column of recorded answers; the reward gets it as `answer`.
        category: The column of categories; by default `category`, if it is there.
        id: The column of ids; without one a prompt's id is the hash of its content.
        where: Use only the rows for which `COLUMN OP VALUE` holds, for example "difficulty >= 3" or "source == math".
            OP is one of ==, !=, <, <=, >, >=, in, not in. If several conditions are given, all must hold.
        limit: Use at most this many of those rows. A hash of each prompt's id decides which, not the order of the rows.
        stratify: With `limit`, keep the share of each value of this column.
        limit_seed: With `limit`, another number gives another sample. The sample does not depend on the run's seed.
        system: A system message. With it, prompts of text become chat messages; "" makes chat messages without one.
        template: The text of the prompt, with the columns in braces, for example "{prompt} Put the answer in
            \boxed{{}}." Or the name of a paper's template: `boxed` (METIS), `sec` or `sec-math` (SEC).
        reward: The reward: `math`, `hendrycks`, `exact`, `boxed`, `code`, `regex:PATTERN`, `rewards.py:accuracy`,
            `package.module:accuracy`, or `trl.rewards:NAME`. Several rewards are summed. A function has TRL's signature
            and may be asynchronous. A preset has a reward of its own.
        reward_weights: A weight for each reward; by default 1.
        success: With several rewards, the name of the one that says which rollouts are solved. By default it is chosen
            by name or weight, else the sum is used; a warning says which.
        reward_low: The lowest possible reward, by default 0. Without `reward_low` and `reward_high` the range is
            widened when a reward lies outside it.
        reward_high: The highest possible reward, by default 1.
        solved_at: The lowest reward with which a rollout counts as solved; by default `reward_high`.
        reward_workers: Number of processes that score rollouts, for rewards that run code or wait for a server. Each
            scores one rollout at a time. 0 scores in the command's own process.
        reward_timeout: With `reward_workers`, the most seconds for scoring one rollout. One that takes longer is not
            scored.
        stop: Texts that end a completion, besides the end of text, for example `--stop "</answer>"`; by default those
            of the task, `--stop []` for none.

    Raises:
        ConfigError: options that don't fit each other.
    """

    data: list[str] | str = ""
    prompt_column: NonEmptyText = "prompt"
    answer_column: NonEmptyText | None = None
    category: NonEmptyText | None = None
    id: NonEmptyText = "id"
    where: list[str] | str | None = None
    limit: Count | None = None
    stratify: NonEmptyText | None = None
    limit_seed: CountOrZero = 0
    system: str | None = None
    template: str | None = None
    reward: list[str] | str | None = None
    reward_weights: list[float] | None = None
    success: NonEmptyText | None = None
    reward_low: Number | None = None
    reward_high: Number | None = None
    solved_at: Number | None = None
    reward_workers: CountOrZero = 0
    reward_timeout: Annotated[float, Range(0.0, 86_400.0, open_low=True)] = 60.0
    stop: list[str] | str | None = None

    @property
    def sources(self) -> list[str]:
        """`data` as a list."""
        return listed(self.data)

    @property
    def source(self) -> str:
        """`data` as one word, for messages and folders."""
        return "+".join(self.sources)

    @property
    def conditions(self) -> list[str]:
        """`where` as a list."""
        return listed(self.where)

    @property
    def stem(self) -> str:
        """`data` as part of a folder's name."""
        if is_preset(self.sources[0]):
            return suite_of(self.sources[0])[0]
        return Path(short_name(self.sources[0]) if self.sources[0] in TASKS else self.sources[0].partition(":")[0]).stem

    @property
    def rewards(self) -> list[str]:
        """`reward` as a list; empty where a task scores."""
        return listed(self.reward)

    def check_own_data(self) -> None:
        """Raise `ConfigError` for options of data and rewards that don't fit each other."""
        for name in ("data", "reward", "where"):
            for one in listed(getattr(self, name)):
                if not isinstance(one, str):
                    raise ConfigError(f"{name} must be text or a list of texts, got {one!r}")
        conditions(self.conditions)
        self._check_columns()
        for name in ("stratify", "limit_seed"):
            if self.limit is None and getattr(self, name):
                raise ConfigError(
                    f"{name} {getattr(self, name)!r} says how --limit draws, and none is given; add --limit N"
                )
        if not self.rewards and getattr(self, "task", None) is None:
            self.reward = preset_reward(self.sources)
        if not self.rewards:
            for name in ("reward_weights", "success", "reward_low", "reward_high", "solved_at"):
                if getattr(self, name) is not None:
                    raise ConfigError(f"{name} describes --reward, and none is given; a task knows its own range")
        weights = self.reward_weights
        if weights is not None and not (isinstance(weights, list | tuple) and len(weights) == len(self.rewards)):
            raise ConfigError(
                f"reward_weights must have a number for each of the {len(self.rewards)} rewards, got "
                f"{self.reward_weights!r}"
            )
        for i, weight in enumerate(self.reward_weights or ()):
            check_number(f"reward_weights[{i}]", weight, low=-1e6, high=1e6)
        if self.reward_timeout != OwnData.reward_timeout and not self.reward_workers:
            raise ConfigError(
                f"reward_timeout {self.reward_timeout:g} ends rollouts in processes of their own, and there are none; "
                "add --reward_workers N"
            )
        if self.reward_workers and not self.rewards:
            raise ConfigError("reward_workers score by --reward, and none is given; a task scores in its own process")
        for text in listed(self.stop):
            check_text("stop", text)
        if len(self.rewards) > len(set(self.rewards)):
            raise ConfigError(f"reward has the same one twice: {self.rewards!r}; leave one out")

    def _check_columns(self) -> None:
        for option in ("category", "id"):
            name, columns = getattr(self, option), {"prompt": self.prompt_column, "answer": self.answer_column}
            if (other := columns.get(name)) not in (None, name):
                raise ConfigError(
                    f"{option} can't be the column {name!r}, whose place {other!r} takes ({name}s are read from it); "
                    f"rename the column {name!r} of the data"
                )

    def held_out(self, source: list[str] | str) -> OwnData:
        """The same for held-out data: what chooses rows of `data` does not choose any of these."""
        return replace(self, data=source, where=None, limit=None, stratify=None, limit_seed=0)

    def flags(self, *left_out: str) -> str:
        """The options of data and rewards as they are given to a command, those that are set."""
        own = [f for f in fields(OwnData) if f.name not in left_out]
        given = {f.name: getattr(self, f.name) for f in own if getattr(self, f.name) != f.default}
        words = []
        for name, value in given.items():
            several = value or ["[]"] if isinstance(value, list) and name != "reward_weights" else [value]
            words += [f"--{name}", *(shlex.quote(str(one)) for one in several)]
        return " ".join(words)

    def decided(self, free: Collection[str] = ()) -> dict[str, Any]:
        """Options that a folder is begun with, but for `free` ones and those of data and rewards that nobody has given.

        Workers change nothing but the time, and of `stop` a folder holds the texts themselves, also where they are the
        task's.
        """
        defaults = {f.name: f.default for f in fields(OwnData)}
        values = {name: value for name, value in asdict(self).items() if name not in {*free, "reward_workers", "stop"}}
        kept = {k: v for k, v in values.items() if k not in defaults or v != defaults[k] or k in _ALWAYS}
        return kept | {
            "reward_low": self.reward_low or 0.0,
            "reward_high": 1.0 if self.reward_high is None else self.reward_high,
        }

    def reward_spec(self) -> RewardSpec | None:
        """The range of rewards, as far as it is given; None where nothing of it is."""
        if (self.reward_low, self.reward_high, self.solved_at) == (None, None, None):
            return None
        low = 0.0 if self.reward_low is None else self.reward_low
        high = self.reward_high
        if high is None:
            above = low + 1.0 if low >= 1.0 else 1.0
            high = max(1.0, above if self.solved_at is None else self.solved_at)
        return RewardSpec(low=low, high=high, solved_at=self.solved_at)


def check_selection(config: OwnData, source: str) -> None:
    """Raise `ConfigError` where rows of a task would have to be chosen."""
    for name in SELECTION:
        if getattr(config, name) is not None:
            raise ConfigError(
                f"{name} chooses rows of one's own data, and {source} has options of its own; leave it out"
            )


@dataclass(kw_only=True)
class DataConfig(OwnData):
    """Options that all commands share which roll out prompts.

    Args:
        task: The task whose verifier scores the file's prompts.
        task_options: The task's own options, for example `--task_options.levels [1,2]`.
        model: "embedded" is a task's own tiny policy; else a folder or hub id of any causal LM of transformers.
        temperature: Sampling temperature of the rollouts.
        top_p: Nucleus sampling: draw from the smallest set of tokens with this total probability.
        max_completion_length: Most tokens of a rollout; by default the task's own limit, 512 for a file.
        seed: Seed of all random numbers: the prompts of a task, the sample, the rollouts.

    Raises:
        ConfigError: an option is out of its range, or both a task and a reward are to score.
    """

    task: str | None = None
    task_options: dict[str, Any] = field(default_factory=dict)
    model: str = EMBEDDED
    temperature: Temperature = 1.0
    top_p: PositiveShare = 1.0
    max_completion_length: Count | None = None
    seed: CountOrZero = 0

    def __post_init__(self) -> None:
        check_fields(self)
        self.check_own_data()
        if self.task is not None and self.rewards:
            raise ConfigError(
                f"prompts are scored by one of the two: task {self.task!r} or reward {self.reward!r}; leave one out"
            )

    @property
    def pool_prompts(self) -> int:
        """How many prompts a task is asked for; a file has those that it has."""
        raise NotImplementedError


@dataclass(kw_only=True)
class SampleConfig(DataConfig):
    """Options of the commands that take a number of prompts.

    Args:
        num_prompts: How many prompts; of a file with more, a sample with every category in proportion.

    Raises:
        ConfigError: an option is out of its range, or both a task and a reward are to score.
    """

    num_prompts: Count = 256

    @property
    def pool_prompts(self) -> int:
        """How many prompts a task is asked for."""
        return self.num_prompts
