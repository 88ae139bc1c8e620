"""The preflight: rolls out a sample of the prompts, and says what a curriculum could gain from them."""

from __future__ import annotations

import functools
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from rollwise.profiling.config import ProfileConfig
from rollwise.profiling.judge_check import check_judge
from rollwise.profiling.summary import Summary
from rollwise.profiling.tables import join_rates, read_table, table_rows, write_numbers, write_table
from rollwise.sampling.data import sampling_order
from rollwise.sampling.folder import SampleFolder, sample_into
from rollwise.sampling.prepared import prepare
from rollwise.sampling.progress import SamplingBar
from rollwise.sampling.setting import load_model, say_stop
from rollwise.tasks import TASKS
from rollwise.terminal import make_console

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


def run_profile(config: ProfileConfig, *, console: Console | None = None) -> Profile:
    """Profile the data with the model; goes on where it was, if the folder holds a part of it.

    Raises:
        ConfigError: options that don't fit, or a folder that was begun with others.
        PoolError: data that can't be used.
        RewardError: rewards that can't be used. What was rolled out before is kept.
    """
    console = console or make_console(stderr=True)
    given = prepare(config, rollouts=config.num_generations, batch_size=config.batch_size)
    task, data, scorer, options = given.task, given.data, given.scorer, given.options
    other = None if config.join is None else read_table(config.join)
    folder = SampleFolder(config.folder, lines="groups.jsonl", what="a profile's folder", command="profile")
    given.begin(folder, config.sampling())
    say_stop(config, task, console)
    order = sampling_order(data.ids, data.categories, config.seed)
    rows = order if config.num_prompts == "all" else order[: config.num_prompts]
    with SamplingBar(console) as bar:
        load = functools.cache(lambda: load_model(config.model, task, progress=bar.warmed))
        groups = sample_into(
            folder,
            data,
            rows,
            scorer,
            options,
            load,
            progress=bar.sampled,
        )
        summary = Summary(config, data, groups, scorer)
        judged = {"judge": check_judge(config, summary, load)} if config.judge else {}
    return _finish(config, folder, summary, other, judged)


def _finish(
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
    own = f"--task {config.source}" if config.source in TASKS else config.flags()
    numbers = summary.to_dict() | {"train": f"{own} --model {config.model}", **judged}
    write_table(folder.path, rows)
    write_numbers(folder.path, numbers)
    return Profile(folder.path, numbers)
