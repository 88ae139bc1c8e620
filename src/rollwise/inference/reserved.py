"""Rows of a vocabulary that the tokenizer has no name for."""

from __future__ import annotations

from typing import Any


def unnamed_ids(model: Any, tokenizer: Any) -> list[int]:
    """Token ids that the model has logits for and the tokenizer no name."""
    rows = int(model.get_output_embeddings().weight.shape[0])
    named = set(tokenizer.get_vocab().values())
    return [row for row in range(rows) if row not in named]
