"""Evaluations at multiples of generated tokens, and the larger one at the end of a run."""

import json
from pathlib import Path
from typing import Any

import pytest

from rollwise.errors import ConfigError
from rollwise.models import EmbeddedConfig, embedded_policy
from rollwise.runs.evaluations import read_evaluations
from rollwise.tasks import make_task
from rollwise.training.config import TrainConfig
from rollwise.training.cost import Estimate
from rollwise.training.evaluations import Evaluations
from rollwise.training.run import resume_run, start_run

TINY = EmbeddedConfig(hidden_size=16, num_layers=1, num_heads=2, intermediate_size=32, num_demos=200, sft_steps=8)
EVERY = 150


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return embedded_policy(make_task("reversal", longest=4), config=TINY, cache_dir=tmp_path_factory.mktemp("cache"))


def config(policy: Path, out: Path, **options: Any) -> TrainConfig:
    values = {
        "task": "reversal", "task_options": {"longest": 4}, "model": str(policy), "curriculum": "uniform",
        "steps": 60, "prompts_per_step": 4, "num_generations": 4, "num_prompts": 40, "eval_prompts": 4,
        "num_generations_eval": 2, "save_every": 2, "out": str(out), "token_budget": 700,
        "eval_every_tokens": EVERY, "eval_prompts_end": 6, "num_generations_end": 4,
    }  # fmt: skip
    return TrainConfig.from_dict({**values, **options})


def metrics(run: Path) -> list[dict[str, Any]]:
    clocks = {"time", "wall_s"}
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in clocks and "time/" not in k and "_s" not in k} for line in lines]


@pytest.fixture(scope="module")
def straight(policy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return start_run(config(policy, tmp_path_factory.mktemp("straight") / "run"))


def test_it_evaluates_at_the_first_step_at_or_after_each_multiple(straight: Path) -> None:
    lines = metrics(straight)
    tokens = [line["tokens"] for line in lines]
    due = {next(i for i, n in enumerate(tokens) if n >= multiple) for multiple in range(0, 601, EVERY)}
    assert {i for i, line in enumerate(lines) if "eval/pass@1" in line} == due | {len(lines) - 1}
    assert len(due) == 5
    assert tokens[-2] < 700 <= tokens[-1]


def test_the_evaluation_at_the_end_has_its_own_size_and_names(straight: Path) -> None:
    *before, last = metrics(straight)
    assert not [key for line in before for key in line if key.startswith("end/")]
    ends = {key for key in last if key.startswith("end/")}
    assert ends == {"end/pass@1", "end/pass@2", "end/pass@4", "end/reward"}
    assert {key for key in last if key.startswith("eval/")} == {"eval/pass@1", "eval/pass@2", "eval/reward"}
    assert (last["end/pass@1"] * 24) == pytest.approx(round(last["end/pass@1"] * 24))  # 6 prompts, 4 rollouts
    assert {len(one.ids) for one in read_evaluations(straight)} == {4}


def test_a_run_that_was_killed_in_it_makes_it_again(
    policy: Path, straight: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(self: Evaluations) -> None:
        if self._over:
            raise KeyboardInterrupt

    whole = config(policy, tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(Evaluations, "_evaluate_end", killed)
        with pytest.raises(KeyboardInterrupt):
            start_run(whole)
    assert "end/pass@1" not in metrics(whole.folder)[-1]
    resume_run(whole.folder)
    assert metrics(whole.folder) == metrics(straight)


def test_no_method_rolls_a_held_out_prompt_out(straight: Path) -> None:
    rolled = {json.loads(line)["prompt_id"] for line in (straight / "rollouts.jsonl").read_text().splitlines()}
    held_out = {prompt for one in read_evaluations(straight) for prompt in one.ids}
    assert len(rolled) > 20
    assert len(held_out) == 4
    assert not rolled & held_out


def test_cost_counts_them_at_most() -> None:
    given = {"task": "reversal", "steps": 10, "prompts_per_step": 4, "num_generations": 4, "eval_every_tokens": 500}
    cost = Estimate(prompt=3.0, limit=10, held_out=8, at_end=100).of(TrainConfig.from_dict(given))
    trained, scored, end = 10 * 16, (1 + 1600 // 500 + 1) * 8 * 4, 100 * 8  # before the first step, and after the last
    assert cost.rollouts == trained + scored + end


@pytest.mark.parametrize(("steps", "evaluations"), [(10, 2), (11, 3), (5, 2)])
def test_the_evaluation_after_the_last_step_is_counted(steps: int, evaluations: int) -> None:
    given = {"task": "reversal", "steps": steps, "prompts_per_step": 4, "num_generations": 4, "eval_every": 10}
    cost = Estimate(prompt=3.0, limit=10, held_out=8).of(TrainConfig.from_dict(given))
    assert cost.rollouts == steps * 16 + evaluations * 8 * 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"eval_every_tokens": 0}, "eval_every_tokens must be a whole number >= 1 or None, got 0"),
        ({"eval_prompts_end": -1}, "eval_prompts_end must be a whole number >= 0, got -1"),
        ({"num_generations_end": 0}, "num_generations_end must be a whole number >= 1, got 0"),
        ({"eval_prompts_end": 8, "eval_prompts": 0}, "eval_prompts_end 8 needs evaluations: give eval_prompts above 0"),
        ({"eval_every_tokens": 8, "eval_prompts": 0}, "eval_every_tokens 8 needs evaluations"),
    ],
)
def test_what_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        TrainConfig.from_dict({"task": "reversal", **options})
