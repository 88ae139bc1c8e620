"""What the options of a run make of TRL's arguments."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import torch

import rollwise.training.run  # noqa: F401  (before its part, which imports it)
from rollwise.errors import ConfigError
from rollwise.tasks import make_task
from rollwise.training.arguments import check_trainer_options, trainer_arguments
from rollwise.training.config import TrainConfig
from rollwise.training.trainer.ranks import without_gpu


@pytest.mark.parametrize(
    ("trainer", "options", "said"),
    [
        ("grpo", {}, ""),
        ("grpo", {"num_iterations": 2}, ""),
        ("grpo", {"steps_per_generation": 4}, "a generation of 16 prompts and an optimiser step of 4"),
        ("rloo", {"steps_per_generation": 2}, "a generation of 8 prompts and an optimiser step of 4"),
        ("grpo", {"gradient_accumulation_steps": 2}, "a generation of 8 prompts and an optimiser step of 8"),
    ],
)
def test_a_generation_of_another_size_than_prompts_per_step_is_said(
    trainer: Any, options: dict[str, Any], said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = TrainConfig(
        task="reversal", prompts_per_step=4, num_generations=2, trainer=trainer, trainer_options=options
    )
    with caplog.at_level(logging.WARNING, "rollwise"):
        trainer_arguments(config, make_task("reversal"), tmp_path, begun=False)
    messages = [record.getMessage() for record in caplog.records if "a generation of" in record.getMessage()]
    assert bool(messages) == bool(said)
    assert all(said in message for message in messages)


@pytest.mark.parametrize(
    ("name", "value", "option"),
    [
        ("num_train_epochs", 3, "steps"),
        ("shuffle_dataset", False, "curriculum"),
        ("resume_from_checkpoint", "x", "resume"),
        ("data_seed", 7, "seed"),
    ],
)
def test_fields_that_a_run_ignores_are_refused(name: str, value: Any, option: str, tmp_path: Path) -> None:
    """Steps end a run, and the curriculum orders the prompts, whatever these say; a run that has them goes on."""
    config = TrainConfig(task="reversal", trainer_options={name: value})
    with pytest.raises(ConfigError, match=f"trainer_options can't have '{name}': give --{option} instead"):
        trainer_arguments(config, make_task("reversal"), tmp_path, begun=False)
    trainer_arguments(config, make_task("reversal"), tmp_path, begun=True)


def test_weights_that_are_given_twice_are_refused(tmp_path: Path) -> None:
    """Those of `trainer_options` had no effect, though these override the run's options."""
    (tmp_path / "a.jsonl").write_text('{"prompt": "1+1=", "answer": "2"}\n')
    given = {
        "data": str(tmp_path / "a.jsonl"),
        "reward": ["exact", "boxed"],
        "trainer_options": {"reward_weights": [3, 4]},
    }
    check_trainer_options(TrainConfig(**given))
    with pytest.raises(ConfigError, match="both weigh the rewards; leave one out"):
        check_trainer_options(TrainConfig(**given, reward_weights=[1, 2]))
    check_trainer_options(TrainConfig(**given, reward_weights=[1, 2]), begun=True)


def test_that_a_model_s_own_code_is_not_run_is_said(tmp_path: Path) -> None:
    """It was not handed on, and transformers asked for what had been given."""
    config = TrainConfig(task="reversal", trainer_options={"trust_remote_code": True})
    with pytest.raises(ConfigError, match=r"'trust_remote_code': .* by rollwise.models.load_policy\(MODEL, trust_"):
        trainer_arguments(config, make_task("reversal"), tmp_path, begun=False)
    config.trainer_options["trust_remote_code"] = False
    trainer_arguments(config, make_task("reversal"), tmp_path, begun=False)


def test_a_gpu_is_left_alone_where_accelerate_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert not without_gpu()
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    assert without_gpu()
