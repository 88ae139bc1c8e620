"""A finished profile: its table and its numbers, written into the folder."""

from __future__ import annotations

import json
import logging
import shlex
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rollwise.models.sources import USUAL_LEARNING_RATE, made_here
from rollwise.profiling.config import ProfileConfig
from rollwise.profiling.summary import Summary
from rollwise.profiling.tables import join_rates, table_rows, write_numbers, write_table
from rollwise.sampling.data import PromptData, is_held_out
from rollwise.sampling.folder import SampleFolder
from rollwise.tasks import TASKS

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Profile:
    """A finished profile.

    Attributes:
        path: Its folder, with `profile.json`, `pass_rates.jsonl`, `pass_rates.parquet` and `groups.jsonl`.
        numbers: The contents of `profile.json`.
    """

    path: Path
    numbers: dict[str, Any]


_PLANNED = {
    "temperature": "temperature",
    "top_p": "trainer_options.top_p",
    "max_completion_length": "max_completion_length",
    "planned_generations": "num_generations",
    "steps": "steps",
    "prompts_per_step": "prompts_per_step",
}
"""What a profile says of the training that is planned, and its name in `rollwise train`; the defaults are the same."""


def train_options(config: ProfileConfig, pool: int | None = None) -> str:
    r"""The options of `rollwise train` for training on what was profiled, as it was planned.

    Args:
        config: the profile's options.
        pool: how many prompts there are to train on: a step asks for no more.

    >>> train_options(ProfileConfig(data="countdown", task_options={"levels": [1, 2]}, planned_generations=16))
    '--task countdown --task_options \'{"levels": [1, 2]}\' --model embedded --num_generations 16'
    """
    named, task = dict(_PLANNED), config.task
    words = [config.flags()]
    if config.source in TASKS:
        task, words = config.source, [config.flags("data")]
        named |= {"pool_prompts": "num_prompts", "seed": "seed"}  # which make a task's pool
    given = {"task": task, "task_options": json.dumps(config.task_options) if config.task_options else None}
    given["model"] = config.model
    if not made_here(config.model):
        given["learning_rate"] = USUAL_LEARNING_RATE
    default = {f.name: f.default for f in fields(config)}
    given |= {theirs: getattr(config, own) for own, theirs in named.items() if getattr(config, own) != default[own]}
    if pool is not None and pool < config.prompts_per_step:
        given["prompts_per_step"] = str(pool)
    words += [f"--{name} {shlex.quote(str(value))}" for name, value in given.items() if value is not None]
    return " ".join(word for word in words if word)


def trained_on(config: ProfileConfig, data: PromptData) -> int:
    """How many of the prompts `rollwise train` trains on: it holds some of a file's out."""
    return len(data) if config.source in TASKS else max(1, sum(not is_held_out(prompt) for prompt in data.prompts))


def finish(
    config: ProfileConfig, folder: SampleFolder, summary: Summary, other: dict[str, Any] | None, judged: dict[str, Any]
) -> Profile:
    """Write the table and the numbers."""
    rows = table_rows(summary.groups, summary.rates, summary.scores, None)
    if other is not None:
        names = str(config.folder), str(config.join)
        summary.references = join_rates({row["id"]: row for row in rows}, other, names=names)
        rows = table_rows(summary.groups, summary.rates, summary.scores, summary.references)
        lost = len(rows) - len(summary.references)
        if lost:
            logger.warning("%d of %d prompts are not in the joined profile %s", lost, len(rows), config.join)
    numbers = summary.to_dict() | {"train": train_options(config, summary.trained_on), **judged}
    write_table(folder.path, rows)
    write_numbers(folder.path, numbers)
    return Profile(folder.path, numbers)
