"""Groups of different size on TRL's trainers: what is made, told, trained on, and how it weighs."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from allocated import SIZES, EachPrompt, InTurn
from toys import CONFIGS, flat_parameters, make_trainer, toy_reward

import rollwise as rw
from rollwise.training import CurriculumGRPOTrainer, CurriculumRLOOTrainer
from rollwise.training.generation.advantages import group_advantages

GRPO: list[dict[str, Any]] = [
    {"scale_rewards": "none"},
    {"scale_rewards": "group"},
    {"scale_rewards": "batch"},
    {"scale_rewards": "none", "loss_type": "dapo", "steps_per_generation": 2},
]
CASES = [
    *((CurriculumGRPOTrainer, options) for options in GRPO),
    (CurriculumRLOOTrainer, {}),
    (CurriculumRLOOTrainer, {"normalize_advantages": True}),
]


class NotingGRPO(CurriculumGRPOTrainer):
    def _generate_and_score_completions(self, inputs: Any) -> Any:
        self.noted = super()._generate_and_score_completions(inputs)
        return self.noted


class NotingRLOO(CurriculumRLOOTrainer):
    def _generate_and_score_completions(self, inputs: Any) -> Any:
        self.noted = super()._generate_and_score_completions(inputs)
        return self.noted


NOTING = {CurriculumGRPOTrainer: NotingGRPO, CurriculumRLOOTrainer: NotingRLOO}
CONFIGS.update({noting: CONFIGS[kind] for kind, noting in NOTING.items()})


def expected(rewards: list[np.ndarray], kind: type, options: dict[str, Any]) -> np.ndarray:
    """The advantages by hand; a group of one has none."""
    every = np.concatenate(rewards)
    if kind is CurriculumRLOOTrainer:
        parts = [(r - r.mean()) * len(r) / max(len(r) - 1, 1) for r in rewards]
        flat = np.concatenate(parts)
        if options:
            known = np.concatenate([p for p in parts if len(p) > 1])
            flat = np.concatenate(
                [(p - known.mean()) / (known.std(ddof=1) + 1e-4) if len(p) > 1 else 0 * p for p in parts]
            )
        return flat
    scale = options["scale_rewards"]
    spread = {"none": 1.0, "batch": every.std(ddof=1) + 1e-4}
    return np.concatenate(
        [(r - r.mean()) / spread.get(scale, r.std(ddof=1) + 1e-4 if len(r) > 1 else 1.0) for r in rewards]
    )


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_what_the_tickets_say_is_made_told_and_trained_on(kind: type, options: dict[str, Any], tmp_path: Path) -> None:
    seen: list[Any] = []
    scored: list[int] = []

    def reward(completion_ids: list[list[int]], **columns: Any) -> list[float]:
        scored.append(len(completion_ids))
        return toy_reward(completion_ids, **columns)

    trainer = make_trainer(
        tmp_path,
        kind=NOTING[kind],
        curriculum=rw.Uniform(seed=1, allocator=InTurn()),
        reward=reward,
        max_steps=2,
        extra={"group_observers": [seen.append], "run": tmp_path / "run"},
        **options,
    )
    trainer.train()
    groups, output = seen[-1], trainer.noted
    assert scored[:4] == list(SIZES)
    assert groups.sizes.tolist() == list(SIZES)
    assert [t.n_rollouts for t in groups.tickets] == list(SIZES)
    assert [len(own) for own in groups.texts] == list(SIZES)
    assert groups.spent()[0] == sum(SIZES) == 16
    rewards = [own[:n] for own, n in zip(groups.rewards, SIZES, strict=True)]
    assert output["advantages"].numpy() == pytest.approx(expected(rewards, kind, options), abs=1e-5)
    assert groups.advantages[groups.there] == pytest.approx(output["advantages"].numpy(), abs=1e-6)
    assert output["completion_mask"].sum(1).tolist() == groups.lengths[groups.there].tolist()
    assert trainer.processing_class.batch_decode(output["completion_ids"], skip_special_tokens=True) == [
        text for own in groups.texts for text in own
    ]
    evidence = groups.evidence
    assert evidence.count.tolist() == list(SIZES)
    assert evidence.mean == pytest.approx([r.mean() for r in rewards])
    numbers = groups.metrics()
    assert (numbers["group_size_min"], numbers["group_size_max"]) == (1.0, 8.0)
    by_hand = expected(rewards, kind, options)  # in double precision; in float32 few are 0 to the bit
    assert numbers["zero_advantage"] == pytest.approx(np.mean(np.abs(by_hand) < 1e-9))
    lines = [json.loads(line) for line in (tmp_path / "run/rollouts.jsonl").read_text().splitlines()]
    assert (
        [len(line["rewards"]) for line in lines] == [len(line["advantages"]) for line in lines] == [*SIZES] * len(seen)
    )


def test_trls_own_metrics_are_those_of_all_rollouts(tmp_path: Path) -> None:
    seen: list[Any] = []
    trainer = make_trainer(
        tmp_path,
        curriculum=rw.Uniform(seed=1, allocator=InTurn()),
        max_steps=1,
        scale_rewards="group",
        extra={"group_observers": [seen.append]},
    )
    trainer.train()
    (groups,), line = seen, trainer.state.log_history[0]
    rewards, lengths = groups.rewards[groups.there], groups.lengths[groups.there]
    assert line["reward"] == pytest.approx(rewards.mean(), abs=1e-4)
    assert line["completions/mean_length"] == pytest.approx(lengths.mean(), abs=1e-3)
    assert (line["completions/min_length"], line["completions/max_length"]) == (lengths.min(), lengths.max())


@pytest.mark.parametrize("kind", [CurriculumGRPOTrainer, CurriculumRLOOTrainer])
def test_resumed_it_is_the_uninterrupted_run(kind: type, tmp_path: Path) -> None:
    def run(out: Path, resume: Any = None) -> Any:
        trainer = make_trainer(
            out,
            kind=kind,
            curriculum=rw.Recommended(seed=3, allocator="knapsack"),
            max_steps=4,
            save_strategy="steps",
            save_steps=2,
        )
        trainer.train(resume_from_checkpoint=resume)
        return trainer

    straight = run(tmp_path / "straight")
    shutil.copytree(tmp_path / "straight/checkpoint-2", tmp_path / "again/checkpoint-2")
    resumed = run(tmp_path / "again", resume=True)
    assert torch.equal(flat_parameters(resumed), flat_parameters(straight))
    assert resumed.curriculum.state_dict() == straight.curriculum.state_dict()


@pytest.mark.parametrize("loss_type", ["grpo", "dapo"])
@pytest.mark.parametrize("allocator", [InTurn(), EachPrompt()])
def test_the_gradient_by_hand(allocator: InTurn, loss_type: str, tmp_path: Path) -> None:
    """On the first step the ratio is 1: each token adds -A grad log p, over what the loss divides by."""
    trainer = make_trainer(
        tmp_path,
        kind=NotingGRPO,
        curriculum=rw.Uniform(seed=1, allocator=allocator),
        max_steps=1,
        scale_rewards="none",
        loss_type=loss_type,
        learning_rate=0.0,
        max_grad_norm=1e9,
        temperature=1.0,
    )
    trainer.train()
    batch, model = trainer.noted, trainer.model.train()
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
    mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
    width = batch["completion_ids"].shape[1]
    logits = model(input_ids=ids, attention_mask=mask).logits[:, -width - 1 : -1]
    logps = torch.log_softmax(logits, dim=-1).gather(2, batch["completion_ids"].unsqueeze(2)).squeeze(2)
    there = batch["completion_mask"]
    rewards = torch.tensor(_rewards_of(trainer, batch))
    raw = group_advantages("centred", rewards, SIZES)
    size = torch.tensor(np.repeat(SIZES, SIZES), dtype=torch.float32)
    weights = 4.0 / size if allocator.weight == "prompt" else torch.ones(16)
    assert batch["advantages"] == pytest.approx((raw * weights).numpy(), abs=1e-6)
    if loss_type == "grpo":  # a mean over rollouts of means over tokens; by prompts, over groups of means over rollouts
        per_rollout = (raw.unsqueeze(1) * logps * there).sum(1) / there.sum(1)
        parts = per_rollout.split(list(SIZES))
        by_prompt = sum(part.mean() for part in parts) / 4
        by_hand = -(by_prompt if allocator.weight == "prompt" else per_rollout.mean())
    else:  # all tokens alike
        by_hand = -((raw * weights).unsqueeze(1) * logps * there).sum() / there.sum()
    (wanted,) = torch.autograd.grad(by_hand, [model.get_input_embeddings().weight])
    loss = trainer.compute_loss(model, batch)
    (got,) = torch.autograd.grad(loss, [model.get_input_embeddings().weight])
    assert torch.allclose(got, wanted, atol=1e-6)
    assert got.abs().max() > 1e-4


def _rewards_of(trainer: Any, batch: dict[str, Any]) -> list[float]:
    ids = [own[m.bool()].tolist() for own, m in zip(batch["completion_ids"], batch["completion_mask"], strict=True)]
    thresholds = {row["prompt"]: row["threshold"] for row in trainer.train_dataset}
    prompts = trainer.processing_class.batch_decode(batch["prompt_ids"], skip_special_tokens=True)
    plain = {prompt.replace(" ", ""): n for prompt, n in thresholds.items()}
    return toy_reward(ids, [plain[prompt.replace(" ", "")] for prompt in prompts])


def test_what_groups_of_several_calls_cannot_have_is_refused_before_training(tmp_path: Path) -> None:
    given = {"curriculum": rw.Uniform(allocator=InTurn())}
    with pytest.raises(rw.ConfigError, match="reward_clip_range is not applied to groups of several calls"):
        make_trainer(tmp_path, kind=CurriculumRLOOTrainer, reward_clip_range=(0.0, 0.5), **given)
    with pytest.raises(rw.ConfigError, match="Knapsack gives each prompt 5 to 9 rollouts, and the mean is to be 4"):
        allocator = rw.Knapsack(min_rollouts=5, max_rollouts=9)
        make_trainer(tmp_path, curriculum=rw.Uniform(allocator=allocator))


class TooMany(InTurn):
    def allocate(self, rates: Any, mean: int) -> np.ndarray:
        return np.array([8, 8, 8, 8])


def test_another_sum_than_the_budget_is_refused_before_any_rollout(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, curriculum=rw.Uniform(allocator=TooMany()))
    with pytest.raises(rw.ConfigError, match="ask for 32 rollouts, but a step trains on 16"):
        trainer.train()
    assert trainer.curriculum.metrics()["told"] == 0
