"""How many samples to ask for at once: more, the longer the prompt is beside the answers.

Each request reads the prompt again. Samples beyond those that the rule can't do without may save a request, or may be
in vain. Neither is known before, so no more is spent on them than a request's prompt costs: as many as

    floor(prompt tokens x price_in / (tokens of an answer x price_out))

with both prices 1 where none are given. A prompt of 500 tokens with answers of 100 has 5: the request for the first 4
of adaptive consistency asks for 9. A prompt of 90 tokens has none.

So stopping early never costs twice what all K samples in one request cost, once the lengths are known: every request
but the last brings more samples than its prompt is worth, so all their prompts together cost less than K samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rollwise.inference.endpoint.samples import Drawn

_LETTERS = 4
"""Characters a token, of a prompt whose tokens nobody has counted yet."""

_ANSWER = 256
"""Tokens of an answer before the first has come."""


@dataclass
class AnswerLength:
    """Mean tokens of an answer, over all prompts; in chunks where the endpoint counts no tokens."""

    tokens: int = 0
    samples: int = 0

    def add(self, request: Mapping[str, Any], samples: int) -> None:
        """A request as a line of the file of samples, and how many came of it; one that was cut short says nothing."""
        tokens = request["chunks"] if request["completion_tokens"] is None else request["completion_tokens"]
        if tokens and samples and not request["unfinished"]:
            self.tokens += tokens
            self.samples += samples

    def add_drawn(self, drawn: Drawn) -> None:
        """What was drawn of a prompt before."""
        came = drawn.came()
        for number, request in drawn.requests.items():
            self.add(request, came[number])

    def mean(self) -> float:
        """Tokens an answer."""
        return self.tokens / self.samples if self.samples else _ANSWER


def worth_asking(prompt_tokens: float, answer_tokens: float, price_in: float, price_out: float) -> float:
    """Samples that cost as much as reading the prompt once; infinite where answers cost nothing.

    >>> worth_asking(500, 100, 1, 1), worth_asking(500, 100, 1, 4), worth_asking(90, 100, 1, 1)
    (5.0, 1.25, 0.9)
    """
    answer = answer_tokens * price_out
    return prompt_tokens * price_in / answer if answer else float("inf")


def estimated_tokens(prompt: Any, system: str | None) -> float:
    """Tokens of a prompt, text or chat messages, by its characters; pictures count for nothing."""
    texts = [system or ""]
    for message in [{"content": prompt}] if isinstance(prompt, str) else prompt:
        content = message.get("content")
        parts = [content] if isinstance(content, str) else content or []
        texts += [part if isinstance(part, str) else str(part.get("text") or "") for part in parts]
    return sum(map(len, texts)) / _LETTERS
