"""From a question to the tokens that a model is given, within what its context can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rollwise.errors import ConfigError
from rollwise.judges import Question, plain_text
from rollwise.models.sampler import tokens_of


@dataclass(frozen=True, slots=True)
class EncodedQuestion:
    """A question's tokens, and how many of its exemplars they show; no tokens where the candidate alone is too long."""

    ids: list[int]
    exemplars: int


class QuestionEncoder:
    """Encodes questions with a tokenizer: through its chat template if it has one, else as plain text.

    Args:
        tokenizer: the policy's.
        window: most tokens of a context; None for no limit.
        template_options: further arguments of the chat template.
    """

    def __init__(
        self, tokenizer: Any, *, window: int | None, template_options: Mapping[str, Any] | None = None
    ) -> None:
        self.tokenizer, self.window = tokenizer, window
        self.template_options = dict(template_options or {})

    def encode(self, question: Question) -> EncodedQuestion:
        """The tokens with as many exemplars as fit, the newest; the candidate is never cut."""
        begun = self.tokenizer(question.format.begins, add_special_tokens=False)["input_ids"]
        for exemplars in range(len(question.exemplars), -1, -1):
            ids = self._tokens(question.context(exemplars)) + begun
            if self.window is None or len(ids) <= self.window:
                return EncodedQuestion(ids, exemplars)
        return EncodedQuestion([], 0)

    def _tokens(self, context: str | list[dict[str, Any]]) -> list[int]:
        if getattr(self.tokenizer, "chat_template", None) is None:
            context = plain_text(context)
        try:
            return tokens_of(self.tokenizer, context, self.template_options)
        except ConfigError:  # a template that knows no system role
            alone = [{"role": "user", "content": plain_text(context).rstrip("\n")}]
            return tokens_of(self.tokenizer, alone, self.template_options)
