"""A model's modes of training and evaluation."""

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
