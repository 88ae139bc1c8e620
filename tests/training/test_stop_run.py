"""`rollwise train`: the stop texts of a task, or `--stop`, end the rollouts of a run; it says so, and goes on so."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from rollwise.models import EmbeddedConfig, embedded_policy
from rollwise.tasks import make_task
from rollwise.tasks.reversal import Reversal
from rollwise.training.config import TrainConfig
from rollwise.training.run import resume_run, start_run

TINY = EmbeddedConfig(hidden_size=16, num_layers=1, num_heads=2, intermediate_size=32, num_demos=200, sft_steps=8)


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return embedded_policy(make_task("reversal", longest=4), config=TINY, cache_dir=tmp_path_factory.mktemp("cache"))


def run(policy: Path, out: Path, **options: Any) -> tuple[list[str], str]:
    """All texts of a run of one step, and what it said."""
    values = {
        "task": "reversal", "task_options": {"longest": 4}, "model": str(policy), "curriculum": "uniform", "steps": 1,
        "prompts_per_step": 8, "num_generations": 4, "num_prompts": 40, "eval_prompts": 0, "save_every": 1, "out": out,
    }  # fmt: skip
    file = io.StringIO()
    start_run(TrainConfig.from_dict({**values, **options}), console=Console(file=file, width=500))
    return texts(out), file.getvalue()


def texts(out: Path) -> list[str]:
    lines = [json.loads(line) for line in (out / "rollouts.jsonl").read_text().splitlines()]
    return [text for line in lines for text in line["texts"]]


def test_a_run_stops_where_the_task_says_and_says_so(
    policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, said = run(policy, tmp_path / "option", stop=["1", "2"])
    assert any(text[-1:] in ("1", "2") for text in given)
    assert all(not set("12") & set(text[:-1]) for text in given)
    assert "completions end" not in said
    monkeypatch.setattr(Reversal, "stop_texts", ("1", "2"))
    own, said = run(policy, tmp_path / "task")
    assert own == given
    assert "note: completions end with '1' or '2', as the task says; --stop [] for none" in said
    free, said = run(policy, tmp_path / "none", stop=[])
    assert any(set("12") & set(text[:-1]) for text in free)
    assert "completions end" not in said
    # A run of an earlier version goes on as it began, without stop texts, whatever its task says now.
    config = tmp_path / "none" / "config.yaml"
    config.write_text(yaml.safe_dump({k: v for k, v in yaml.safe_load(config.read_text()).items() if k != "stop"}))
    resume_run(tmp_path / "none", steps=2, console=Console(file=io.StringIO()))
    assert any(set("12") & set(text[:-1]) for text in texts(tmp_path / "none")[32:])
