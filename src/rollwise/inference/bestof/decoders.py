"""What answers the prompts: a decoder that has loaded the model, or one that asks a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rollwise.inference.bestof.job import Job
from rollwise.inference.bestof.server import served_facts, server_decoder
from rollwise.inference.decoding.decoder import AdaptiveDecoder
from rollwise.inference.head.fitted_on import check_weights
from rollwise.inference.policies import TokenConfidence, allocate
from rollwise.inference.serving.server_decoder import ServerDecoder
from rollwise.models.identity import made_by
from rollwise.sampling.folder import SampleFolder, keep_facts
from rollwise.sampling.setting import load_model

Decoder = AdaptiveDecoder | ServerDecoder


def make_decoder(
    job: Job, folder: SampleFolder, progress: Callable[[int, int], None]
) -> tuple[Decoder, Mapping[str, Any]]:
    """The decoder, and facts of its model, which the folder keeps.

    Args:
        job: What is to be answered.
        folder: Where the answers go.
        progress: Called with (steps done, steps in all) of an embedded policy's warm start.

    Raises:
        ConfigError: a head of another model, or of other weights and no `transfer`; a folder of another model.
    """
    config = job.config
    if config.base_url is not None:
        served = served_facts(config)
        keep_facts(folder, served)
        return server_decoder(config, job.options.max_new_tokens, job.options.stop), served
    model, tokenizer = load_model(config.model, job.task, progress=progress)
    signal = TokenConfidence() if job.head is None and config.policy == "deepconf" else job.head
    decoder = AdaptiveDecoder(model, tokenizer, signal=signal, options=job.options)
    if job.head is not None:
        check_weights(job.head, model, transfer=config.transfer)
    facts = made_by(model, tokenizer)  # the same path may hold other weights by now
    keep_facts(folder, facts)
    return decoder, facts


def counts_of(job: Job, decoder: Decoder) -> dict[str, int]:
    """Prompt id -> K: all the same, or by the percentile rank of V(x) among all prompts of the sample."""
    config, ids = job.config, job.ids
    if config.mean_k is None or isinstance(decoder, ServerDecoder):
        return dict.fromkeys(ids, config.num_generations)
    values = decoder.prompt_values(ids, job.prompts)
    return dict(zip(ids, allocate(values, config.mean_k, 1, config.num_generations, ids=ids).tolist(), strict=True))
