"""`mini_batch_prompts`: what one ask rolled out is trained on in several optimiser steps."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from own import maths_file, tiny_model

import rollwise.training.run  # noqa: F401  (before its part, which imports it)
from rollwise.cli import main
from rollwise.errors import ConfigError
from rollwise.tasks import make_task
from rollwise.training.arguments import trainer_arguments
from rollwise.training.config import TrainConfig


def test_trl_is_told_the_steps_of_a_generation(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = TrainConfig(task="reversal", prompts_per_step=12, mini_batch_prompts=4, num_generations=2, micro_batch=4)
    made = trainer_arguments(config, make_task("reversal"), tmp_path, begun=False)
    assert (made.per_device_train_batch_size, made.gradient_accumulation_steps, made.steps_per_generation) == (4, 2, 6)
    assert made.generation_batch_size == 24
    assert not caplog.records
    whole = TrainConfig(task="reversal", prompts_per_step=12, num_generations=2, micro_batch=4)
    made = trainer_arguments(whole, make_task("reversal"), tmp_path, begun=False)
    assert made.steps_per_generation == made.gradient_accumulation_steps == 6


def test_ranks_share_a_mini_batch() -> None:
    config = TrainConfig(prompts_per_step=256, mini_batch_prompts=64, num_generations=8, micro_batch=16)
    assert config.batch(8) == (16, 4)  # 64 rollouts of an optimiser step on each of 8 ranks
    with pytest.raises(ConfigError, match="mini_batch_prompts x num_generations = 512 rollouts"):
        config.batch(3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mini_batch_prompts": 5}, "mini_batch_prompts must divide prompts_per_step 8, got 5"),
        ({"mini_batch_prompts": 16}, "must divide prompts_per_step 8, got 16"),
        ({"mini_batch_prompts": 0}, "mini_batch_prompts must be a whole number >= 1 or None, got 0"),
        (
            {"mini_batch_prompts": 4, "trainer_options": {"steps_per_generation": 2}},
            "decides trainer_options 'steps_per_generation'; leave one of them out",
        ),
    ],
)
def test_sizes_that_do_not_fit(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        TrainConfig(prompts_per_step=8, **options)
    assert said in str(caught.value)


@pytest.mark.slow
def test_a_run_asks_once_for_three_optimiser_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    maths_file(tmp_path)
    given = [
        *("train", "--data", str(tmp_path / "maths.jsonl"), "--prompt_column", "problem", "--reward", "exact"),
        *("--model", str(tiny_model(tmp_path / "tiny")), "--prompts_per_step", "6", "--mini_batch_prompts", "2"),
        *("--num_generations", "4", "--max_completion_length", "2", "--eval_prompts", "0", "--save_every", "3"),
    ]
    assert main([*given, "--steps", "6", "--dry_run", "true"]) == 0
    assert "48 rollouts" in capsys.readouterr().out  # two asks of six prompts
    assert main([*given, "--steps", "3", "--out", str(tmp_path / "run")]) == 0
    assert main(["train", "--resume", str(tmp_path / "run"), "--steps", "6"]) == 0
    groups = [json.loads(line) for line in (tmp_path / "run/rollouts.jsonl").read_text().splitlines()]
    assert Counter(group["step"] for group in groups) == {1: 6, 4: 6}
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6]
