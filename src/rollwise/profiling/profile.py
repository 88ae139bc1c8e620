"""The preflight: rolls out a sample of the prompts, and says what a curriculum could gain from them."""

from __future__ import annotations

import functools
from typing import Any

from rich.console import Console

from rollwise.models.identity import made_by
from rollwise.profiling.config import ProfileConfig
from rollwise.profiling.finished import Profile, finish, trained_on
from rollwise.profiling.judge_check import check_askable, check_judge
from rollwise.profiling.summary import Summary
from rollwise.profiling.tables import read_table, shared_ids
from rollwise.sampling.data import sampling_order
from rollwise.sampling.folder import SampleFolder, keep_facts, sample_into
from rollwise.sampling.prepared import prepare
from rollwise.sampling.progress import SamplingBar
from rollwise.sampling.setting import load_model, say_stop
from rollwise.terminal import make_console


def run_profile(config: ProfileConfig, *, console: Console | None = None) -> Profile:
    """Profile the data with the model; goes on where it was, if the folder holds a part of it.

    Raises:
        ConfigError: options that don't fit, or a folder that was begun with others.
        PoolError, MissingColumnError: data that can't be used.
        RewardError: rewards that can't be used. What was rolled out before is kept.
    """
    console = console or make_console(stderr=True)
    given = prepare(config, rollouts=config.num_generations, batch_size=config.batch_size)
    task, data, scorer, options = given.task, given.data, given.scorer, given.options
    other = None if config.join is None else read_table(config.join)
    order = sampling_order(data.ids, data.categories, config.seed)
    rows = order if config.num_prompts == "all" else order[: config.num_prompts]
    if other is not None:
        shared_ids([data.ids[row] for row in rows], other, (str(config.folder), str(config.join)))
    if config.judge:
        check_askable(config, [data.rows[row] for row in rows])
    folder = SampleFolder(config.folder, lines="groups.jsonl", what="a profile's folder", command="profile")
    given.begin(folder, config.sampling())
    with SamplingBar(console) as bar:

        @functools.cache
        def load() -> Any:
            model, tokenizer = load_model(config.model, task, progress=bar.warmed)
            keep_facts(folder, made_by(model, tokenizer))  # the same path may hold other weights by now
            say_stop(config, task, console)
            return model, tokenizer

        groups = sample_into(folder, data, rows, scorer, options, load, progress=bar.sampled)
        summary = Summary(config, data, groups, scorer, trained_on=trained_on(config, data))
        judged = {"judge": check_judge(config, summary, load)} if config.judge else {}
    return finish(config, folder, summary, other, judged)
