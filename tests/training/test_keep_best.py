"""The checkpoint with the best score: kept however many come after it, through resumes, and found by name."""

import json
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from toys import make_trainer, toy_dataset, toy_reward
from transformers import AutoModelForCausalLM

import rollwise as rw
from rollwise.training import Recorder
from rollwise.training.trainer.keep_best import check_score, metric_name


def best_at(step: int) -> Any:
    """The toy's rewards in training; in evaluations 1 after `step` alone."""

    def reward(prompts: list[str], completions: list[Any], trainer_state: Any, **columns: Any) -> list[float]:
        if prompts[0].startswith("held"):
            return [float(trainer_state.global_step == step)] * len(completions)
        return toy_reward(**columns)

    return reward


def held_out() -> Dataset:
    return toy_dataset(2).map(lambda row: {"prompt": f"held {row['prompt']}"})


def trainer_of(tmp_path: Path, *, best: int = 2, score: str = "pass@1", **options: Any) -> Any:
    defaults: dict[str, Any] = {
        "eval_dataset": held_out(), "eval_strategy": "steps", "eval_steps": 1, "num_generations_eval": 2,
        "save_strategy": "steps", "save_steps": 1, "save_total_limit": 1, "max_steps": 5,
    }  # fmt: skip
    trainer = make_trainer(
        tmp_path / "out", reward=best_at(best), extra={"keep_best": score}, **{**defaults, **options}
    )
    Recorder(tmp_path / "run").attach(trainer)
    return trainer


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("checkpoint-*")}


def test_it_survives_pruning_and_a_resume(tmp_path: Path) -> None:
    out = tmp_path / "out"
    trainer_of(tmp_path).train()
    assert names(out) == {"checkpoint-2", "checkpoint-5"}
    told = {"score": "eval/pass@1", "value": 1.0, "step": 2, "checkpoint": "checkpoint-2"}
    assert json.loads((out / "best.json").read_text()) == told
    assert (out / "best").resolve() == out / "checkpoint-2"
    again = trainer_of(tmp_path, max_steps=7)
    again.train(resume_from_checkpoint=True)
    assert names(out) == {"checkpoint-2", "checkpoint-7"}
    assert json.loads((out / "best.json").read_text()) == told
    best, last = (AutoModelForCausalLM.from_pretrained(out / name) for name in ("best", "checkpoint-7"))
    assert any((a != b).any() for a, b in zip(best.parameters(), last.parameters(), strict=True))


def test_a_better_one_takes_its_place_between_saves(tmp_path: Path) -> None:
    """Step 1 is the best so far, then step 3; neither would have been saved for its own sake."""
    out = tmp_path / "out"
    trainer_of(tmp_path, best=3, save_steps=4, save_total_limit=2).train()
    assert names(out) == {"checkpoint-3", "checkpoint-4", "checkpoint-5"}
    assert (out / "best").resolve() == out / "checkpoint-3"


def test_of_several_sets_one_decides(tmp_path: Path) -> None:
    sets: Any = {"id": held_out(), "ood": held_out()}
    trainer_of(tmp_path, score="eval/ood/pass@2", eval_dataset=sets).train()
    told = json.loads((tmp_path / "out/best.json").read_text())
    assert (told["score"], told["step"]) == ("eval/ood/pass@2", 2)


def test_one_that_is_gone_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The best of the evaluations to come takes its place."""
    out = tmp_path / "out"
    trainer_of(tmp_path).train()
    (out / "checkpoint-2").rename(out / "elsewhere")
    trainer_of(tmp_path, max_steps=6).train(resume_from_checkpoint=True)
    assert "checkpoint-2 had the best pass@1 so far, and is gone" in caplog.text
    assert json.loads((out / "best.json").read_text())["step"] == 6


def test_a_course_that_is_given_up_takes_its_best_along(tmp_path: Path) -> None:
    """Going on from step 1 knows nothing of the best of step 2."""
    out = tmp_path / "out"
    trainer_of(tmp_path, save_total_limit=5).train()
    trainer_of(tmp_path, best=9, max_steps=2, save_total_limit=5).train(
        resume_from_checkpoint=str(out / "checkpoint-1")
    )
    assert json.loads((out / "best.json").read_text())["step"] == 1


@pytest.mark.parametrize("score", ["pass@3", "eval/ood/pass@1", "loss"])
def test_a_score_that_no_evaluation_has(tmp_path: Path, score: str) -> None:
    with pytest.raises(rw.ConfigError, match=r"keep_best must be a score of the evaluations.*eval/pass@1, eval/pass@2"):
        trainer_of(tmp_path, score=score)


def test_without_evaluations(tmp_path: Path) -> None:
    with pytest.raises(rw.ConfigError, match="needs an eval_strategy and a save_strategy"):
        trainer_of(tmp_path, eval_strategy="no")


def test_names() -> None:
    check_score("eval/a.b-c/pass@4", ["a.b-c", "d"], 4)
    assert metric_name("eval/a.b-c/pass@4") == "eval_a.b-c_pass@4"
