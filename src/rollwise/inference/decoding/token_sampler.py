"""How tokens are drawn, and when a candidate ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rollwise.errors import ConfigError
from rollwise.inference.head.reserved import unnamed_ids
from rollwise.models.decoding.stop_texts import StopTexts
from rollwise.models.decoding.uniforms import warpers
from rollwise.models.sampler import DrawingOptions, end_tokens
from rollwise.options import check_whole


@dataclass(frozen=True, kw_only=True)
class DecodingOptions(DrawingOptions):
    """How candidates are drawn.

    Args:
        temperature: Of the softmax.
        top_p: Nucleus sampling: draw from the smallest set of tokens with this total probability.
        top_k: Draw from this many of the likeliest tokens; 0 for all.
        max_new_tokens: Most tokens of a candidate, its end included.
        stop: Texts with which a candidate ends, besides the end of text; it counts as finished.
        slots: Most candidates in the batch at once, of all prompts together.
        rows: `slots`, `padded` (models with sliding windows or recurrent layers: freed rows are not refilled), or
            `auto`.
        seed: Seed of all random numbers.

    Raises:
        ConfigError: an option is out of its range.
    """

    top_k: int = 0
    max_new_tokens: int = 1024
    slots: int = 64
    rows: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("slots", self.slots, least=1)
        check_whole("top_k", self.top_k, least=0)
        if self.rows not in ("auto", "slots", "padded"):
            raise ConfigError(f"rows must be 'auto', 'slots' or 'padded', got {self.rows!r}")


class TokenSampler:
    """Draws as the options say, never an id that the tokenizer has no name for, and knows when a candidate ends."""

    def __init__(self, model: Any, tokenizer: Any, options: DecodingOptions) -> None:
        self.ends = end_tokens(model, tokenizer)
        # All of them, before temperature and truncation: a success head may live in some.
        self.unnamed = torch.tensor(unnamed_ids(model, tokenizer), device=model.device, dtype=torch.long)
        self.warpers = warpers(options.temperature, options.top_p, options.top_k)
        self.stops = StopTexts(tokenizer, options.stop) if options.stop else None

    def scores(self, logits: torch.Tensor) -> torch.Tensor:
        """(n, V) logits -> (n, V) of the distribution that is drawn from."""
        scores = logits.float()
        if len(self.unnamed):
            scores = scores.index_fill(1, self.unnamed, -torch.inf)
        for warper in self.warpers:
            scores = warper(None, scores)
        return scores

    def ended(self, tokens: Sequence[Sequence[int]]) -> list[bool]:
        """Whether each candidate ends with an end token or a stop string."""
        ended = [row[-1] in self.ends for row in tokens]
        if self.stops is None:
            return ended
        return [end or self.stops.found(row) for end, row in zip(ended, tokens, strict=True)]
