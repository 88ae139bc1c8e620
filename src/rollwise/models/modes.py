"""A model's modes: training or evaluation, activations kept or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Inside, the model evaluates (no dropout); afterwards it is back in the mode in which it was."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


def checkpoints_activations(model: Any) -> bool:
    """Whether a model computes activations again in the backward pass; while it trains, it then keeps no cache."""
    name = "is_activation_checkpointing"  # transformers 5.23 renamed it
    return bool(getattr(model, name if hasattr(model, name) else "is_gradient_checkpointing", False))
