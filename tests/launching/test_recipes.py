"""Every recipe of examples/launch, dry-run with a model of the same architecture and random weights."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from random_model import save_random_model
from recipes import RECIPES, recipe
from rich.console import Console

from rollwise.training.dry_run import dry_run


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_random_model(tmp_path_factory.mktemp("model"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_is_dry_run_with_random_weights(path: Path, model: Path, tmp_path: Path) -> None:
    if "task: bfcl" in path.read_text():
        pytest.importorskip("bfcl_eval")
    data = tmp_path / "sums.jsonl"
    rows = [
        {"problem": f"{i}+{i}", "prose": f"{i}", "answer": str(2 * i), "type": f"kind-{i % 3}", "level": i % 5}
        for i in range(900)
    ]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config, _ = recipe(path, data)
    said = io.StringIO()
    estimate = dry_run(replace(config, model=str(model)), console=Console(file=said, width=200))
    cost = estimate.of(config)
    assert cost.rollouts >= config.steps * config.prompts_per_step * config.num_generations
    assert str(config.max_completion_length) in said.getvalue().replace(",", "")
    assert "prompt" in said.getvalue()
