"""Every option of `rollwise profile`, in one dataclass. Imports nothing heavy, so that `--help` is quick."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rollwise.errors import ConfigError
from rollwise.options import Count, CountFromTwo, CountOrZero, check_fields
from rollwise.runs.past_columns import Columns
from rollwise.sampling.config import DataConfig


@dataclass(kw_only=True)
class ProfileConfig(DataConfig):
    """Options of a profile.

    Args:
        num_generations: Rollouts of each prompt.
        num_prompts: How many prompts to roll out, drawn at random in proportion to the categories; "all" for all of
            them. A larger sample continues a smaller one.
        pool_prompts: Size of a task's pool, as `--num_prompts` of `rollwise train`. A file's pool is all its prompts.
        answer_column: The column of recorded answers, which the reward gets as `answer`; used to find answers that the
            reward does not recognise. By default `answer`, `ground_truth`, `solution` or the like.
        batch_size: Rollouts generated at once; smaller needs less memory.
        planned_generations: Rollouts of each prompt in the planned training.
        steps: Steps of the planned training, if known. With prompts_per_step they say how often each prompt is visited,
            on which the recommendation depends.
        prompts_per_step: Prompts of a step in the planned training.
        seed: Seed of all random numbers: the pool of a task, the sample, the rollouts.
        judge: How many judgments to ask the model for, to test whether METIS can use it; 0 for none, 32 are enough.
        judge_exemplars: Examples shown with each question.
        judge_column: The column that the judge reads in place of the prompt.
        join: Folder of another model's profile of the same data. The table gets the pass rates of both, as
            `reference_pass_rates`.
        out: The profile's folder; by default profiles/NAME.
    """

    num_generations: CountFromTwo = 8
    num_prompts: CountFromTwo | Literal["all"] = 500
    pool_prompts: Count = 4000
    batch_size: Count = 128
    planned_generations: CountFromTwo = 8
    steps: Count | None = None
    prompts_per_step: Count = 64
    judge: CountOrZero = 0
    judge_exemplars: CountOrZero = 3
    judge_column: str | None = None
    join: str | None = None
    out: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("judge_exemplars", "judge_column"):
            if not self.judge and getattr(self, name) != getattr(ProfileConfig, name):
                raise ConfigError(
                    f"{name} {getattr(self, name)!r} is of judgments, and none is asked for: add --judge N"
                )

    @property
    def answer(self) -> str | None:
        """Where a row's recorded answer is, once the data are read; None for the usual columns."""
        return None if self.answer_column is None else "answer"

    @property
    def folder(self) -> Path:
        """The profile's folder."""
        return Path(self.out or f"profiles/{self.stem}")

    def sampling(self) -> dict[str, Any]:
        """The options that decide the rollouts: a folder goes on with the same ones only."""
        free = {"num_prompts", "batch_size", "planned_generations", "steps", "prompts_per_step", "join", "out"}
        free |= {"judge", "judge_exemplars", "judge_column"}
        return self.decided(free)


@dataclass(frozen=True, kw_only=True)
class PastConfig(Columns):
    """Options of a profile of past rollouts: nothing is rolled out, and no model is loaded.

    Args:
        rollouts: The log: a .jsonl, .json, .csv or .parquet file with a row for each completion or each group; a run's
            folder; TRL's `output_dir` (trained with `log_completions=True`); or verl's `rollout_data_dir`.
        answer_column: The column of recorded answers.
        reward_low: The lowest possible reward; by default 0, or the lowest in the log.
        reward_high: The highest possible reward; by default 1, or the highest in the log.
        solved_at: The lowest reward with which a rollout counts as solved; by default the highest.
        max_completion_length: If the log does not say which rollouts were cut off: those of this many tokens were.
        planned_generations: Rollouts of each prompt in the planned training; by default those of the log's groups.
        steps: Steps of the planned training; by default those of the log.
        prompts_per_step: Prompts a step in the planned training; by default those of the log.
        seed: Seed of all random numbers.
        out: The profile's folder; by default profiles/NAME.
    """

    rollouts: str
    answer_column: str | None = None
    reward_low: float | None = None
    reward_high: float | None = None
    solved_at: float | None = None
    max_completion_length: Count | None = None
    planned_generations: CountFromTwo | None = None
    steps: Count | None = None
    prompts_per_step: Count | None = None
    seed: CountOrZero = 0
    out: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self)

    @property
    def folder(self) -> Path:
        """The profile's folder."""
        place = Path(self.rollouts).resolve()
        return Path(self.out or f"profiles/{place.name if place.is_dir() else place.stem}")
