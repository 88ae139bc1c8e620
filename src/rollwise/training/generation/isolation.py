"""Context managers that change random state or attributes and restore them on exit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


@contextmanager
def isolated_rng(seed: int) -> Iterator[None]:
    """Inside, python's, numpy's and torch's global generators start from `seed`; after it they go on as before."""
    python_state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng():
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(python_state)
            np.random.set_state(numpy_state)  # noqa: NPY002


@contextmanager
def attributes_set(owner: object, **values: Any) -> Iterator[None]:
    """Inside, attributes that `owner` has already are `values`; after it, also after an error, they are as before."""
    before = {name: getattr(owner, name) for name in values}
    try:
        for name, value in values.items():
            setattr(owner, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)
