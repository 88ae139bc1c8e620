"""What the weights of a policy are held in while `rollwise train` trains it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from own import maths_file, tiny_model
from safetensors import safe_open
from transformers import AutoModelForCausalLM

from rollwise.cli import main
from rollwise.models import load_policy


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
