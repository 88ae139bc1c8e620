"""How tokens are drawn, and when a candidate ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers.generation.logits_process import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from rollwise.errors import ConfigError
from rollwise.inference.head.reserved import unnamed_ids
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
        stop_strings: Texts with which a candidate ends, besides the end of text; it counts as finished.
        slots: Most candidates in the batch at once, of all prompts together.
        rows: `slots`, `padded` (models with sliding windows or recurrent layers: freed rows are not refilled), or
            `auto`.
        seed: Root of everything random.

    Raises:
        ConfigError: an option is out of its range.
    """

    top_k: int = 0
    max_new_tokens: int = 1024
    stop_strings: tuple[str, ...] = ()
    slots: int = 64
    rows: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("slots", self.slots, least=1)
        check_whole("top_k", self.top_k, least=0)
        if self.rows not in ("auto", "slots", "padded"):
            raise ConfigError(f"rows must be 'auto', 'slots' or 'padded', got {self.rows!r}")
        if not isinstance(self.stop_strings, tuple) or not all(isinstance(s, str) and s for s in self.stop_strings):
            raise ConfigError(f"stop_strings must be a tuple of texts, got {self.stop_strings!r}")


class TokenSampler:
    """Draws as the options say, never an id that the tokenizer has no name for, and knows when a candidate ends."""

    def __init__(self, model: Any, tokenizer: Any, options: DecodingOptions) -> None:
        self.ends = end_tokens(model, tokenizer)
        # All of them, before temperature and truncation: a success head may live in some.
        self.unnamed = torch.tensor(unnamed_ids(model, tokenizer), device=model.device, dtype=torch.long)
        self.warpers = _warpers(options)
        self.stops = StopStrings(tokenizer, options.stop_strings) if options.stop_strings else None

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


class StopStrings:
    """Whether a candidate's text has just come to one of some texts.

    transformers' own `StopStringCriteria` takes tokenizers apart and fails for those that can't write "abcdef"; this
    one only decodes.
    """

    def __init__(self, tokenizer: Any, strings: Sequence[str]) -> None:
        self.tokenizer, self.strings = tokenizer, tuple(strings)
        # Tokens that surely hold the longest, as each has a byte at least.
        self._tail = max(len(string.encode("utf-8", "surrogatepass")) for string in strings) + 4
        self._lasts = {string[-1] for string in strings} | {"\N{REPLACEMENT CHARACTER}"}  # or a part of one
        self._may_end: dict[int, bool] = {}

    def found(self, tokens: Sequence[int]) -> bool:
        """Whether the last of these tokens completes one; an earlier one is supposed to have ended the candidate."""
        last = tokens[-1]
        if last not in self._may_end:
            self._may_end[last] = bool(self._lasts & set(self.tokenizer.decode([last])))
        if not self._may_end[last]:
            return False
        text = self.tokenizer.decode(list(tokens[-self._tail :]))
        return any(string in text for string in self.strings)


def _warpers(options: DecodingOptions) -> list[Any]:
    """In transformers' own order: temperature, top-k, top-p."""
    warpers: list[Any] = []
    if options.temperature != 1.0:
        warpers.append(TemperatureLogitsWarper(float(options.temperature)))
    if options.top_k:
        warpers.append(TopKLogitsWarper(options.top_k))
    if options.top_p < 1.0:
        warpers.append(TopPLogitsWarper(float(options.top_p)))
    return warpers
