"""Rollouts without an advantage are left out of the update, and it is the same."""

import json
import math
from pathlib import Path
from typing import Any, get_args

import pytest
import torch
from own import maths_file, tiny_model
from toys import flat_parameters, make_trainer, rows_of_updates, saved_model

import rollwise as rw
from rollwise.cli import main
from rollwise.training import CurriculumGRPOTrainer, CurriculumRLOOTrainer, RunFolder
from rollwise.training.config import TrainConfig
from rollwise.training.generation.losses import Normalization, weight_of_kept
from rollwise.training.notes import needless

SMALL = {"max_steps": 3, "optim": "sgd", "learning_rate": 0.5, "save_strategy": "no"}


def trained(folder: Path, *, skip: bool, **options: Any) -> tuple[Any, list[int]]:
    """A trainer after its run, and how many rows each forward pass of the loss had."""
    extra = {"skip_zero_advantage": skip, **options.pop("extra", {})}
    trainer = make_trainer(folder, curriculum=rw.Uniform(seed=3), extra=extra, **{**SMALL, **options})
    rows = rows_of_updates(trainer)
    trainer.train()
    return trainer, rows


def losses(trainer: Any) -> list[float]:
    return [line["loss"] for line in trainer.state.log_history if "loss" in line]


CASES: dict[str, dict[str, Any]] = {
    **{name: {"loss_type": name} for name in ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo")},
    "vespo": {"loss_type": "vespo"},
    "std": {"scale_rewards": "group"},
    "micro-batches": {"loss_type": "grpo", "accumulate": 4},
    "micro-batches of one rollout": {"loss_type": "dapo", "accumulate": 16},
    "two updates of a generation": {"num_iterations": 2},
    "half a generation an update": {"steps_per_generation": 4, "accumulate": 2},
    "truncated rollouts masked": {"mask_truncated_completions": True, "loss_type": "bnpo"},
    "rloo": {"kind": CurriculumRLOOTrainer},
    "rloo, micro-batches": {"kind": CurriculumRLOOTrainer, "accumulate": 4},
}


@pytest.mark.parametrize("case", CASES)
def test_the_update_is_the_same_and_reads_fewer_rollouts(case: str, tmp_path: Path) -> None:
    whole, all_rows = trained(tmp_path / "whole", skip=False, **CASES[case])
    less, rows = trained(tmp_path / "less", skip=True, **CASES[case])
    assert flat_parameters(less).numpy() == pytest.approx(flat_parameters(whole).numpy(), abs=2e-6)
    assert losses(less) == pytest.approx(losses(whole), abs=2e-6)
    assert len(rows) <= len(all_rows)
    assert sum(rows) < sum(all_rows)


def test_micro_batches_without_any_advantage_are_not_read(tmp_path: Path) -> None:
    """Micro-batches of one rollout: as many are read as have an advantage, and at most one more a step."""
    trainer = make_trainer(
        tmp_path, curriculum=rw.Uniform(seed=3), extra={"skip_zero_advantage": True}, accumulate=16, **SMALL
    )
    rows, kept = rows_of_updates(trainer), []
    generate = trainer._generate_and_score_completions

    def noted(inputs: Any) -> Any:
        made = generate(inputs)
        kept.append(int((made["advantages"].abs() > 1e-6).sum()))
        return made

    trainer._generate_and_score_completions = noted
    trainer.train()
    assert set(rows) == {1}
    assert sum(kept) <= len(rows) <= sum(kept) + 3 < 3 * 16


def test_a_step_without_any_advantage_is_a_step_of_the_optimiser(tmp_path: Path) -> None:
    """Its gradient is 0, and Adam's means of before move the weights on, as they do without the option."""

    def reward(completion_ids: list[list[int]], **_: Any) -> list[float]:
        calls.append(len(completion_ids))
        return [0.1 if len(calls) > 1 else float(ids[0] < 20) for ids in completion_ids]

    found = []
    for skip in (False, True):
        calls: list[int] = []
        adam = {"optim": "adamw_torch", "learning_rate": 0.01}
        trainer, rows = trained(tmp_path / str(skip), skip=skip, reward=reward, loss_type="grpo", **adam)
        found.append((flat_parameters(trainer), rows))
    assert found[1][1][1:] == [1, 1]
    assert found[1][0].numpy() == pytest.approx(found[0][0].numpy(), abs=1e-5)


@pytest.mark.parametrize(
    ("advantages", "last", "rows"),
    [
        ([0.0, 0.5, -0.5, 1e-8], True, [1, 2]),
        ([0.0, 0.0, 0.0, 0.0], True, [0]),  # a step's last backward pass there must be
        ([0.0, 0.0, 0.0, 0.0], False, []),
        ([0.5, 0.5, 0.5, 0.5], True, [0, 1, 2]),  # the last one has no token in the loss
        ([0.0, math.nan, 0.5, 0.0], False, [0, 1, 2]),
    ],
)
def test_rows_by_hand(advantages: list[float], last: bool, rows: list[int], tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, curriculum=rw.Uniform(), extra={"skip_zero_advantage": True})
    inputs = {"advantages": torch.tensor(advantages), "completion_mask": torch.tensor([[1], [1], [1], [0]])}
    trainer._buffered_inputs = [inputs]
    trainer.accelerator.gradient_state._set_sync_gradients(last)
    assert trainer._rows_to_train(inputs).tolist() == rows


def test_weights_by_hand() -> None:
    """Of three rollouts of 2, 4 and 6 tokens, the first and the last are kept; limits do not matter."""
    whole = torch.tensor([[1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])
    kept = whole[[0, 2]]
    shares = {over: weight_of_kept(over, kept, whole) for over in get_args(Normalization)}
    assert shares == pytest.approx(
        {"sum": 2 / 3, "rollout": 2 / 3, "longest": 2 / 3, "micro-batch": 8 / 12, "generation": 1.0}
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"beta": 0.1}, "beta other than 0 adds the divergence"),
        ({"entropy_coef": 0.01}, "an entropy bonus is of all of them"),
        ({"use_adaptive_entropy": True}, "an entropy bonus is of all of them"),
        ({"top_entropy_quantile": 0.2}, "top_entropy_quantile chooses among the tokens"),
    ],
)
def test_losses_with_other_terms_are_refused(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    model = saved_model(tmp_path / "model")  # beta loads it again, as the reference
    with pytest.raises(rw.ConfigError, match=f"skip_zero_advantage leaves rollouts out of the loss, but {words}"):
        make_trainer(tmp_path, curriculum=rw.Uniform(), extra={"skip_zero_advantage": True}, model=model, **options)


def test_the_divergence_of_rloo_is_in_its_rewards(tmp_path: Path) -> None:
    model = saved_model(tmp_path / "model")
    extra = {"skip_zero_advantage": True}
    make_trainer(tmp_path, kind=CurriculumRLOOTrainer, curriculum=rw.Uniform(), extra=extra, beta=0.1, model=model)


def test_images_are_refused(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, curriculum=rw.Uniform(), extra={"skip_zero_advantage": True})
    trainer.model.train()
    with pytest.raises(rw.ConfigError, match="takes rollouts out of a batch.*'pixel_values'.*without skip_zero"):
        trainer.compute_loss(trainer.model, {"pixel_values": torch.zeros(1)})


def test_what_is_not_read_is_not_charged(tmp_path: Path) -> None:
    """FLOPs count the tokens that an update has read."""
    read = []
    for skip in (False, True):
        run = tmp_path / str(skip)
        trained(tmp_path / f"checkpoints-{skip}", skip=skip, extra={"run": run}, kind=CurriculumGRPOTrainer)
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        read.append(sum(line.get("compute/trained", 0) for line in lines))
    assert 0 < read[1] < read[0]


@pytest.mark.parametrize(("options", "said"), [({}, True), ({"skip_zero_advantage": True}, False)])
def test_a_run_says_how_much_of_its_updates_was_needless(options: dict[str, Any], said: bool, tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text(
        '{"step": 0, "eval/pass@1": 0.5}\n{"step": 1, "zero_advantage": 0.25}\n{"step": 2, "zero_advantage": 0.75}\n'
    )
    notes = needless(TrainConfig(task="reversal", **options), RunFolder(tmp_path))
    assert [note.partition(" of the rollouts had an advantage of 0; ")[0] for note in notes] == ["50%"] * said


def test_a_run_of_the_command_leaves_them_out(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    maths_file(tmp_path)
    given = [
        *("train", "--data", str(tmp_path / "maths.jsonl"), "--prompt_column", "problem", "--reward", "exact"),
        *("--model", str(tiny_model(tmp_path / "tiny")), "--prompts_per_step", "4", "--num_generations", "2"),
        *("--eval_prompts", "0", "--learning_rate", "1e-5", "--max_completion_length", "4", "--steps", "1"),
    ]
    read = {}
    for skip in ("false", "true"):
        assert main([*given, "--skip_zero_advantage", skip, "--out", str(tmp_path / skip)]) == 0
        line = json.loads((tmp_path / skip / "metrics.jsonl").read_text().splitlines()[-1])
        read[skip] = line["compute/trained"]
        assert line["zero_advantage"] == 1.0  # an untrained model gets nothing right
        assert ("100% of the rollouts had an advantage of 0" in capfd.readouterr().err) == (skip == "false")
    assert 0 < read["true"] <= read["false"] / 4  # one of eight is read, so that the step has its backward pass
