"""A policy for runs of seconds: warm-started for real, for a few steps, once a test session."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rollwise.models import EmbeddedConfig, embedded_policy
from rollwise.tasks import make_task


@pytest.fixture(scope="session")
def policy(once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    config = EmbeddedConfig(
        hidden_size=32,
        num_layers=1,
        num_heads=2,
        intermediate_size=64,
        num_demos=2000,
        sft_steps=120,
        sft_batch_size=64,
    )
    task = make_task("countdown", levels=(1,), demo_accuracy=0.6)
    cache = once("cli-policy", lambda folder: embedded_policy(task, config=config, cache_dir=folder))
    return embedded_policy(task, config=config, cache_dir=cache)


@pytest.fixture
def options(policy: Path) -> list[str]:
    """A run of 8 short steps."""
    return [
        "train", "--model", str(policy), "--task_options.style", "compact", "--task_options.levels", "[1]",
        "--steps", "8", "--save_every", "2", "--eval_every", "4", "--eval_prompts", "8", "--num_generations_eval", "2",
        "--prompts_per_step", "8", "--num_generations", "4", "--num_prompts", "60", "--learning_rate", "1e-3",
        "--warmup_steps", "2", "--curriculum", "prioritized", "--curriculum_options.retest_every", "3",
    ]  # fmt: skip
