"""TRL's GRPO and RLOO trainers with a curriculum."""

from __future__ import annotations

from trl import GRPOTrainer, RLOOTrainer

from rollwise.training.trainer.curriculum_mixin import CurriculumMixin


class CurriculumGRPOTrainer(CurriculumMixin, GRPOTrainer):
    """`trl.GRPOTrainer` whose prompts a curriculum chooses; see `CurriculumMixin` for the added arguments."""

    _tag_names = [*GRPOTrainer._tag_names, "rollwise"]


class CurriculumRLOOTrainer(CurriculumMixin, RLOOTrainer):
    """`trl.RLOOTrainer` whose prompts a curriculum chooses; see `CurriculumMixin` for the added arguments."""

    _tag_names = [*RLOOTrainer._tag_names, "rollwise"]
