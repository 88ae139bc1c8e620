"""A judge that reads prompts with the policy: how uncertain it is of their tokens, or how strange they are to it."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from rollwise.errors import ConfigError
from rollwise.judges.base import Judge, Measure, Prompts, summed
from rollwise.models.flops import FlopsPerToken
from rollwise.models.loading import need
from rollwise.models.reading.policy_source import PolicySource
from rollwise.models.sampler import context_length, tokens_of
from rollwise.options import Count
from rollwise.pool import PromptPool


class PromptJudge(Judge):
    """Measures a prompt by one forward pass: the mean entropy of its tokens in nats, or its perplexity.

    Both are means over the tokens after the first, which nothing comes before; those of a chat template count. It reads
    the live policy where a trainer of `rollwise.training` has one to lend; where the weights are sharded (FSDP,
    ZeRO-3), a copy of the policy as training began. In a loop of your own call `curriculum.follow(model, tokenizer)`;
    or give `model`, which stays as it is. It learns nothing. Each pass is charged: 2 FLOPs a weight and token.

    There is no measure (NaN) of a prompt of fewer than two tokens, or of one that the model's context does not hold.

    Args:
        model: a folder or hub id that stays as it is; None: the policy, live where it can be.
        predicts: "entropy" or "perplexity".
        batch_size: prompts of one forward pass, whose logits take 4 bytes for each token and entry of the vocabulary;
            changes nothing but the last digits.
        dtype: of a model that it loads itself; by default as `load_policy` has it.
        device: likewise, such as "cuda:1"; by default the accelerator, where there is one.

    Raises:
        ConfigError: an option out of range.
        MissingExtraError: torch is not installed.
    """

    unsaved = frozenset({"batch_size", "device"})
    predicts: Measure

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        predicts: Measure = "entropy",
        batch_size: Count = 8,
        dtype: str | None = None,
        device: str | None = None,
    ) -> None:
        need("torch", "the prompt judge")
        if model is not None and not isinstance(model, str | Path):
            raise ConfigError(f"model must be a folder or a hub id, got {model!r}")
        self.model = None if model is None else str(model)
        self.predicts, self.batch_size, self.dtype, self.device = predicts, batch_size, dtype, device
        self._source = PolicySource(folder=self.model)
        self.costs: dict[str, float] = {}

    @property
    def options(self) -> Mapping[str, Any]:
        return {"model": self.model, **super().options}

    @property
    def reads_policy(self) -> bool:
        return self.model is None

    def starting_from(self, source: str) -> Self:
        return self if self.model is not None else self._reading(PolicySource(folder=source))

    def follow(self, model: Any, tokenizer: Any, *, sharded: bool = False) -> Self:
        if self.model is not None:
            return self
        return self._reading(self._source.lent(model, tokenizer, sharded=sharded, reader="the prompt judge"))

    def _reading(self, source: PolicySource) -> Self:
        made = copy.copy(self)
        made._source = source
        return made

    def bind(self, pool: PromptPool, seed: int) -> None:
        if self._source.folder is None and self._source.live is None:
            raise ConfigError(
                "the prompt judge has no model to read: give it model=... (judge_options: {model: ...}), a folder or a "
                "hub id, call curriculum.follow(model, tokenizer) before you bind it, or leave it to a trainer. Where "
                "there is no policy, as in a simulation, give a judge of your own"
            )
        self.costs = {}

    def predict(self, candidates: Prompts) -> np.ndarray:
        from rollwise.models.reading.prompts import read_prompts

        started = time.perf_counter()
        model, tokenizer = self._source.load(dtype=self.dtype, device=self.device)
        encoded = [tokens_of(tokenizer, prompt) for prompt in candidates.prompts]
        most = context_length(model) or np.inf
        fits = [row for row, tokens in enumerate(encoded) if 2 <= len(tokens) <= most]
        found = np.full(len(encoded), np.nan)
        found[fits] = read_prompts(model, [encoded[row] for row in fits], self.predicts, batch_size=self.batch_size)
        tokens = sum(len(encoded[row]) for row in fits)
        flops = FlopsPerToken.of(model).read * tokens
        spent = {"questions": len(fits), "context_tokens": tokens, "flops": flops, "s": time.perf_counter() - started}
        self.costs = summed([self.costs, spent])
        return found

    def take_costs(self) -> dict[str, float]:
        taken, self.costs = self.costs, {}
        return taken
