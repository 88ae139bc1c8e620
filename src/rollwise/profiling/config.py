"""Every option of `rollwise profile`, in one dataclass. Imports nothing heavy, so that `--help` is quick."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rollwise.options import Count, CountFromTwo, CountOrZero, check_fields
from rollwise.runs.past_columns import Columns
from rollwise.sampling.config import DataConfig


@dataclass(kw_only=True)
class ProfileConfig(DataConfig):
    """Options of a profile.

    Args:
        num_generations: Rollouts of each prompt.
        num_prompts: How many prompts to roll out, drawn at random, from each category its share; "all" for all of them.
            A larger sample goes on where a smaller one ended.
        pool_prompts: Size of a task's pool, as `--num_prompts` of `rollwise train`; a file has those that it has.
        answer_column: The column of recorded answers, which the reward gets as `answer`; used to find answers that the
            reward does not recognise. By default `answer`, `ground_truth`, `solution` or the like.
        batch_size: Rollouts generated at once; smaller needs less memory.
        planned_generations: Rollouts of a prompt in the training that is planned.
        steps: Steps of the planned training, if known: with prompts_per_step they say how often a prompt is visited, on
            which the recommendation depends.
        prompts_per_step: Prompts a step in the planned training.
        seed: Root of everything random: the pool of a task, the sample, the rollouts.
        judge: How many judgments to ask the model for, of prompts that were rolled out: can METIS ask it? 0 asks none;
            32 are enough.
        judge_exemplars: Examples that a judgment is shown.
        judge_column: The column that the judge reads in place of the prompts.
        join: Folder of another model's profile of the same data: the table gets both, as `reference_pass_rates`.
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

    def visits(self, population: int) -> float | None:
        """How often a prompt is visited in the training planned, under uniform sampling; None if that is not known."""
        return None if self.steps is None else self.steps * self.prompts_per_step / population


@dataclass(frozen=True, kw_only=True)
class PastConfig(Columns):
    """Options of a profile of past rollouts: nothing is rolled out, and no model is loaded.

    Args:
        rollouts: The log: a .jsonl, .json, .csv or .parquet file with a row for each completion or each group; a run's
            folder; TRL's `output_dir` (trained with `log_completions=True`); or verl's `rollout_data_dir`.
        answer_column: The column of recorded answers.
        reward_low: The least reward; by default 0, or the least that there is.
        reward_high: The greatest reward; by default 1, or the greatest that there is.
        solved_at: The reward from which on a rollout counts as solved; by default the greatest.
        max_completion_length: Rollouts of this many tokens were cut off, where the log does not say which were.
        planned_generations: Rollouts of a prompt in the training that is planned; by default those of the log's groups.
        steps: Steps of the planned training; by default those of the log.
        prompts_per_step: Prompts a step in the planned training; by default those of the log.
        seed: Root of everything random.
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
        return Path(self.out or f"profiles/{Path(self.rollouts).resolve().stem}")
