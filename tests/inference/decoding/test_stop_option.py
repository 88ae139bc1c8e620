"""Where an answer ends: the task says so, every command takes it and says so, `--stop` wins."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from rollwise.cli.formatting import gathered
from rollwise.cli.main import LISTS
from rollwise.errors import ConfigError
from rollwise.inference.bestof.config import BestOfConfig
from rollwise.inference.bestof.run import run_bestof
from rollwise.inference.decoding.rollouts_config import RolloutsConfig
from rollwise.inference.decoding.sample_rollouts import run_rollouts
from rollwise.inference.evaluation.bench import bench_of
from rollwise.profiling.config import ProfileConfig
from rollwise.profiling.profile import run_profile
from rollwise.sampling.config import DataConfig
from rollwise.sampling.own_task import OwnTask
from rollwise.sampling.setting import stop_texts
from rollwise.tasks import Task, make_task
from rollwise.training.config import TrainConfig

pytest.importorskip("transformers")

TASK = '''
from rollwise.tasks import Task

class Digits(Task):
    """One for anything; an answer ends with a 1 or a 2."""
    name = "digits"
    stop_texts = ("1", "2")
    max_completion_length = 8

    def train_records(self, n, seed):
        return [{"id": str(i), "prompt": f"{i}+3=", "category": "a", "difficulty": 0.0} for i in range(n)]

    eval_records = train_records

    def reward(self, prompts, completions, **columns):
        return [float(len(text) > 2) for text in completions]

    def fingerprint(self):
        return {"task": "digits"}
'''
NOTE = "completions end with '1' or '2', as the task says; --stop [] for none"


@pytest.fixture
def given(toy: Path, tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "mine.py").write_text(TASK)
    data = f"{tmp_path / 'mine.py'}:Digits"
    return {"data": data, "model": str(toy / "one"), "num_prompts": 12, "num_generations": 4}


def run(kind: str, given: dict[str, Any], out: Path) -> tuple[list[str], str]:
    """All texts of a command, and what it said."""
    file = io.StringIO()
    console, values = Console(file=file, width=500), {**given, "out": str(out)}
    if kind == "rollouts":
        return [t for g in run_rollouts(RolloutsConfig(**values), console=console) for t in g["texts"]], file.getvalue()
    if kind == "profile":
        run_profile(ProfileConfig(**values), console=console)
        groups = [json.loads(line) for line in (out / "groups.jsonl").read_text().splitlines()]
        return [text for group in groups for text in group["texts"]], file.getvalue()
    config = BestOfConfig(**values, select="majority", keep_texts="all")
    lines = run_bestof(config, console=console).lines
    return [candidate["text"] for line in lines for candidate in line["candidates"]], file.getvalue()


@pytest.mark.parametrize("kind", ["rollouts", "profile", "bestof"])
def test_a_task_says_where_an_answer_ends(
    kind: str, given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollwise.profiling.requirements.dry_run", lambda *_, **__: (0, 1))  # most of a profile's time
    texts, said = run(kind, given, tmp_path / "own")
    assert NOTE in said
    assert any(text[-1:] in ("1", "2") for text in texts)
    assert all(not set("12") & set(text[:-1]) for text in texts)
    assert yaml.safe_load((tmp_path / "own" / "config.yaml").read_text())["stop"] == ["1", "2"]
    free, said = run(kind, {**given, "stop": []}, tmp_path / "free")
    assert "completions end" not in said
    assert any(set("12") & set(text[:-1]) for text in free)
    others, said = run(kind, {**given, "stop": "3"}, tmp_path / "other")
    assert "completions end" not in said
    assert all("3" not in text[:-1] for text in others)
    with pytest.raises(ConfigError, match="was begun with stop"):
        run(kind, {**given, "stop": "4"}, tmp_path / "own")


def test_an_evaluation_decodes_as_its_rollouts_were_drawn(given: dict[str, Any], tmp_path: Path) -> None:
    run("rollouts", given, tmp_path / "own")
    assert bench_of(tmp_path / "own").stop == ("1", "2")


def test_countdown_ends_at_the_tag_unless_the_embedded_policy_ends_itself() -> None:
    assert make_task("countdown", style="tinyzero").stop_texts == ("</answer>",)
    assert make_task("countdown", style="compact").stop_texts == ()
    assert make_task("countdown", style="boxed").stop_texts == ()  # in SEC's text the tag is no end: a box may follow
    assert make_task("reversal").stop_texts == ()


def test_data_of_ones_own_take_the_verifiers(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"prompt": "x", "nums": [1, 2], "target": 3}\n')
    verifier: Task = make_task("countdown", style="tinyzero")
    config = TrainConfig(data=str(tmp_path / "a.jsonl"), task="countdown", model="some/model", eval_prompts=0)
    own = OwnTask(config, verifier=verifier, eval_data=None, evaluated=False)
    assert own.stop_texts == stop_texts(config, own) == ("</answer>",)
    assert stop_texts(DataConfig(stop="END"), own) == ("END",)
    assert stop_texts(DataConfig(stop=[]), own) == ()
    assert stop_texts(DataConfig(), None) == ()
    with pytest.raises(ConfigError, match="stop must be a text, got ''"):
        DataConfig(stop=["a", ""])


def test_the_option_as_typed() -> None:
    assert gathered(["--stop", "</answer>"], LISTS) == ["--stop", "</answer>"]
    assert gathered(["--stop", "a", "b"], LISTS) == ["--stop", '["a", "b"]']
    assert "--stop '[]'" in DataConfig(stop=[]).flags()
    assert "--stop '</a>' b" in DataConfig(stop=["</a>", "b"]).flags()
