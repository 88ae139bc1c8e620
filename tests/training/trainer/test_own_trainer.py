"""A curriculum before a trainer that is neither of TRL's two: GMPO of TRL's experiments, and classes of one's own."""

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from toys import flat_parameters, make_trainer, rows_of_updates
from trl import DPOTrainer, GRPOConfig, GRPOTrainer
from trl.experimental.gmpo import GMPOConfig, GMPOTrainer

import rollwise as rw
from rollwise.training import CurriculumGRPOTrainer, CurriculumMixin


class CurriculumGMPOTrainer(CurriculumMixin, GMPOTrainer):
    loss_normalization = "rollout"


class Unsaid(CurriculumMixin, GMPOTrainer):
    """Its class does not say how its loss is normalized."""


class Doubled(GRPOTrainer):
    """Changes the advantages."""

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        batch = super()._generate_and_score_completions(inputs)
        return batch | {"advantages": batch["advantages"] * 2.0}


class CurriculumDoubled(CurriculumMixin, Doubled):
    pass


class OwnLoss(CurriculumGRPOTrainer):
    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        return super()._compute_loss(model, inputs) + 0.1 * model.get_input_embeddings().weight.square().mean()


def gmpo(folder: Path, kind: type = CurriculumGMPOTrainer, **options: Any) -> Any:
    return make_trainer(folder, kind=kind, config=GMPOConfig, **options)


def test_gmpo_trains_on_what_the_curriculum_chooses_and_resumes_exactly(tmp_path: Path) -> None:
    saved = {"save_strategy": "steps", "save_steps": 3}
    whole = gmpo(tmp_path / "whole", extra={"run": tmp_path / "run"}, **saved)
    whole.train()
    assert len(whole.curriculum.asked) == 6
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert config["trainer_class"] == f"{__name__}.CurriculumGMPOTrainer"
    resumed = gmpo(tmp_path / "resumed", **saved)
    resumed.train(resume_from_checkpoint=str(tmp_path / "whole" / "checkpoint-3"))
    assert resumed.curriculum.asked == whole.curriculum.asked[3:]
    assert torch.equal(flat_parameters(resumed), flat_parameters(whole))


def test_its_loss_is_its_own(tmp_path: Path) -> None:
    """GMPO clips the ratio's geometric mean, which shows where a generation is trained on twice."""
    weights = []
    for kind, config in ((CurriculumGMPOTrainer, GMPOConfig), (CurriculumGRPOTrainer, GRPOConfig)):
        options = {"num_iterations": 2, "epsilon": 1e-3, "learning_rate": 0.02}
        trainer = make_trainer(tmp_path / kind.__name__, kind=kind, config=config, **options)
        trainer.train()
        weights.append(flat_parameters(trainer))
    assert not torch.allclose(*weights)


def test_rollouts_are_skipped_where_the_class_says_how_its_loss_is_normalized(tmp_path: Path) -> None:
    found = []
    for skip in (False, True):
        options = {"curriculum": rw.Uniform(seed=3), "max_steps": 3, "optim": "sgd", "learning_rate": 0.5}
        trainer = gmpo(tmp_path / str(skip), extra={"skip_zero_advantage": skip}, accumulate=2, **options)
        rows = rows_of_updates(trainer)
        trainer.train()
        found.append((flat_parameters(trainer).numpy(), sum(rows)))
    assert found[1][0] == pytest.approx(found[0][0], abs=2e-6)
    assert found[1][1] < found[0][1]


@pytest.mark.parametrize(
    ("kind", "config", "method"),
    [(Unsaid, GMPOConfig, "GMPOTrainer"), (OwnLoss, GRPOConfig, "OwnLoss")],
)
def test_what_is_not_known_of_a_loss_is_refused_where_it_matters(
    kind: type, config: type, method: str, tmp_path: Path
) -> None:
    make_trainer(tmp_path, kind=kind, config=config)
    words = f"does not know how {method}._compute_loss is normalized: say it in the class as loss_normalization"
    with pytest.raises(rw.ConfigError, match=words):
        make_trainer(tmp_path, kind=kind, config=config, extra={"skip_zero_advantage": True})


def test_a_wrong_normalization_is_named(tmp_path: Path) -> None:
    kind = type("Wrong", (CurriculumGMPOTrainer,), {"loss_normalization": "token"})
    with pytest.raises(rw.ConfigError, match="loss_normalization must be one of .*'rollout'.*got 'token'"):
        gmpo(tmp_path, kind=kind, extra={"skip_zero_advantage": True})


def test_advantages_of_ones_own_are_trained_on(tmp_path: Path) -> None:
    options = {"max_steps": 1, "optim": "sgd", "learning_rate": 0.1, "max_grad_norm": 1e9, "logging_steps": 1}
    moved = []
    for kind in (CurriculumGRPOTrainer, CurriculumDoubled):
        trainer = make_trainer(tmp_path / kind.__name__, kind=kind, config=GRPOConfig, **options)
        begin = flat_parameters(trainer).clone()
        trainer.train()
        moved.append(flat_parameters(trainer) - begin)
    assert moved[0].abs().max() > 0
    assert moved[1].numpy() == pytest.approx(2 * moved[0].numpy(), rel=1e-3, abs=1e-6)


def test_advantages_of_ones_own_that_would_be_lost_are_refused(tmp_path: Path) -> None:
    words = "compute advantages anew.*Doubled._generate_and_score_completions may have changed"
    for curriculum in (rw.Uniform(allocator="knapsack"), rw.SPEED(screen_rollouts=2)):
        with pytest.raises(rw.ConfigError, match=words):
            make_trainer(tmp_path, kind=CurriculumDoubled, config=GRPOConfig, curriculum=curriculum)


def test_a_trainer_without_groups_is_refused(tmp_path: Path) -> None:
    kind = type("Preferences", (CurriculumMixin, DPOTrainer), {})
    with pytest.raises(rw.ConfigError, match="Preferences is neither a GRPOTrainer nor an RLOOTrainer of TRL"):
        make_trainer(tmp_path, kind=kind, config=GRPOConfig)
