"""`examples/warm_start.py`, as a user runs it."""

import subprocess
import sys
from pathlib import Path

import pytest

from rollwise.models import EmbeddedConfig, load_policy
from rollwise.models.embedded import build_policy
from rollwise.models.loading import save_policy

torch = pytest.importorskip("torch")
pytest.importorskip("trl")
EXAMPLE = Path(__file__).parents[2] / "examples/warm_start.py"


@pytest.mark.slow
def test_the_upper_layers_learn_and_the_lower_ones_stay(tmp_path: Path) -> None:
    config = EmbeddedConfig(hidden_size=16, num_layers=3, num_heads=2, intermediate_size=32, max_length=64)
    model, tokenizer = build_policy(config, seed=1)
    save_policy(model, tokenizer, tmp_path / "before")
    command = [
        sys.executable, EXAMPLE, tmp_path / "before", "--task", "reversal", "--options", '{"longest": 4}',
        "--steps", "3", "--batch", "4", "--out", tmp_path / "after",
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    trained = load_policy(tmp_path / "after")[0]
    changed = {
        name
        for (name, one), other in zip(model.named_parameters(), trained.parameters(), strict=True)
        if not torch.equal(one, other)
    }
    assert any("layers.2." in name for name in changed)
    assert not any(f"layers.{i}." in name or "embed" in name for i in (0, 1) for name in changed)
