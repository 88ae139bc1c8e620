"""A curriculum inside an unmodified verl 0.9, by configuration alone; see `docs/verl.md`.

`CurriculumDataset` asks, `replay_buffer` tells, `JudgingManager` lets the live policy judge for METIS. verl is imported
when one of them is.
"""

from importlib import import_module
from typing import Any

_PLACES = {"CurriculumDataset": "dataset", "replay_buffer": "buffer", "JudgingManager": "manager"}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
