"""Advantages scaled to the mean square of prompts drawn at random."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toys import CONFIGS, flat_parameters, make_trainer, toy_dataset

import rollwise as rw
from rollwise.training import CurriculumGRPOTrainer


class NotingGRPO(CurriculumGRPOTrainer):
    def _generate_and_score_completions(self, inputs: Any) -> Any:
        output = super()._generate_and_score_completions(inputs)
        self.noted = output["advantages"].numpy().copy()
        return output


CONFIGS[NotingGRPO] = CONFIGS[CurriculumGRPOTrainer]


def train(out: Path, resume: str | None = None, **extra: Any) -> tuple[Any, list[Any]]:
    seen: list[Any] = []
    trainer = make_trainer(
        out,
        kind=NotingGRPO,
        curriculum=rw.PrioritizedReplay(seed=1, exploration=0.5, explore_from="all"),
        dataset=toy_dataset(60),
        max_steps=12,
        scale_rewards="none",
        save_strategy="steps",
        save_steps=8,
        extra={"group_observers": [seen.append], **extra},
    )
    trainer.train(resume_from_checkpoint=resume)
    return trainer, seen


def test_the_scale_is_that_of_the_curriculum_and_a_resume_is_exact(tmp_path: Path) -> None:
    trainer, seen = train(tmp_path / "straight", match_uniform=True)
    scale = trainer.curriculum.contrast.scale
    assert scale != 1.0
    assert scale == pytest.approx(trainer.curriculum.metrics()["contrast_ratio"] ** -0.5)
    assert trainer.noted == pytest.approx(seen[-1].advantages.ravel() * scale, abs=1e-6)
    assert trainer.state.log_history[-2]["curriculum/advantage_scale"] == pytest.approx(scale, abs=1e-4)
    resumed, _ = train(tmp_path / "straight", str(tmp_path / "straight/checkpoint-8"), match_uniform=True)
    assert torch.equal(flat_parameters(resumed), flat_parameters(trainer))


def test_it_is_off_by_default(tmp_path: Path) -> None:
    trainer, seen = train(tmp_path)
    assert np.array_equal(trainer.noted, seen[-1].advantages.ravel())
    assert "curriculum/advantage_scale" not in trainer.state.log_history[-2]


def test_an_allocator_beside_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(rw.ConfigError, match="by Knapsack.*match_uniform compares groups of one size"):
        make_trainer(tmp_path, curriculum=rw.Uniform(seed=0, allocator="knapsack"), extra={"match_uniform": True})
