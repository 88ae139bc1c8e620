"""Selection is on time: a step's prompts are chosen after the step before was told, and are what is trained on."""

from pathlib import Path
from typing import Any

import pytest
from toys import GROUP, PROMPTS, Traced, make_trainer, toy_reward

from rollwise.training import CurriculumGRPOTrainer, CurriculumRLOOTrainer

CASES = [
    pytest.param(CurriculumGRPOTrainer, {}, 6, id="grpo"),
    pytest.param(CurriculumGRPOTrainer, {"accumulate": 2}, 6, id="grpo-accumulate"),
    pytest.param(
        CurriculumGRPOTrainer, {"accumulate": 2, "steps_per_generation": 1}, 12, id="grpo-two-generations-a-step"
    ),
    pytest.param(CurriculumGRPOTrainer, {"steps_per_generation": 2, "num_iterations": 2}, 2, id="grpo-reused-rollouts"),
    pytest.param(CurriculumGRPOTrainer, {"scale_rewards": "none", "loss_type": "dr_grpo"}, 6, id="grpo-centred"),
    pytest.param(CurriculumRLOOTrainer, {"accumulate": 2}, 6, id="rloo-accumulate"),
    pytest.param(CurriculumRLOOTrainer, {"normalize_advantages": True}, 6, id="rloo-std"),
]


@pytest.mark.parametrize(("kind", "options", "generations"), CASES)
def test_asks_and_tells_alternate_and_the_chosen_prompts_are_rolled_out(
    kind: type, options: dict[str, Any], generations: int, tmp_path: Path
) -> None:
    seen: list[list[str]] = []

    def reward(prompts: list[str], **columns: Any) -> list[float]:
        seen.append(prompts)
        return toy_reward(**columns)

    curriculum = Traced(seed=3, retest_every=2)
    trainer = make_trainer(tmp_path, kind=kind, curriculum=curriculum, reward=reward, **options)
    trainer.train()
    kinds = [kind for kind, _ in curriculum.trace]
    assert kinds == ["ask", "tell"] * generations  # an ask that ran ahead of a tell would break the pattern
    prompt_of = dict(zip(curriculum.pool.ids, curriculum.pool.prompts, strict=True))
    chosen = [[prompt_of[i] for i in ids for _ in range(GROUP)] for ids in curriculum.asked]
    assert seen == chosen
    assert all(len(set(ids)) == PROMPTS for ids in curriculum.asked)


def test_metrics_reach_the_trainers_log(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, max_steps=2, extra={"log": "all"})
    trainer.train()
    first = trainer.state.log_history[0]
    shares = [first[f"curriculum/{name}"] for name in ("frac_mixed", "frac_all_good", "frac_all_bad")]
    assert sum(shares) == pytest.approx(1.0)
    assert first["curriculum/asked"] == PROMPTS
    assert {"curriculum/heap", "curriculum/abs_advantage", "curriculum/ask_s"} <= set(first)


def test_the_told_rewards_and_advantages_are_the_trainers(tmp_path: Path) -> None:
    groups: list[Any] = []
    trainer = make_trainer(tmp_path, max_steps=3, scale_rewards="none", extra={"group_observers": [groups.append]})
    trainer.train()
    for group in groups:
        centred = group.rewards - group.rewards.mean(axis=1, keepdims=True)
        assert group.advantages == pytest.approx(centred, abs=1e-6)
        assert group.evidence.mean == pytest.approx(group.rewards.mean(axis=1))
        assert group.lengths.shape == group.rewards.shape == (PROMPTS, GROUP)
        assert [len(t) for t in group.texts] == [GROUP] * PROMPTS
        assert [row["prompt"] for row in group.rows] == [t.prompt for t in group.tickets]


def test_unscorable_rollouts_are_failures_not_zeros(tmp_path: Path) -> None:
    def reward(completion_ids: list[list[int]], **_: Any) -> list[float | None]:
        return [None if i % GROUP == 0 else float(i % 2) for i in range(len(completion_ids))]

    curriculum = Traced(seed=0)
    make_trainer(tmp_path, curriculum=curriculum, reward=reward, max_steps=1).train()
    assert curriculum.metrics()["failed"] == PROMPTS
    assert curriculum.metrics()["rollouts"] == PROMPTS * (GROUP - 1)


def test_several_reward_functions_are_summed_by_weight(tmp_path: Path) -> None:
    def half(completion_ids: list[list[int]], **_: Any) -> list[float]:
        return [0.5] * len(completion_ids)

    groups: list[Any] = []
    trainer = make_trainer(
        tmp_path,
        reward=[half, toy_reward],
        reward_weights=[1.0, 0.5],
        max_steps=1,
        extra={"group_observers": [groups.append]},
    )
    trainer.train()
    assert set(groups[0].rewards.ravel()) <= {0.5, 1.0}
