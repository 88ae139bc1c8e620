"""Groups of different size through gates, after screenings, and in rounds: what is made, told, charged, trained on."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from allocated import Steep
from gated import NotingGRPO, NotingRLOO
from probing import probing, speed
from toys import flat_parameters

import rollwise as rw
from rollwise.gates import DynamicSampling, MixedOutcome

STEEP = Steep(min_rollouts=1, max_rollouts=9)
ADA = {"name": "reinforce-ada", "round_rollouts": 5, "rounds": 3}
PROGRESSIVE = {"name": "progressive", "rounds": 2}
CASES = [
    pytest.param(NotingGRPO, "gate", STEEP, {"scale_rewards": "group"}, id="gate-grpo"),
    pytest.param(NotingRLOO, "gate", STEEP, {}, id="gate-rloo"),
    pytest.param(NotingGRPO, "screening", STEEP, {"scale_rewards": "none"}, id="screening-grpo"),
    pytest.param(NotingRLOO, "screening", STEEP, {}, id="screening-rloo"),
    pytest.param(NotingGRPO, "rounds", ADA, {"scale_rewards": "none"}, id="ada-grpo"),
    pytest.param(NotingRLOO, "rounds", ADA, {}, id="ada-rloo"),
    pytest.param(NotingGRPO, "rounds", PROGRESSIVE, {"scale_rewards": "none"}, id="progressive-grpo"),
    pytest.param(NotingGRPO, "gate", PROGRESSIVE, {"scale_rewards": "none"}, id="progressive-gate"),
]


def made(out: Path, kind: type, way: str, allocator: Any, **options: Any) -> Any:
    curriculum = speed(allocator=allocator) if way == "screening" else rw.Uniform(seed=3, allocator=allocator)
    gate = {"gate": DynamicSampling(MixedOutcome(), max_rounds=3)} if way == "gate" else {}
    extra = {**gate, **options.pop("extra", {})}
    return probing(out, kind=kind, curriculum=curriculum, extra=extra, **options)


def advantage(rewards: np.ndarray, kind: type, scale: str) -> np.ndarray:
    """Of a whole group."""
    n = len(rewards)
    centred = rewards - rewards.mean()
    if kind is NotingRLOO:
        return centred * n / max(n - 1, 1)
    return centred / (rewards.std(ddof=1) + 1e-4 if n > 1 else 1.0) if scale == "group" else centred


@pytest.mark.parametrize(("kind", "way", "allocator", "options"), CASES)
def test_a_step_trains_on_its_budget_by_the_baselines_of_all_that_was_made(
    kind: type, way: str, allocator: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    seen: list[Any] = []
    extra = {"run": tmp_path / "run"}
    trainer = made(tmp_path, kind, way, allocator, seen=seen, max_steps=2, extra=extra, **options)
    trainer.train()
    screened = 0
    for groups, output in zip(seen, trainer.trained, strict=True):
        wanted, texts = [], []
        for i, n in enumerate(groups.sizes.tolist()):
            assert groups.trained[i] == groups.used[i].any()
            own = advantage(groups.rewards[i, :n], kind, options.get("scale_rewards", ""))
            wanted += own[groups.used[i, :n]].tolist()
            texts += [text for text, used in zip(groups.texts[i], groups.used[i], strict=False) if used]
            told, screening = groups.tickets[i].n_rollouts, groups.screenings[i]
            before = 0 if screening is None else screening.rollouts
            assert told in (None, n - before)
            screened += before
        assert len(wanted) == 16
        assert output["advantages"].numpy() == pytest.approx(np.array(wanted), abs=1e-5)
        assert trainer.processing_class.batch_decode(output["completion_ids"], skip_special_tokens=True) == texts
        assert groups.metrics().get("unused_rollouts", 0.0) == groups.sizes[groups.trained].sum() - 16
    assert len({n for groups in seen for n in groups.sizes.tolist()}) > 1
    assert (screened > 0) == (way == "screening")
    every = sum(int(groups.sizes.sum()) for groups in seen)
    numbers = trainer.curriculum.metrics()
    assert numbers["rollouts"] == every - screened
    noted = trainer.state.log_history[0]
    assert ("reward_std" in noted) == (way == "gate" and allocator is STEEP)
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["rollouts"] == numbers["rollouts"] + numbers["probe_rollouts"]
    groups = [json.loads(line) for line in (tmp_path / "run/rollouts.jsonl").read_text().splitlines()]
    used = [sum(line.get("used", [True] * len(line["rewards"]))) for line in groups if line["trained"]]
    assert sum(used) + screened == 2 * 16 or way == "screening"


@pytest.mark.parametrize(("kind", "way", "allocator", "options"), [CASES[0], CASES[3], CASES[4]])
def test_resumed_it_is_the_uninterrupted_run(
    kind: type, way: str, allocator: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    def run(out: Path, resume: Any = None) -> Any:
        trainer = made(out, kind, way, allocator, max_steps=2, save_strategy="steps", save_steps=1, **options)
        trainer.train(resume_from_checkpoint=resume)
        return trainer

    straight = run(tmp_path / "straight")
    shutil.copytree(tmp_path / "straight/checkpoint-1", tmp_path / "again/checkpoint-1")
    resumed = run(tmp_path / "again", resume=True)
    assert torch.equal(flat_parameters(resumed), flat_parameters(straight))
    assert resumed.curriculum.state_dict() == straight.curriculum.state_dict()


def test_what_was_screened_and_lost_is_made_again(tmp_path: Path) -> None:
    seen: list[Any] = []
    trainer = made(tmp_path, NotingGRPO, "screening", STEEP, seen=seen, max_steps=2, scale_rewards="none")
    forget = lambda groups: trainer._screened.groups.clear()  # noqa: E731
    trainer.group_observers.append(forget)
    trainer.train()
    assert [len(output["advantages"]) for output in trainer.trained] == [16, 16]
    assert any(g.tickets[i].lane == "continue" and s is None for g in seen for i, s in enumerate(g.screenings))
    assert [int(groups.sizes.sum()) for groups in seen] == [16, 16]


def test_rounds_of_more_rollouts_than_a_step_can_have_are_refused(tmp_path: Path) -> None:
    with pytest.raises(rw.ConfigError, match="Progressive makes 4 rounds of at least 2 rollouts a prompt, .* to be 4"):
        made(tmp_path, NotingGRPO, "rounds", {"name": "progressive"})
    with pytest.raises(rw.ConfigError, match="ReinforceAda trains on num_generations=4 .* a round has 3"):
        made(tmp_path, NotingGRPO, "rounds", {"name": "reinforce-ada", "round_rollouts": 3})
