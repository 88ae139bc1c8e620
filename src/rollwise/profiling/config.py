"""Every option of `rollwise profile`, in one dataclass. Imports nothing heavy, so that `--help` is quick."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from rollwise.options import check_whole
from rollwise.sampling.config import DataConfig


@dataclass(kw_only=True)
class ProfileConfig(DataConfig):
    """Options of a profile.

    Args:
        rollouts: Rollouts of each prompt.
        sample: How many prompts to roll out, drawn at random, from each category its share; "all" for all of them. A
            larger sample goes on where a smaller one ended.
        prompts: Size of a task's pool, as `--train_prompts` of `rollwise train`; a file has those that it has.
        answer: The column of recorded answers, to find answers that the reward does not recognise; by default
            `answer`, `ground_truth`, `solution` or the like.
        batch_size: Rollouts generated at once; smaller needs less memory.
        group_size: Rollouts of a prompt in the training that is planned.
        steps: Its steps, if known: with prompts_per_step they say how often a prompt comes by, on which the
            recommendation depends.
        prompts_per_step: Its prompts a step.
        seed: Root of everything random: the pool of a task, the sample, the rollouts.
        join: Folder of another model's profile of the same data: the table gets both, as `reference_pass_rates`.
        out: The profile's folder; by default profiles/NAME.
    """

    rollouts: int = 8
    sample: int | Literal["all"] = 500
    prompts: int = 4000
    answer: str | None = None
    batch_size: int = 128
    group_size: int = 8
    steps: int | None = None
    prompts_per_step: int = 64
    join: str | None = None
    out: str | None = None

    def __post_init__(self) -> None:
        check_whole("rollouts", self.rollouts, least=2)
        check_whole("group_size", self.group_size, least=2)
        check_whole("prompts_per_step", self.prompts_per_step, least=1)
        if self.sample != "all":
            check_whole("sample", self.sample, least=2)
        if self.steps is not None:
            check_whole("steps", self.steps, least=1)
        check_whole("batch_size", self.batch_size, least=1)
        super().__post_init__()
        if self.answer is not None and self.answer_column is None:
            self.answer_column = self.answer

    @property
    def folder(self) -> Path:
        """The profile's folder."""
        return Path(self.out or f"profiles/{self.stem}")

    def sampling(self) -> dict[str, Any]:
        """The options that decide the rollouts: a folder goes on with the same ones only."""
        free = {"sample", "answer", "batch_size", "group_size", "steps", "prompts_per_step", "join", "out"}
        return self.decided({name: value for name, value in asdict(self).items() if name not in free})

    def visits(self, population: int) -> float | None:
        """How often a prompt comes by in the training planned, under uniform sampling; None if that is not known."""
        return None if self.steps is None else self.steps * self.prompts_per_step / population
