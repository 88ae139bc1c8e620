"""Rollouts with their tokens, in a folder: what a success head is fitted on, scored on and evaluated on.

`config.yaml` holds the options that decide them, `model.json` facts of the model and tokenizer, `rollouts.jsonl` a line
for each prompt, `summary.json` what they show as a whole. Killed at any moment, the same command goes on where it was.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console

from rollwise.inference.decoding.drawing import draw, warn_of_unknown_characters
from rollwise.inference.decoding.rollouts_config import RolloutsConfig
from rollwise.inference.decoding.rollouts_summary import write_summary
from rollwise.inference.files import rollouts_folder
from rollwise.models.identity import made_by
from rollwise.sampling.data import sampling_order
from rollwise.sampling.folder import Group, keep_facts, sample_into
from rollwise.sampling.prepared import prepare
from rollwise.sampling.progress import SamplingBar
from rollwise.sampling.setting import load_model, say_stop
from rollwise.terminal import make_console


def run_rollouts(config: RolloutsConfig, *, console: Console | None = None) -> list[Group]:
    """Roll out what is missing in the folder; all its lines, in the order of the sample.

    Raises:
        ConfigError: options that don't fit, or a folder that was begun with others.
        PoolError: data that can't be used.
        RewardError: rewards that can't be used. What was rolled out before is kept.
    """
    console = console or make_console(stderr=True)
    given = prepare(config, rollouts=config.num_generations, batch_size=config.batch_size, split=config.split)
    task, data, scorer, options = given.task, given.data, given.scorer, given.options
    folder = rollouts_folder(config.folder)
    given.begin(folder, config.deciding())
    say_stop(config, task, console)
    rows = sampling_order(data.ids, data.categories, config.seed)[: config.num_prompts]

    def policy() -> tuple[Any, Any]:
        model, tokenizer = load_model(config.model, task, progress=bar.warmed)
        keep_facts(folder, made_by(model, tokenizer))
        warn_of_unknown_characters(tokenizer, data.prompts[:64])
        return model, tokenizer

    with SamplingBar(console) as bar:
        groups = sample_into(
            folder, data, rows, scorer, options, policy, progress=bar.sampled, keep_ids=True, draw=draw
        )
    write_summary(folder.path, groups, scorer.spec.threshold)
    return groups
