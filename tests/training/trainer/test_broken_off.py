"""A training that is broken off within a step: what is saved then, and what a second training finds."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from toys import CONFIGS, PROMPTS, Traced, flat_parameters, make_trainer, toy_dataset
from transformers import TrainerCallback
from transformers.trainer_jit_checkpoint import CheckpointManager, JITCheckpointCallback
from trl import GRPOConfig

from rollwise.training import CurriculumGRPOTrainer


class Interrupted(TrainerCallback):
    """Ctrl-C once, in the update of a step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step + 1 == self.step:
            self.step = 0
            raise KeyboardInterrupt


class Terminated(JITCheckpointCallback):
    """transformers' own for SIGTERM, told of it within a step."""

    def __init__(self, trainer: Any, step: int) -> None:
        self.jit_manager, self.step = CheckpointManager(trainer), step

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.jit_manager.is_checkpoint_requested = state.global_step + 1 == self.step
        super().on_pre_optimizer_step(args, state, control, **kwargs)


def make(tmp_path: Path, **options: Any) -> Any:
    options = {"max_steps": 4, "save_strategy": "steps", "save_steps": 2, **options}
    extra = {"run": tmp_path / "run", **options.pop("extra", {})}
    return make_trainer(tmp_path / "out", curriculum=Traced(seed=3, retest_every=2), extra=extra, **options)


def lines_of(folder: Path, name: str = "metrics.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


@pytest.mark.parametrize("resume", [True, None])
def test_the_second_training_logs_each_step_once(tmp_path: Path, resume: bool | None) -> None:
    trainer = make(tmp_path, extra={"callbacks": [Interrupted(3)]})
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    trainer.train(resume_from_checkpoint=resume)
    assert [line["step"] for line in lines_of(tmp_path / "run")] == [1, 2, 3, 4]
    assert all("loss" in line for line in lines_of(tmp_path / "run"))
    if resume:
        straight = make(tmp_path / "straight")
        straight.train()
        assert torch.equal(flat_parameters(trainer), flat_parameters(straight))


def test_an_evaluation_after_it_is_kept(tmp_path: Path) -> None:
    trainer = make(tmp_path, extra={"callbacks": [Interrupted(3)]}, eval_dataset=toy_dataset(4))
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    score = trainer.evaluate()["eval_pass@1"]
    assert lines_of(tmp_path / "run")[-1]["eval/pass@1"] == pytest.approx(score, abs=1e-6)


def test_the_prompts_that_were_in_flight_can_be_asked_again(tmp_path: Path) -> None:
    """A pool in which a step would find too few others."""
    broken = [True]

    def reward(completions: list[str], **_: Any) -> list[float]:
        if broken.pop() if broken else False:
            raise RuntimeError("the scorer is down")
        return [float(len(text) % 2) for text in completions]

    trainer = make_trainer(tmp_path, reward=reward, dataset=toy_dataset(PROMPTS + 1), max_steps=2)
    with pytest.raises(RuntimeError, match="down"):
        trainer.train()
    assert trainer.curriculum.metrics()["open"] == PROMPTS
    trainer.train()
    assert trainer.state.global_step == 2
    assert trainer.curriculum.metrics()["open"] == 0


def test_the_second_training_begins_with_rollouts_of_its_own(tmp_path: Path) -> None:
    """Not with what the first one left, whose steps would no longer end where a generation does."""
    events: list[str] = []

    class Noting(CurriculumGRPOTrainer):
        def _generate_and_score_completions(self, inputs: Any) -> Any:
            events.append("generated")
            return super()._generate_and_score_completions(inputs)

        def training_step(self, *args: Any, **kwargs: Any) -> Any:
            loss = super().training_step(*args, **kwargs)
            events.append("trained")
            return loss

    class Broken(TrainerCallback):
        def on_substep_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if len(events) == 2:
                raise KeyboardInterrupt

    CONFIGS[Noting] = GRPOConfig
    trainer = make_trainer(tmp_path, kind=Noting, accumulate=2, max_steps=2, extra={"callbacks": [Broken()]})
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    events.clear()
    trainer.remove_callback(Broken)
    trainer.train()
    assert events == ["generated", "trained", "trained"] * 2


def test_a_checkpoint_asked_for_within_a_step_is_written_at_its_end(tmp_path: Path) -> None:
    straight = make(tmp_path / "straight")
    straight.train()
    trainer = make(tmp_path)
    trainer.add_callback(Terminated(trainer, 3))
    trainer.train()
    assert trainer.state.global_step == 3
    assert (tmp_path / "out/checkpoint-3").is_dir()
    again = make(tmp_path, extra={"callbacks": [Interrupted(4)]})
    for _ in range(2):  # killed once more before the next checkpoint
        try:
            again.train(resume_from_checkpoint=True)
        except KeyboardInterrupt:
            again = make(tmp_path)
        else:
            break
    assert again.resumed_from.name == "checkpoint-3"
    assert [line["step"] for line in lines_of(tmp_path / "run")] == [1, 2, 3, 4]
    assert torch.equal(flat_parameters(again), flat_parameters(straight))
    assert again.curriculum.metrics() == straight.curriculum.metrics()
