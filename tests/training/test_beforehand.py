"""What a run would refuse is refused before its policy is warm-started or loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from own import tiny_model
from rich.console import Console

from rollwise.errors import ConfigError, MissingColumnError
from rollwise.training import make_trainer
from rollwise.training.config import TrainConfig
from rollwise.training.run import start_run

REDONE = {"multi_objective_aggregation": "normalize_then_sum"}
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "prompts": ({"num_prompts": 3}, "a step needs 4 distinct prompts"),
    "gate": ({"gate": "mixed", "trainer_options": REDONE}, "redone for the groups that a gate admits"),
    "screening": (
        {"curriculum": "speed", "gate": "mixed", "num_generations": 8},
        "on what it screened, but a gate",
    ),
    "allocator": ({"allocator": "knapsack", "match_uniform": True}, "match_uniform compares groups of one size"),
    "feedback": ({"curriculum": "actor-curator", "mini_batch_prompts": 2}, "learns from what one optimiser step"),
    "posterior": (
        {"curriculum": "mapp", "advantages": "posterior", "trainer_options": {"scale_rewards": "batch"}},
        'scale_rewards="batch" scales them again',
    ),
    "stop": ({"stop": "!", "trainer_options": {"mask_truncated_completions": True}}, "end with a stop text"),
}


@pytest.fixture(autouse=True)
def no_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_: Any, **__: Any) -> None:
        raise AssertionError("a policy is made or loaded")

    monkeypatch.setattr(make_trainer, "embedded_of", late)
    monkeypatch.setattr(make_trainer, "load_policy", late)


def start(folder: Path, **options: Any) -> None:
    given = {"num_prompts": 8, "prompts_per_step": 4, "num_generations": 4, "eval_prompts": 0, "steps": 1, **options}
    start_run(TrainConfig(out=str(folder / "run"), **given), console=Console(quiet=True))


@pytest.mark.parametrize("case", CASES)
def test_options_that_do_not_fit(case: str, tmp_path: Path) -> None:
    options, words = CASES[case]
    with pytest.raises(ConfigError, match=words):
        start(tmp_path, **options)
    assert not (tmp_path / "run").exists()


def test_a_column_that_the_method_needs(tmp_path: Path) -> None:
    with pytest.raises(MissingColumnError, match="reference_pass_rates"):
        start(tmp_path, curriculum="bots", curriculum_options={"prior": "references"})
    assert not (tmp_path / "run").exists()


def test_prompts_that_a_model_has_no_room_for(tmp_path: Path) -> None:
    model = tiny_model(tmp_path / "tiny", window=32)
    with pytest.raises(ConfigError, match="more than the model's window of 32"):
        start(tmp_path, model=str(model), max_completion_length=16)
    assert not (tmp_path / "run").exists()
