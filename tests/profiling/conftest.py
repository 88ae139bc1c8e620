"""A toy policy on disk, a data file and its reward: a profile takes a second."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rollwise.models import EmbeddedConfig

SMALL = EmbeddedConfig(hidden_size=32, num_layers=1, num_heads=2, intermediate_size=32, max_length=48)

REWARDS = '''
def begins_low(prompts, completions, threshold, **columns):
    """Whether the first character is a digit below the threshold; None where nothing was said."""
    return [None if not c else float(c[0].isdigit() and int(c[0]) < t) for c, t in zip(completions, threshold)]
'''


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `one` and `other`, two random policies, `data.jsonl` of 24 prompts, and `rewards.py`."""
    pytest.importorskip("torch")
    from rollwise.models.embedded import build_policy

    folder = tmp_path_factory.mktemp("toy")
    for seed, name in enumerate(("one", "other")):
        model, tokenizer = build_policy(SMALL, seed=seed)
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    rows = [{"prompt": f"{i}+{i % 7}=", "threshold": i % 12, "kind": f"k{i % 3}"} for i in range(24)]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "rewards.py").write_text(REWARDS)
    return folder


@pytest.fixture
def options(toy: Path) -> dict[str, Any]:
    """Of a profile of the toy data."""
    return {
        "data": str(toy / "data.jsonl"),
        "model": str(toy / "one"),
        "reward": f"{toy / 'rewards.py'}:begins_low",
        "category": "kind",
        "max_completion_length": 4,
        "num_prompts": "all",
        "batch_size": 32,
        "steps": 20,
        "prompts_per_step": 4,
        "planned_generations": 4,
    }
