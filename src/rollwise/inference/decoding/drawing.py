"""Rollouts drawn by the adaptive decoder."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from rollwise.inference.decoding.decoder import AdaptiveDecoder, DecodingOptions
from rollwise.inference.policies import TRUNCATED, BestOfN, Result
from rollwise.models.sampler import Rollouts, SamplingOptions, encode

logger = logging.getLogger(__name__)


def draw(
    model: Any,
    tokenizer: Any,
    ids: Sequence[str],
    prompts: Sequence[Any],
    options: SamplingOptions,
    *,
    done: Collection[str] = (),
) -> Iterator[list[Rollouts]]:
    """`sample_prompts` by the adaptive decoder: the same rollouts (but for ids without a name), sooner.

    In the order in which they end, some prompts at a time.
    """
    decoding = DecodingOptions(
        temperature=options.temperature,
        top_p=options.top_p,
        max_new_tokens=options.max_new_tokens,
        stop=options.stop,
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


def warn_of_unknown_characters(tokenizer: Any, prompts: Sequence[Any]) -> None:
    """Log a warning if some prompts hold characters that the tokenizer does not know."""
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
