"""A resumed run is the uninterrupted run: same prompts, same rewards, same weights."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from toys import Traced, flat_parameters, make_trainer, toy_dataset, toy_model
from transformers import LlamaConfig, LlamaForCausalLM

import rollwise as rw
from rollwise.state import load_state, save_state
from rollwise.training import CurriculumGRPOTrainer, CurriculumRLOOTrainer
from rollwise.training.trainer.checkpoint import SEAL, flaw, latest_complete, seal
from rollwise.training.trainer.checkpoint_mixin import CheckpointMixin

CASES = [
    pytest.param(CurriculumGRPOTrainer, {"save_steps": 3}, id="grpo"),
    pytest.param(CurriculumGRPOTrainer, {"save_steps": 3, "accumulate": 2}, id="grpo-accumulate"),
    pytest.param(CurriculumGRPOTrainer, {"save_steps": 3, "steps_per_generation": 2}, id="grpo-saved-midway"),
    pytest.param(
        CurriculumGRPOTrainer,
        {"save_steps": 3, "steps_per_generation": 2, "num_iterations": 2},
        id="grpo-reused-midway",
    ),
    pytest.param(CurriculumRLOOTrainer, {"save_steps": 3, "accumulate": 2}, id="rloo"),
]


def run(out: Path, resume: Any = None, **options: Any) -> Any:
    trainer = make_trainer(
        out, max_steps=6, save_strategy="steps", curriculum=Traced(seed=3, retest_every=2), **options
    )
    trainer.train(resume_from_checkpoint=resume)
    return trainer


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_resume_is_exact(kind: type, options: dict[str, Any], tmp_path: Path) -> None:
    straight = run(tmp_path / "straight", kind=kind, **options)
    shutil.copytree(tmp_path / "straight/checkpoint-3", tmp_path / "again/checkpoint-3")
    resumed = run(tmp_path / "again", resume=True, kind=kind, **options)
    later = len(resumed.curriculum.trace)
    assert later > 0
    assert resumed.curriculum.trace == straight.curriculum.trace[-later:]
    assert torch.equal(flat_parameters(resumed), flat_parameters(straight))
    # the open counters and beliefs too, whatever TRL's own logs say
    assert resumed.curriculum.state_dict() == straight.curriculum.state_dict()


def test_evaluation_does_not_disturb_training(tmp_path: Path) -> None:
    plain = make_trainer(tmp_path / "a", max_steps=4)
    plain.train()
    held_out = toy_dataset(4)
    watched = make_trainer(tmp_path / "b", max_steps=4, eval_dataset=held_out, eval_strategy="steps", eval_steps=1)
    watched.train()
    assert torch.equal(flat_parameters(plain), flat_parameters(watched))
    assert plain.curriculum.trace == watched.curriculum.trace
    scores = [line["eval_pass@1"] for line in watched.state.log_history if "eval_pass@1" in line]
    assert len(scores) == 4
    assert all(0 <= s <= 1 for s in scores)


def test_the_same_evaluation_twice_gives_the_same_score(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, eval_dataset=toy_dataset(8))
    assert trainer.evaluate()["eval_reward"] == trainer.evaluate()["eval_reward"]


def test_a_torn_checkpoint_is_passed_over(tmp_path: Path) -> None:
    run(tmp_path, save_steps=2)
    newest = tmp_path / "checkpoint-6"
    (newest / SEAL).unlink()
    assert latest_complete(tmp_path) == tmp_path / "checkpoint-4"
    weights = tmp_path / "checkpoint-4/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    assert "bytes where" in (flaw(tmp_path / "checkpoint-4") or "")
    assert latest_complete(tmp_path) == tmp_path / "checkpoint-2"
    with pytest.raises(rw.StateFileError, match="no seal"):
        run(tmp_path, resume=str(newest), save_steps=2)
    (tmp_path / "checkpoint-2" / SEAL).unlink()
    with pytest.raises(rw.StateFileError, match="checkpoint-4: its file model.safetensors has"):
        run(tmp_path, resume=True, save_steps=2)


def test_older_checkpoints_go_only_when_the_newer_is_whole(tmp_path: Path) -> None:
    run(tmp_path, save_steps=2, save_total_limit=1)
    assert [p.name for p in tmp_path.glob("checkpoint-*")] == ["checkpoint-6"]
    assert flaw(tmp_path / "checkpoint-6") is None

    class Killed(CurriculumGRPOTrainer):
        def _seal(self, folder: Path, *, midway: bool) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer = make_trainer(tmp_path, max_steps=8, save_strategy="steps", save_steps=8, save_total_limit=1)
        trainer.__class__ = Killed
        trainer.train(resume_from_checkpoint=True)
    assert latest_complete(tmp_path) == tmp_path / "checkpoint-6"


def test_a_changed_data_set_is_joined_by_id(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run(tmp_path, save_steps=3)
    before = rw.load_state(tmp_path / "checkpoint-6/rollwise_state.json")["curriculum"]
    rows = [*toy_dataset(24)][4:][::-1] + [{"prompt": "new", "threshold": 0, "difficulty": 0.0}]
    trainer = make_trainer(tmp_path, max_steps=8, dataset=type(toy_dataset()).from_list(rows), save_strategy="no")
    trainer.train(resume_from_checkpoint=True)
    assert (trainer.curriculum.metrics()["state_added"], trainer.curriculum.metrics()["state_dropped"]) == (1, 4)
    assert "data set has changed" in caplog.text
    assert trainer.curriculum.metrics()["asked"] == before["body"]["counters"]["asked"] + 8


def test_a_foreign_or_damaged_curriculum_state_stops_the_resume(tmp_path: Path) -> None:
    run(tmp_path, save_steps=6)
    state = tmp_path / "checkpoint-6/rollwise_state.json"
    good = state.read_bytes()
    state.write_bytes(good.replace(b"t", b"T", 400)[: len(good)])
    with pytest.raises(rw.StateFileError):
        run(tmp_path, resume=True, save_steps=6)
    state.write_bytes(good)
    trainer = make_trainer(tmp_path, curriculum=rw.Uniform(seed=0), max_steps=8)
    with pytest.raises(rw.StateError, match="Traced"):
        trainer.train(resume_from_checkpoint=True)
    seal = json.loads((tmp_path / "checkpoint-6" / SEAL).read_text())
    assert "rollwise_state.json" in seal["files"]


def test_a_checkpoint_that_aborted_rollouts_is_refused(tmp_path: Path) -> None:
    run(tmp_path, save_steps=3)
    checkpoint = tmp_path / "checkpoint-3"
    file = checkpoint / "rollwise_state.json"
    state = load_state(file)
    save_state(file, {**state, "abort": {"generations": 3}})
    seal(checkpoint)
    with pytest.raises(rw.StateError, match="training-time abort, which was removed; pass the checkpoint as the model"):
        run(tmp_path, resume=str(checkpoint), save_steps=3)


def test_between_two_steps_on_the_same_rollouts_the_rhythm_must_be_the_same(tmp_path: Path) -> None:
    run(tmp_path, save_steps=3, steps_per_generation=2)
    shutil.rmtree(tmp_path / "checkpoint-6")
    with pytest.raises(rw.StateFileError, match="on the same rollouts with .*, now it"):
        run(tmp_path, resume=True, save_steps=3, steps_per_generation=4)


def test_a_course_that_is_given_up_is_put_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run(tmp_path, save_steps=2)
    trainer = make_trainer(tmp_path, max_steps=4, save_strategy="steps", save_steps=1, learning_rate=5e-4)
    trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert "given-up-checkpoint-6" in caplog.text
    assert flaw(tmp_path / "given-up-checkpoint-6") is None
    assert latest_complete(tmp_path) == tmp_path / "checkpoint-4"


def test_what_is_refused_puts_nothing_aside(tmp_path: Path) -> None:
    run(tmp_path, save_steps=2)
    trainer = make_trainer(tmp_path, max_steps=8, extra={"gate": rw.DynamicSampling()})
    with pytest.raises(rw.StateError, match="was trained without a gate"):
        trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoint-2", "checkpoint-4", "checkpoint-6"]


def test_weights_alone_are_not_resumed(tmp_path: Path) -> None:
    """Not in silence with a new optimizer, and the learning rate of the first step."""
    run(tmp_path, save_steps=6, save_only_model=True)
    for resume in (True, str(tmp_path / "checkpoint-6")):
        with pytest.raises(rw.StateFileError, match="weights alone, without the optimizer's state .save_only_model"):
            run(tmp_path, resume=resume, save_steps=6)
    with pytest.raises(rw.StateFileError, match="there is no such folder"):
        run(tmp_path, resume=str(tmp_path / "nowhere"), save_steps=6)


def test_who_begins_anew_beside_checkpoints_is_told_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run(tmp_path, save_steps=6)
    assert "begins anew" not in caplog.text
    run(tmp_path, save_steps=6)
    assert "would go on with checkpoint-6" in caplog.text


def test_a_finished_run_is_not_trained_a_step_more(tmp_path: Path) -> None:
    run(tmp_path, save_steps=3)
    with pytest.raises(rw.StateFileError, match="all 6 steps of max_steps: there is nothing to resume"):
        run(tmp_path, resume=True, save_steps=3)


def test_a_reference_that_follows_the_policy_is_resumed_too(tmp_path: Path) -> None:
    toy_model().save_pretrained(tmp_path / "policy")
    moving = {"beta": 0.5, "sync_ref_model": True, "ref_model_sync_steps": 1, "save_steps": 3}
    moving["model"] = str(tmp_path / "policy")
    straight = run(tmp_path / "straight", **moving)
    shutil.copytree(tmp_path / "straight/checkpoint-3", tmp_path / "again/checkpoint-3")
    resumed = run(tmp_path / "again", resume=True, **moving)
    assert torch.equal(flat_parameters(resumed), flat_parameters(straight))


def test_a_reference_that_can_not_be_saved_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    toy_model().save_pretrained(tmp_path / "policy")
    moving: dict[str, Any] = {"beta": 0.5, "sync_ref_model": True, "ref_model_sync_steps": 1, "save_steps": 3}
    run(tmp_path, model=str(tmp_path / "policy"), **moving)
    shutil.rmtree(tmp_path / "checkpoint-6")
    trainer = make_trainer(
        tmp_path, model=str(tmp_path / "policy"), max_steps=4, curriculum=Traced(seed=3, retest_every=2), **moving
    )
    trainer._is_sharded = lambda: True
    trainer.train(resume_from_checkpoint=True)
    assert "checkpoint-3 has no reference model" in caplog.text


def test_a_curriculum_goes_on_in_a_second_training(tmp_path: Path) -> None:
    """Its clock runs on, and a resume of the second one is exact."""
    curriculum = Traced(seed=3, retest_every=2)
    first = make_trainer(tmp_path / "first", max_steps=3, curriculum=curriculum)
    first.train()
    state = first.curriculum.state_dict()

    def second(folder: Path, resume: bool | None = None) -> Any:
        own = Traced(seed=3, retest_every=2)
        trainer = make_trainer(folder, max_steps=4, save_strategy="steps", save_steps=2, curriculum=own)
        own.load_state_dict(state)
        trainer.train(resume_from_checkpoint=resume)
        return trainer

    straight = second(tmp_path / "second")
    assert straight.curriculum.step == 3 + 4
    shutil.copytree(tmp_path / "second/checkpoint-2", tmp_path / "again/checkpoint-2")
    resumed = second(tmp_path / "again", resume=True)
    assert resumed.curriculum.state_dict() == straight.curriculum.state_dict()
    first.train()
    assert first.curriculum.step == 6


def test_a_score_counts_each_prompt_once_whatever_the_batches(tmp_path: Path) -> None:
    """10 prompts in batches of 8 and 2: the second batch's mean is not half of the score."""
    known = iter([0.0] * 32 + [1.0] * 8)

    def reward(completions: list[str], **_: Any) -> list[float]:
        return [next(known) for _ in completions]

    trainer = make_trainer(tmp_path, reward=reward, eval_dataset=toy_dataset(10), per_device_eval_batch_size=32)
    scores = trainer.evaluate()
    assert scores["eval_pass@1"] == scores["eval_reward"] == pytest.approx(0.2)


def test_a_checkpoint_by_another_name_is_resumed_too(tmp_path: Path) -> None:
    run(tmp_path / "first", save_steps=3)
    best = shutil.copytree(tmp_path / "first/checkpoint-3", tmp_path / "best")
    assert run(tmp_path / "second", resume=str(best), save_steps=3).state.global_step == 6


def test_a_torn_checkpoint_is_not_put_aside(tmp_path: Path) -> None:
    run(tmp_path, save_steps=2)
    (tmp_path / "checkpoint-6" / SEAL).unlink()
    (tmp_path / "checkpoint-6/rollwise_judgments_0.pt").write_bytes(b"of the torn one")  # would be sealed and loaded
    run(tmp_path, resume=True, save_steps=2)
    assert not (tmp_path / "checkpoint-6/rollwise_judgments_0.pt").exists()
    assert flaw(tmp_path / "checkpoint-6") is None
    assert not list(tmp_path.glob("given-up-*"))


@pytest.mark.parametrize("tied", [True, False])
def test_tied_weights_are_not_said_to_be_missing(tied: bool) -> None:
    """A checkpoint holds one of the two: users took transformers' warning of the other for a fault."""

    class Loading:
        def _issue_warnings_after_load(self, load_result: Any) -> None:
            self.missing = load_result.missing_keys

    class Trainer(CheckpointMixin, Loading):
        pass

    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    config = LlamaConfig(vocab_size=16, tie_word_embeddings=tied, **sizes)
    trainer: Any = Trainer.__new__(Trainer)
    trainer.model = LlamaForCausalLM(config)
    kept = trainer.model.state_dict()
    del kept["lm_head.weight"], kept["model.norm.weight"]
    trainer._issue_warnings_after_load(trainer.model.load_state_dict(kept, strict=False))
    assert trainer.missing == ["model.norm.weight", *([] if tied else ["lm_head.weight"])]
