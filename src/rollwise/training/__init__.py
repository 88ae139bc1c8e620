"""Train with a curriculum on TRL's own trainers: change the class, add one argument.

    from rollwise.training import CurriculumGRPOTrainer

    trainer = CurriculumGRPOTrainer(..., curriculum=rw.PrioritizedReplay())

Needs `pip install "rollwise[train]"`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rollwise.errors import MissingExtraError

if TYPE_CHECKING:
    from rollwise.runs.folder import RunFolder
    from rollwise.training.recording.recorder import Recorder
    from rollwise.training.trainer.curriculum_mixin import CurriculumMixin
    from rollwise.training.trainer.trainers import CurriculumGRPOTrainer, CurriculumRLOOTrainer

_HOMES = {
    "CurriculumGRPOTrainer": "rollwise.training.trainer.trainers",
    "CurriculumMixin": "rollwise.training.trainer.curriculum_mixin",
    "CurriculumRLOOTrainer": "rollwise.training.trainer.trainers",
    "Recorder": "rollwise.training.recording.recorder",
    "RunFolder": "rollwise.runs.folder",
}
__all__ = ["CurriculumGRPOTrainer", "CurriculumMixin", "CurriculumRLOOTrainer", "Recorder", "RunFolder"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("rollwise"):
            raise
        raise MissingExtraError(f'{name} needs {error.name}: pip install "rollwise[train]"') from error
