"""Texts with which a completion ends, besides the end of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from rollwise.models.decoding.generating import generating_by


class StopTexts:
    """Finds where a completion's text has come to one of some texts.

    transformers' own `StopStringCriteria` takes tokenizers apart and fails for those that can't write "abcdef"; this
    one only decodes.

    Args:
        tokenizer: Decodes tokens.
        texts: At least one; a completion that has come to any of them is finished.
    """

    def __init__(self, tokenizer: Any, texts: Sequence[str]) -> None:
        self.tokenizer, self.texts = tokenizer, tuple(texts)
        # Tokens that surely hold the longest, as each has a byte at least.
        self._tail = max(len(text.encode("utf-8", "surrogatepass")) for text in texts) + 4
        self._lasts = {text[-1] for text in texts} | {"\N{REPLACEMENT CHARACTER}"}  # or a part of one
        self._may_end: dict[int, bool] = {}

    def found(self, tokens: Sequence[int]) -> bool:
        """Whether the last of these tokens completes one; an earlier one is supposed to have ended the completion."""
        last = tokens[-1]
        if last not in self._may_end:
            twice = self.tokenizer.decode([last, last])  # SentencePiece leaves out the space before a first token
            self._may_end[last] = bool(self._lasts & set(twice))
        if not self._may_end[last]:
            return False
        text = self.tokenizer.decode(list(tokens[-self._tail :]))
        return any(one in text for one in self.texts)

    def cut(self, tokens: Sequence[int]) -> list[int]:
        """The tokens up to the one that completes the first stop text, and with it; all where there is none."""
        for end in range(1, len(tokens) + 1):
            if self.found(tokens[max(0, end - self._tail) : end]):
                return list(tokens[:end])
        return list(tokens)

    def criterion(self, width: int) -> Callable[..., Any]:
        """Which rows `model.generate` need not go on with, for contexts of `width` tokens: a stopping criterion."""
        import torch

        def done(input_ids: Any, scores: Any, **options: Any) -> Any:
            made = input_ids[:, width:][:, -self._tail :].tolist()
            return torch.tensor([self.found(row) for row in made], device=input_ids.device, dtype=torch.bool)

        return done

    def ending(self, model: Any) -> AbstractContextManager[None]:
        """Inside, `model.generate` ends a row at a stop text; what it has after that is padding."""
        plain = model.generate

        def generate(**options: Any) -> Any:
            from transformers import StoppingCriteriaList

            criteria = StoppingCriteriaList([self.criterion(options["input_ids"].shape[1])])
            return plain(**options, stopping_criteria=criteria)

        return generating_by(model, generate)


def until_end(tokens: list[int], ends: set[int], stops: StopTexts | None) -> tuple[list[int], bool]:
    """The tokens up to the end of text, or to a stop text, and with it; and whether there was neither."""
    end = next((at + 1 for at, token in enumerate(tokens) if token in ends), len(tokens))
    own = tokens[:end] if stops is None else stops.cut(tokens[:end])
    return own, own[-1] not in ends and (stops is None or not stops.found(own))
