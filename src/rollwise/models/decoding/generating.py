"""Puts something around `model.generate` for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def generating_by(model: Any, generate: Callable[..., Any]) -> Iterator[None]:
    """Inside, `model.generate` is `generate`; after it, also after an error, what it was."""
    own = vars(model).get("generate")  # somebody else's in the class's place
    model.generate = generate
    try:
        yield
    finally:
        del model.generate
        if own is not None:
            model.generate = own
