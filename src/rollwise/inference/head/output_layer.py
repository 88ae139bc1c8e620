"""The output embeddings of a model: what the success head reads the input of."""

from __future__ import annotations

from typing import Any

from rollwise.errors import ConfigError


def output_embeddings(model: Any) -> Any:
    """The module that makes logits of hidden states.

    Raises:
        ConfigError: the model has none.
    """
    module = model.get_output_embeddings()
    if module is None or getattr(module, "weight", None) is None:
        raise ConfigError(f"{type(model).__name__} has no output embeddings; a causal language model is needed")
    return module


def output_width(model: Any) -> int:
    """H, the width of the hidden states that the output embeddings read; sharded weights may not show it."""
    module = output_embeddings(model)
    return int(getattr(module, "in_features", None) or module.weight.shape[1])
