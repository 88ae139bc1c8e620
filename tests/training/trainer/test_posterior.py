"""MaPP's posterior advantages as what is trained on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toys import CONFIGS, GROUP, make_trainer, toy_reward

import rollwise as rw
from rollwise.training import CurriculumGRPOTrainer, CurriculumRLOOTrainer
from rollwise.training.config import TrainConfig
from rollwise.training.generation.advantages import posterior_advantages

POSTERIOR = {"posterior_advantages": True}


class NotingGRPO(CurriculumGRPOTrainer):
    def _generate_and_score_completions(self, inputs: Any) -> Any:
        output = super()._generate_and_score_completions(inputs)
        self.noted = output["advantages"].numpy().copy()
        return output


class NotingRLOO(CurriculumRLOOTrainer):
    def _generate_and_score_completions(self, inputs: Any) -> Any:
        output = super()._generate_and_score_completions(inputs)
        self.noted = output["advantages"].numpy().copy()
        return output


CONFIGS.update({NotingGRPO: CONFIGS[CurriculumGRPOTrainer], NotingRLOO: CONFIGS[CurriculumRLOOTrainer]})


@pytest.mark.parametrize("kind", [NotingGRPO, NotingRLOO])
def test_it_trains_on_what_the_belief_expects(tmp_path: Path, kind: type) -> None:
    """New prompts: Beta(1 + right, 1 + wrong), this group included. Groups without contrast are trained on, too."""
    seen: list[Any] = []
    extra = {"group_observers": [seen.append], **POSTERIOR}
    trainer = make_trainer(tmp_path, kind=kind, curriculum=rw.MaPP(seed=0), max_steps=1, extra=extra)
    trainer.train()
    rewards = seen[0].rewards
    right = torch.tensor(rewards.sum(axis=1))
    expected = posterior_advantages(torch.tensor(rewards.ravel()), 1 + right, 1 + GROUP - right, GROUP)
    assert trainer.noted == pytest.approx(expected.numpy(), abs=1e-6)
    assert (trainer.noted != 0.0).all()


def test_groups_of_different_size_are_apart() -> None:
    """Beta(2, 2) with a group of 2, one right; then Beta(2, 1) with a group of 1, which has nothing to compare with."""
    found = posterior_advantages(
        torch.tensor([1.0, 1.0, 0.0]), torch.tensor([2.0, 2.0]), torch.tensor([1.0, 2.0]), [1, 2]
    )
    assert found.tolist() == pytest.approx([0.0, 2 / 3, -2 / 3])


def test_other_rewards_than_0_and_1_are_refused(tmp_path: Path) -> None:
    def graded(completion_ids: list[list[int]], **more: Any) -> list[float]:
        return [0.5 * r for r in toy_reward(completion_ids, **more)]

    trainer = make_trainer(tmp_path, curriculum=rw.MoPPS(seed=0), reward=graded, max_steps=4, extra=POSTERIOR)
    with pytest.raises(rw.ConfigError, match=r"rewards of 0 and 1, got a reward of 0\.5"):
        trainer.train()


def test_a_method_without_a_beta_belief_is_refused(tmp_path: Path) -> None:
    with pytest.raises(rw.ConfigError, match="PrioritizedReplay has none; use MaPP"):
        make_trainer(tmp_path, curriculum=rw.PrioritizedReplay(seed=0), extra=POSTERIOR)
    with pytest.raises(rw.ConfigError, match="Uniform has none; use MaPP"):
        TrainConfig(curriculum="uniform", advantages="posterior").check_parts()
    with pytest.raises(rw.ConfigError, match="scales them again"):
        make_trainer(tmp_path, curriculum=rw.MaPP(seed=0), scale_rewards="batch", extra=POSTERIOR)
    spec = rw.RewardSpec(high=2, solved_at=1)
    with pytest.raises(rw.ConfigError, match="the rewards are in another range than 0 to 1"):
        make_trainer(tmp_path, curriculum=rw.MaPP(seed=0, reward_spec=spec), extra=POSTERIOR)


def test_the_beliefs_include_the_outcomes_of_this_step() -> None:
    mapp = rw.MaPP(rw.PromptPool(ids=["a"]), seed=0)
    mapp.tell([rw.Outcome(t.id, [1, 1, 0]) for t in mapp.ask(1)])
    assert np.stack(mapp.posterior()).tolist() == [[3.0], [2.0]]
    with pytest.raises(rw.ConfigError, match="BOTS has none"):
        rw.BOTS(belief="gaussian").need_beta_belief()
