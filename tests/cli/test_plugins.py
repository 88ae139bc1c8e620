"""Tasks, methods and gates from other packages and files, by the commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from processes import Command

from rollwise.cli import main

Said = Callable[[], tuple[str, str]]


def test_listings_say_what_was_installed_and_from_where(installed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks"]) == 0
    out, err = capsys.readouterr()
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert list(lines) == [
        "arc-1d",
        "bfcl",
        "boxes",
        "countdown",
        "mixed",
        "reasoning-gym",
        "reversal",
        "sums",
        "zebra",
    ]
    assert lines["sums"] == "sums           Adds two digits.  (rollwise-plugins 1.2)"
    assert "rollwise-plugins" not in lines["countdown"]
    problems = err.splitlines()
    assert len(problems) == 3
    assert problems[0].startswith(
        "warning: task 'broken' of rollwise-plugins 1.2 can't be used: task 'rollwise_plugins"
    )
    assert "there is another task 'countdown'" in problems[1]
    for command, name in (("curricula", "backwards"), ("gates", "always")):
        assert main([command]) == 0
        out, err = capsys.readouterr()
        assert f"\n{name} " in f"\n{out}"
        assert out.count("(rollwise-plugins 1.2)") == 1
        assert err == ""


@pytest.mark.parametrize("name", ["backwards", "plugin.py:Backwards", "plugin:Backwards"])
def test_one_of_your_own_with_its_options(
    name: str, installed: Path, own_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["curricula", name]) == 0
    out = capsys.readouterr().out
    assert "Takes the prompts from the end." in out
    assert "stride = 1\n      a whole number >= 1: every how manieth." in out


NAMES = [("sums", "backwards", "always"), ("plugin.py:Sums", "plugin.py:Backwards", "plugin.py:Always")]


@pytest.mark.parametrize(("task", "curriculum", "gate"), NAMES)
def test_a_run_with_plugins_trains_and_resumes(
    task: str, curriculum: str, gate: str, installed: Path, own_file: Path, policy: Path
) -> None:
    """In processes of their own. `config.yaml` has the names as they were given."""
    short = [name.rpartition(":")[2] for name in (task, curriculum)]
    config = {"task": task, "task_options": {"largest": 5}, "model": str(policy), "curriculum": curriculum}
    config |= {"curriculum_options": {"stride": 2}, "gate": gate, "steps": 2, "save_every": 1, "eval_prompts": 0}
    config |= {"prompts_per_step": 4, "num_generations": 2, "num_prompts": 20}
    (own_file.parent / "my.yaml").write_text(yaml.safe_dump(config))
    started = Command("train", "--config", "my.yaml", folder=own_file.parent, site=installed)
    assert started.wait() == 0, started.said[-3000:]
    run = own_file.parent / "runs" / f"{short[0]}-{short[1]}-seed0"
    written = yaml.safe_load((run / "config.yaml").read_text())
    assert {key: written[key] for key in config} == config
    resumed = Command("train", "--resume", str(run), "--steps", "3", folder=own_file.parent, site=installed)
    assert resumed.wait() == 0, resumed.said[-3000:]
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in metrics] == [1, 2, 3]
    assert "backwards" in (run / "rollouts.jsonl").read_text()


def test_a_simulation_with_plugins(own_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    methods = {"mine": {"curriculum": "plugin.py:Backwards", "gate": "plugin:Always"}, "u": {"curriculum": "uniform"}}
    config = {
        "num_prompts": 40,
        "steps": 3,
        "prompts_per_step": 4,
        "num_generations": 2,
        "seeds": [0],
        "methods": methods,
        "jobs": 1,
    }
    (own_file.parent / "my.yaml").write_text(yaml.safe_dump(config))
    assert main(["simulate", "my.yaml"]) == 0
    assert "mine" in capsys.readouterr().out


def test_a_profile_of_a_task_of_your_own(own_file: Path, policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = ["--model", str(policy), "--num_prompts", "4", "--num_generations", "2", "--out", "profile"]
    assert main(["profile", "plugin.py:Sums", *own]) == 0
    assert "Sums with" in capsys.readouterr().out
