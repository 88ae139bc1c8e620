"""What is read of a vLLM request's log-probabilities at each position: a success head's slice, or confidence."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rollwise.errors import ConfigError
from rollwise.inference.head.spec import HeadSpec
from rollwise.inference.head.verdict import verdict_chances
from rollwise.inference.policies.candidates import FloatArray, Policy, needs_signal, votes
from rollwise.inference.policies.confidence import MostLikely, token_confidence
from rollwise.options import check_number, check_whole

MOST_IDS = 128
"""`logprob_token_ids` of a request that vLLM takes."""

TESTED = "0.32"
"""Version of vLLM whose behaviour this relies on."""

MASK = -100.0
"""The bias of a row that must not be drawn: the least that vLLM takes."""


class Signal(Protocol):
    """What of a request's log-probabilities is read at each position."""

    @property
    def states(self) -> tuple[float, ...]:
        """(R,) rewards of the states."""

    def options(self) -> dict[str, Any]:
        """Options of `SamplingParams` that ask for them."""

    def read(self, position: Mapping[int, Any]) -> tuple[FloatArray, float]:
        """Token id -> an object with `logprob`, at one position; (R,) chances and the expected remaining tokens."""

    def verdict(self, positions: Sequence[Mapping[int, Any]]) -> FloatArray | None:
        """(R,) chances of a finished candidate, from all its positions; None for the mean of the last reads."""


@dataclass(frozen=True)
class HeadSlice:
    """A success head in the served model's rows.

    Args:
        spec: What the rows mean.
        start_id: The first of them; they are `start_id` ... `start_id + spec.size - 1`.
        windows: (W,) of its verdict, whose W * R rows come next; empty for none.
        bias: (R,) of its verdict.
    """

    spec: HeadSpec
    start_id: int
    windows: tuple[int, ...] = ()
    bias: tuple[float, ...] = ()

    @classmethod
    def of(cls, serving: Mapping[str, Any]) -> HeadSlice:
        """By the contents of `serving.json`, which `rollwise head export` writes."""
        verdict = serving.get("verdict") or {"windows": (), "bias": ()}
        spec = HeadSpec.from_dict(serving["spec"])
        return cls(spec, int(serving["start"]), tuple(verdict["windows"]), tuple(verdict["bias"]))

    def __post_init__(self) -> None:
        check_whole("start_id", self.start_id, least=0)
        if len(self.ids) > MOST_IDS:
            raise ConfigError(
                f"the head has {self.spec.num_rewards} x {self.spec.num_lengths} = {self.spec.size} rows, its verdict "
                f"{len(self.ids) - self.spec.size}, vLLM returns log-probabilities of at most {MOST_IDS} tokens a "
                "request; fit one of fewer length bins"
            )

    @property
    def ids(self) -> list[int]:
        """(R * L + W * R,) the rows."""
        return list(range(self.start_id, self.start_id + self.spec.size + len(self.windows) * self.spec.num_rewards))

    @property
    def states(self) -> tuple[float, ...]:
        """(R,) rewards of the states."""
        return self.spec.rewards

    def options(self) -> dict[str, Any]:
        return {"logprob_token_ids": self.ids}

    def read(self, position: Mapping[int, Any]) -> tuple[FloatArray, float]:
        joint = self.spec.joint(self._rows(position)[: self.spec.size])
        return joint.sum(axis=-1), float(self.spec.expected_length(joint))

    def verdict(self, positions: Sequence[Mapping[int, Any]]) -> FloatArray | None:
        if not self.windows:
            return None
        reads = np.stack([self._rows(position)[self.spec.size :] for position in positions])
        return verdict_chances(reads.reshape(len(reads), len(self.windows), -1), self.bias, self.windows)

    def _rows(self, position: Mapping[int, Any]) -> FloatArray:
        try:
            return np.array([position[i].logprob for i in self.ids])
        except KeyError as error:
            raise ConfigError(
                f"the engine gave no log-probability of row {error}, but of {len(position)} tokens; this needs "
                f"logprob_token_ids as vLLM {TESTED} has it"
            ) from error


@dataclass(frozen=True)
class TopLogprobs(MostLikely):
    """DeepConf's confidence, from the k most likely tokens; the counterpart of `TokenConfidence`.

    Masked rows may be among them, as vLLM takes log-probabilities before it masks.

    Args:
        k: Tokens; vLLM's default limit is 20 (`max_logprobs`).
    """

    def options(self) -> dict[str, Any]:
        return {"logprobs": self.k}

    def read(self, position: Mapping[int, Any]) -> tuple[FloatArray, float]:
        # vLLM adds the drawn token where it is not among the k.
        top = sorted((entry.logprob for entry in position.values()), reverse=True)[: self.k]
        finite = [value for value in top if np.isfinite(value)]
        return np.array([token_confidence(finite)]), 0.0

    def verdict(self, positions: Sequence[Mapping[int, Any]]) -> FloatArray | None:
        return None


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


def drawing_options(
    signal: Signal | None,
    unnamed: frozenset[int],
    max_new_tokens: int,
    *,
    temperature: float,
    top_p: float,
    top_k: int,
) -> dict[str, Any]:
    """Options of `SamplingParams`, checked, that all candidates of a decoder share."""
    return {
        "n": 1,
        "temperature": check_number("temperature", temperature, low=0.0, high=10.0, open_low=True),
        "top_p": check_number("top_p", top_p, low=0.0, high=1.0, open_low=True),
        "top_k": check_whole("top_k", top_k, least=0),
        "max_tokens": check_whole("max_new_tokens", max_new_tokens, least=1),
        "logit_bias": dict.fromkeys(sorted(unnamed), MASK) or None,
        **(signal.options() if signal is not None else {}),
    }


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
    """Refuse a policy that lacks what it needs: a signal, or final answers."""
    if not needs_signal(policy):
        if votes(policy) and not answers:
            raise ConfigError(f"policy {policy.name!r} uses answers only: give text=tokenizer.decode, or answer=")
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
