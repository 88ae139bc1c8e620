"""What is read of a vLLM request's log-probabilities at each position: a success head's slice, or confidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rollwise.checks import check_whole
from rollwise.errors import ConfigError
from rollwise.inference.candidates import FloatArray
from rollwise.inference.confidence import TOP_K, token_confidence
from rollwise.inference.spec import HeadSpec

MOST_IDS = 128
"""`logprob_token_ids` of a request that vLLM takes."""

TESTED = "0.32"
"""Version of vLLM whose behaviour this relies on."""


class Signal(Protocol):
    """What of a request's log-probabilities is read at each position."""

    @property
    def states(self) -> tuple[float, ...]:
        """(R,) rewards of the states."""

    def options(self) -> dict[str, Any]:
        """Options of `SamplingParams` that ask for them."""

    def read(self, position: Mapping[int, Any]) -> tuple[FloatArray, float]:
        """Token id -> an object with `logprob`, at one position; (R,) chances and the expected remaining tokens."""


@dataclass(frozen=True)
class HeadSlice:
    """A success head in the served model's rows.

    Args:
        spec: What the rows mean.
        start_id: The first of them; they are `start_id` ... `start_id + spec.size - 1`.
    """

    spec: HeadSpec
    start_id: int

    def __post_init__(self) -> None:
        check_whole("start_id", self.start_id, least=0)
        if self.spec.size > MOST_IDS:
            raise ConfigError(
                f"the head has {self.spec.num_rewards} x {self.spec.num_lengths} = {self.spec.size} rows, vLLM returns "
                f"log-probabilities of at most {MOST_IDS} tokens a request; fit one of fewer length bins"
            )

    @property
    def ids(self) -> list[int]:
        """(R * L,) the rows."""
        return list(range(self.start_id, self.start_id + self.spec.size))

    @property
    def states(self) -> tuple[float, ...]:
        """(R,) rewards of the states."""
        return self.spec.rewards

    def options(self) -> dict[str, Any]:
        return {"logprob_token_ids": self.ids}

    def read(self, position: Mapping[int, Any]) -> tuple[FloatArray, float]:
        try:
            joint = self.spec.joint([position[i].logprob for i in self.ids])
        except KeyError as error:
            raise ConfigError(
                f"the engine gave no log-probability of row {error}, but of {len(position)} tokens; this needs "
                f"logprob_token_ids as vLLM {TESTED} has it"
            ) from error
        return joint.sum(axis=-1), float(self.spec.expected_length(joint))


@dataclass(frozen=True)
class TopLogprobs:
    """DeepConf's confidence, from the k most likely tokens; the counterpart of `TokenConfidence`.

    Masked rows may be among them, as vLLM takes log-probabilities before it masks.

    Args:
        k: Tokens; vLLM's default limit is 20 (`max_logprobs`).
    """

    k: int = TOP_K

    def __post_init__(self) -> None:
        check_whole("k", self.k, least=1)

    @property
    def states(self) -> tuple[float, ...]:
        """(1,) rewards of the states."""
        return (1.0,)

    def options(self) -> dict[str, Any]:
        return {"logprobs": self.k}

    def read(self, position: Mapping[int, Any]) -> tuple[FloatArray, float]:
        # vLLM adds the drawn token where it is not among the k.
        top = sorted((entry.logprob for entry in position.values()), reverse=True)[: self.k]
        finite = [value for value in top if np.isfinite(value)]
        return np.array([token_confidence(finite)]), 0.0
