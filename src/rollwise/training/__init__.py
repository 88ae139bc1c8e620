"""Train with a curriculum on TRL's own trainers: change the class, add one argument.

    from rollwise.training import CurriculumGRPOTrainer

    trainer = CurriculumGRPOTrainer(..., curriculum=rw.PrioritizedReplay())

Needs `pip install "rollwise[train]"`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rollwise.errors import MissingExtraError

if TYPE_CHECKING:
    from rollwise.training.trainers import CurriculumGRPOTrainer, CurriculumRLOOTrainer

__all__ = ["CurriculumGRPOTrainer", "CurriculumRLOOTrainer"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from rollwise.training import trainers
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("rollwise"):
            raise
        raise MissingExtraError(f'{name} needs {error.name}: pip install "rollwise[train]"') from error
    return getattr(trainers, name)
