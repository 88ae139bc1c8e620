"""`examples/warm_start.py`, as a user runs it."""

import importlib
from pathlib import Path

import pytest
from processes import Command, script

from rollwise.models import EmbeddedConfig, load_policy
from rollwise.models.embedded import build_policy
from rollwise.models.loading import save_policy

torch = pytest.importorskip("torch")
pytest.importorskip("trl")
EXAMPLE = Path(__file__).parents[2] / "examples/warm_start.py"


def test_the_upper_layers_learn_and_the_lower_ones_stay(tmp_path: Path) -> None:
    config = EmbeddedConfig(hidden_size=16, num_layers=3, num_heads=2, intermediate_size=32, max_length=64)
    model, tokenizer = build_policy(config, seed=1)
    save_policy(model, tokenizer, tmp_path / "before")
    words = [
        str(tmp_path / "before"), "--task", "reversal", "--options", '{"longest": 4}',
        "--steps", "3", "--batch", "4", "--out", str(tmp_path / "after"),
    ]  # fmt: skip
    done = Command(*words, code=script(EXAMPLE))
    assert done.wait() == 0, done.said[-3000:]
    trained = load_policy(tmp_path / "after")[0]
    changed = {
        name
        for (name, one), other in zip(model.named_parameters(), trained.parameters(), strict=True)
        if not torch.equal(one, other)
    }
    assert any("layers.2." in name for name in changed)
    assert not any(f"layers.{i}." in name or "embed" in name for i in (0, 1) for name in changed)


def test_starts_that_differ_in_the_seed_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And what is there already is kept."""
    monkeypatch.syspath_prepend(str(EXAMPLE.parent / "compare"))
    monkeypatch.setenv("ROLLWISE_CACHE", str(tmp_path / "cache"))
    sizes = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "intermediate_size": 32, "sft_steps": 2}
    options = [part for name, value in {**sizes, "num_demos": 128}.items() for part in (f"--{name}", str(value))]
    monkeypatch.setattr("sys.argv", ["", "reversal", "--seeds", "1", "2", "--out", str(tmp_path), *options])
    make_starts = importlib.import_module("make_starts")
    make_starts.main()
    one, two = (load_policy(tmp_path / f"reversal-{seed}")[0] for seed in (1, 2))
    assert any(not torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    (tmp_path / "reversal-2/config.json").unlink()
    make_starts.main()
    assert "reversal-2isthere" in "".join(capsys.readouterr().out.split())  # long paths are broken anywhere
    assert not (tmp_path / "reversal-2/config.json").exists()
