"""What is asked of the vLLM decoder, and whether engine, policy and prompts go together. numpy alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from rollwise.checks import check_whole
from rollwise.errors import ConfigError
from rollwise.inference.candidates import Policy, needs_signal, votes
from rollwise.inference.vllm_signals import HeadSlice, Signal

MOST_BIASES = 1024
"""`logit_bias` entries of a request that vLLM takes."""


@dataclass(frozen=True)
class VLLMRequest:
    """A prompt.

    Attributes:
        id: Distinct; names its candidates' random streams.
        prompt_ids: Its tokens, chat template applied.
    """

    id: str
    prompt_ids: Sequence[int]


def check_engine(engine: Any, signal: Signal | None, unnamed: frozenset[int], stops: Collection[int]) -> None:
    """Refuse rows that could be drawn, more of them than vLLM masks, and log-probabilities after bias."""
    if isinstance(signal, HeadSlice) and not set(signal.ids) <= unnamed:
        named = sorted(set(signal.ids) - unnamed)
        raise ConfigError(f"row {named[0]} of the head is not among unnamed_ids, so that it could be drawn; add it")
    if len(unnamed) > MOST_BIASES:
        raise ConfigError(
            f"{len(unnamed)} rows without a name are more than the {MOST_BIASES} that vLLM masks a request; "
            "export the head into a model with fewer (resize its embeddings to the next multiple of 64)"
        )
    lost = sorted(unnamed & set(stops))
    if lost:
        raise ConfigError(f"stop token {lost[0]} is among unnamed_ids, so that it can never be drawn; name another")
    config = getattr(engine, "model_config", None)
    mode = getattr(config, "logprobs_mode", None)
    if signal is not None and str(mode).startswith("processed"):
        raise ConfigError(
            f"the engine reports logprobs_mode={mode!r}: after bias and temperature, which distort the signal; "
            "start it with 'raw_logprobs', its default"
        )


def check_policy(policy: Policy, *, signal: Signal | None, answers: bool) -> None:
    """Refuse a policy that lacks what it goes by: a signal, or final answers."""
    if not needs_signal(policy):
        if votes(policy) and not answers:
            raise ConfigError(f"policy {policy.name!r} goes by answers alone: give text=tokenizer.decode, or answer=")
    elif signal is None:
        raise ConfigError(f"policy {policy.name!r} needs a signal: give HeadSlice or TopLogprobs")


def check_requests(requests: Sequence[VLLMRequest], counts: Sequence[int], engine: Any, limit: int) -> None:
    """Refuse ids that repeat, and prompts that don't fit."""
    if len(counts) != len(requests):
        raise ConfigError(f"k gives {len(counts)} numbers for {len(requests)} prompts")
    for count in counts:
        check_whole("k", count, least=1)
    ids = [request.id for request in requests]
    if len(set(ids)) < len(ids):
        again = next(id_ for at, id_ in enumerate(ids) if id_ in ids[:at])
        raise ConfigError(f"prompt id {again!r} comes twice; ids name random streams: make them distinct")
    longest = getattr(getattr(engine, "model_config", None), "max_model_len", None)
    for request in requests:
        length = len(request.prompt_ids)
        if not length or (longest is not None and length + limit > longest):
            raise ConfigError(
                f"prompt {request.id!r} of {length} tokens and {limit} new ones don't fit into the engine's "
                f"{longest}; leave it out, or allow fewer new tokens"
            )
