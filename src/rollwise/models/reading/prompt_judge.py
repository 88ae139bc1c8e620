"""A judge that reads prompts with the policy: how uncertain it is of their tokens, or how strange they are to it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.errors import ConfigError
from rollwise.judges.base import Measure, Prompts, summed
from rollwise.models.flops import FlopsPerToken
from rollwise.models.loading import need
from rollwise.models.reading.policy_source import PolicyJudge
from rollwise.models.sampler import context_length, tokens_of
from rollwise.options import Count


class PromptJudge(PolicyJudge):
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

    reader = "the prompt judge"
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
        need("torch", self.reader)
        if model is not None and not isinstance(model, str | Path):
            raise ConfigError(f"model must be a folder or a hub id, got {model!r}")
        self._reads(model, dtype, device)
        self.predicts, self.batch_size = predicts, batch_size

    @property
    def options(self) -> Mapping[str, Any]:
        return {"model": self.model, **super().options}

    def predict(self, candidates: Prompts) -> np.ndarray:
        from rollwise.models.reading.prompts import read_prompts

        started = time.perf_counter()
        model, tokenizer = self._load()
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
