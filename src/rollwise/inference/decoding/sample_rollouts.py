"""Rollouts with their tokens, in a folder: what a success head is fitted on, scored on and evaluated on.

`config.yaml` holds the options that decide them, `model.json` facts of the model and tokenizer, `rollouts.jsonl` a line
for each prompt, `summary.json` what they show as a whole. Killed at any moment, the same command goes on where it was.
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any

from rich.console import Console

from rollwise.inference.decoding.decoder import AdaptiveDecoder, DecodingOptions
from rollwise.inference.decoding.rollouts_config import RolloutsConfig
from rollwise.inference.decoding.rollouts_summary import SUMMARY_FILE, summarise
from rollwise.inference.files.rollout_folder import keep_facts, rollouts_folder
from rollwise.inference.policies.candidate_group import TRUNCATED, Result
from rollwise.inference.policies.policies import BestOfN
from rollwise.models.identity import made_by
from rollwise.models.sampler import Rollouts, SamplingOptions, encode
from rollwise.runs.names import MODEL_FILE
from rollwise.sampling.data import sampling_order
from rollwise.sampling.folder import Group, sample_into
from rollwise.sampling.prepared import prepare
from rollwise.sampling.progress import SamplingBar
from rollwise.sampling.setting import load_model
from rollwise.state import write_atomically
from rollwise.terminal import make_console

logger = logging.getLogger(__name__)


def draw(
    model: Any,
    tokenizer: Any,
    ids: Sequence[str],
    prompts: Sequence[Any],
    options: SamplingOptions,
    *,
    done: Collection[str] = (),
    stop: Sequence[str] = (),
) -> Iterator[list[Rollouts]]:
    """`sample_prompts` by the adaptive decoder: the same rollouts (but for ids without a name), sooner.

    In the order in which they end, some prompts at a time. A rollout also ends with one of the texts `stop`.
    """
    decoding = DecodingOptions(
        temperature=options.temperature,
        top_p=options.top_p,
        max_new_tokens=options.max_new_tokens,
        stop_strings=tuple(stop),
        slots=max(options.batch_size, options.n),
        seed=options.seed,
    )
    rest = [i for i, id_ in enumerate(ids) if id_ not in done]
    decoder = AdaptiveDecoder(model, tokenizer, options=decoding)
    results = decoder.decode([ids[i] for i in rest], [prompts[i] for i in rest], BestOfN(), k=options.n)
    while batch := list(itertools.islice(results, max(1, options.batch_size // options.n))):
        yield [_as_rollouts(result) for result in batch]


def _as_rollouts(result: Result) -> Rollouts:
    drawn = result.candidates
    cut = [candidate.state == TRUNCATED for candidate in drawn]
    return Rollouts(result.id, [c.text for c in drawn], [c.token_ids for c in drawn], cut)


def run_rollouts(config: RolloutsConfig, *, console: Console | None = None) -> list[Group]:
    """Roll out what is missing in the folder; all its lines, in the order of the sample.

    Raises:
        ConfigError: options that don't fit, or a folder that was begun with others.
        PoolError: data that can't be used.
        RewardError: rewards that can't be used. What was rolled out before is kept.
    """
    console = console or make_console(stderr=True)
    given = prepare(config, rollouts=config.rollouts, batch_size=config.batch_size, split=config.split)
    task, data, scorer, options = given.task, given.data, given.scorer, given.options
    folder = rollouts_folder(config.folder)
    given.begin(folder, config.deciding())
    rows = sampling_order(data.ids, data.categories, config.seed)[: config.prompts]

    def policy() -> tuple[Any, Any]:
        model, tokenizer = load_model(config.model, task, progress=bar.warmed)
        keep_facts(folder.path / MODEL_FILE, made_by(model, tokenizer), resumed=folder.groups.exists())
        _warn_of_unknown_characters(tokenizer, data.prompts[:64])
        return model, tokenizer

    drawing = partial(draw, stop=config.stop)
    with SamplingBar(console) as bar:
        groups = sample_into(
            folder, data, rows, scorer, options, policy, progress=bar.sampled, keep_ids=True, draw=drawing
        )
    summary = json.dumps(summarise(groups, scorer.spec.threshold), indent=1)
    write_atomically(folder.path / SUMMARY_FILE, summary.encode())
    return groups


def _warn_of_unknown_characters(tokenizer: Any, prompts: Sequence[Any]) -> None:
    unknown = tokenizer.unk_token_id
    if unknown is None:
        return
    strange = [prompt for prompt in prompts if unknown in encode(tokenizer, prompt)]
    if strange:
        logger.warning(
            "%d of the first %d prompts hold characters that the tokenizer does not know, for example %r; a policy "
            "that was warm-started on a task's compact prompts needs --task_options.style compact",
            len(strange),
            len(prompts),
            str(strange[0])[:80],
        )
