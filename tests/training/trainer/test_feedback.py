"""Trainers tell what each optimiser step gained on its groups."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from allocated import EachPrompt
from toys import CONFIGS, flat_parameters, make_trainer, toy_dataset
from trl import GRPOConfig

import rollwise as rw
from rollwise.tickets.contrast import Contrast
from rollwise.training import CurriculumGRPOTrainer, CurriculumRLOOTrainer


class Noting(rw.ActorCurator):
    def build(self) -> None:
        super().build()
        self.gains: list[dict[str, float]] = []

    def feedback(self, gains: Any) -> int:
        self.gains.append(dict(gains))
        return super().feedback(gains)


def trained(out: Path, resume: str | None = None, allocator: rw.Allocator | None = None, **options: Any) -> Any:
    vectors = [[float(i % 6), float(i % 4)] for i in range(24)]
    trainer = make_trainer(
        out,
        curriculum=Noting(seed=1, dormant=0, warmup=0, candidate_multiplier=4, allocator=allocator),
        dataset=toy_dataset().add_column("embedding", vectors),
        **{"max_steps": 4, "save_strategy": "steps", "save_steps": 2, **options},
    )
    trainer.train(resume_from_checkpoint=resume)
    return trainer


@pytest.mark.parametrize("kind", [CurriculumGRPOTrainer, CurriculumRLOOTrainer])
def test_the_gains_are_those_of_the_step(tmp_path: Path, kind: type) -> None:
    """Without a step every ratio is 1, so a group gains its mean advantage, 0; with one, the policy improves."""
    still = trained(tmp_path / "still", kind=kind, learning_rate=0.0, max_steps=1).curriculum.gains
    assert list(still[0].values()) == pytest.approx([0.0] * 4, abs=1e-5)
    trainer = trained(tmp_path / "moved", kind=kind)
    assert [len(gains) for gains in trainer.curriculum.gains] == [4, 4, 4, 4]
    assert np.mean([list(gains.values()) for gains in trainer.curriculum.gains]) > 0.0
    assert not trainer.curriculum.awaiting


class Signs(CurriculumGRPOTrainer):
    """Takes the sign of each rollout's advantage for its ratio."""

    def _ratios(self, output: dict[str, Any]) -> torch.Tensor:
        return output["advantages"].sign()


CONFIGS[Signs] = GRPOConfig


def test_the_gain_of_a_group_is_of_its_own_advantages_whatever_the_prompts_weigh_in_the_loss(tmp_path: Path) -> None:
    """Sign times advantage is |advantage|; where prompts weigh alike, the loss has those of small groups multiplied."""
    seen: list[Any] = []
    trainer = trained(tmp_path, kind=Signs, allocator=EachPrompt(), extra={"group_observers": [seen.append]})
    sizes = set()
    for gains, groups in zip(trainer.curriculum.gains, seen, strict=True):
        found = dict(zip([t.id for t in groups.tickets], groups.evidence.abs_advantage.tolist(), strict=True))
        assert gains == pytest.approx(found, abs=1e-5)
        sizes |= {n for n, pay in zip(groups.sizes.tolist(), found.values(), strict=True) if pay > 0}
    assert len(sizes) > 1


def test_the_gain_of_a_group_is_of_its_own_advantages_where_those_trained_on_are_scaled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`match_uniform` multiplies all advantages of a step by a number, which changes from step to step."""
    monkeypatch.setattr(Contrast, "scale", 0.5)
    seen: list[Any] = []
    extra = {"group_observers": [seen.append], "match_uniform": True}
    trainer = trained(tmp_path, kind=Signs, max_steps=2, extra=extra)
    for gains, groups in zip(trainer.curriculum.gains, seen, strict=True):
        assert list(gains.values()) == pytest.approx(groups.evidence.abs_advantage.tolist(), abs=1e-5)
    assert sum(sum(gains.values()) for gains in trainer.curriculum.gains) > 0.0


def test_a_resume_is_exact(tmp_path: Path) -> None:
    straight = trained(tmp_path)
    resumed = trained(tmp_path, str(tmp_path / "checkpoint-2"))
    assert torch.equal(flat_parameters(resumed), flat_parameters(straight))
    assert resumed.curriculum.theta.tolist() == straight.curriculum.theta.tolist()
    assert straight.curriculum.theta.any()


def test_several_steps_on_one_generation_are_refused(tmp_path: Path) -> None:
    with pytest.raises(rw.ConfigError, match="Noting learns from what one optimiser step gained"):
        trained(tmp_path, num_iterations=2)
