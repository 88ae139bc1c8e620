"""What the weights of a policy are held in while `rollwise train` trains it, and what its rewards are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from own import maths_file, tiny_model
from safetensors import safe_open
from toys import make_trainer, toy_dataset
from transformers import AutoModelForCausalLM
from trl import GRPOConfig, GRPOTrainer

import rollwise as rw
from rollwise.cli import main
from rollwise.models import load_policy
from rollwise.sampling.setting import load_model
from rollwise.training.config import TrainConfig
from rollwise.training.make_trainer import _take_dtype


def as_on_an_accelerator(source: Any, **options: Any) -> Any:
    with patch("torch.accelerator.is_available", return_value=True):
        return load_policy(source, **options)


@pytest.mark.parametrize(
    ("more", "dtype"),
    [
        ([], "F32"),
        (["--trainer_options.model_init_kwargs", '{"dtype": "bfloat16"}'], "BF16"),
        (["--peft.r", "2", "--peft.target_modules", "[q_proj]"], "F32"),
    ],
)
def test_a_policy_in_bfloat16_is_trained_in_float32(
    more: list[str], dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In bfloat16 a step of 1e-6 is rounded away in nearly every weight."""
    AutoModelForCausalLM.from_pretrained(tiny_model(tmp_path / "tiny")).bfloat16().save_pretrained(tmp_path / "tiny")
    assert json.loads((tmp_path / "tiny/config.json").read_text())["dtype"] == "bfloat16"
    monkeypatch.setattr("rollwise.training.make_trainer.load_policy", as_on_an_accelerator)
    arguments = [
        *("train", "--data", str(maths_file(tmp_path)), "--prompt_column", "problem", "--reward", "exact"),
        *("--model", str(tmp_path / "tiny"), "--steps", "1", "--prompts_per_step", "4", "--num_generations", "4"),
        *("--eval_prompts", "0", "--max_completion_length", "3", "--out", str(tmp_path / "run")),
    ]
    assert main([*arguments, *more]) == 0
    (weights,) = (tmp_path / "run/checkpoints/checkpoint-1").glob("*model.safetensors")
    with safe_open(weights, framework="pt") as file:
        assert {file.get_slice(name).get_dtype() for name in file.keys()} == {dtype}  # noqa: SIM118


@pytest.mark.parametrize(("cpu", "dtype"), [(True, "float32"), (False, None)])
def test_the_base_of_an_adapter_is_in_bfloat16_on_a_gpu_alone(cpu: bool, dtype: str | None) -> None:
    """An Apple machine has an accelerator, but a run is on its CPU."""
    config = TrainConfig(task="reversal", peft={"r": 2})
    assert _take_dtype(GRPOConfig(use_cpu=cpu, bf16=False), config) == dtype


def test_a_model_on_the_cpu_is_in_float32_whatever_the_machine_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An Apple machine has an accelerator, which the commands don't use."""
    folder = tiny_model(tmp_path / "tiny")
    AutoModelForCausalLM.from_pretrained(folder).bfloat16().save_pretrained(folder)
    monkeypatch.setattr("torch.accelerator.is_available", lambda: True)
    model, _ = load_model(str(folder), None)
    assert (model.device.type, model.dtype) == ("cpu", torch.float32)


class Single(torch.Tensor):
    """As one of a device without double precision, such as Apple's: that begins on the CPU."""

    def double(self, *_: Any, **__: Any) -> Any:
        raise TypeError("the device has no float64")

    def cpu(self, *_: Any, **__: Any) -> Any:
        return self.as_subclass(torch.Tensor)


def test_rewards_need_no_double_precision_of_the_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = make_trainer(tmp_path, max_steps=1, eval_dataset=toy_dataset(4), eval_strategy="steps")
    computed = GRPOTrainer._calculate_rewards
    monkeypatch.setattr(GRPOTrainer, "_calculate_rewards", lambda *args: computed(*args).as_subclass(Single))
    trainer.train()


def test_weighted_advantages_are_of_single_precision(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, curriculum=rw.Recommended(allocator={"name": "variance-informed"}), max_steps=4)
    made: list[torch.dtype] = []
    merge = trainer._merged
    trainer._merged = lambda *args: (output := merge(*args), made.append(output["advantages"].dtype))[0]
    trainer.train()
    assert set(made) == {torch.float32}
