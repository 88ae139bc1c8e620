"""The README's commands, run one after another on a user's own file with a tiny model; only sizes are added."""

import re
import shlex
from pathlib import Path

import pytest
from own import maths_file, tiny_model

from rollwise.cli import main

README = (Path(__file__).parents[2] / "README.md").read_text()
SMALL = {
    "profile": ["--num_prompts", "4", "--num_generations", "2", "--max_completion_length", "4"],
    "train": ["--steps", "2", "--prompts_per_step", "4", "--num_generations", "4", "--eval_prompts", "4",
              "--max_completion_length", "4", "--save_every", "1"],
    "report": [],
}  # fmt: skip


def readme_commands() -> list[list[str]]:
    blocks = re.findall(r"^```\w*\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.removeprefix("$ ").startswith("rollwise ")]


def test_the_readmes_commands_run_as_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("math_verify")
    monkeypatch.chdir(tmp_path)
    maths_file(tmp_path).rename("my.jsonl")
    tiny_model(tmp_path / "M")
    commands = readme_commands()
    assert [words[0] for words in commands] == ["profile", "train", "report"]
    for words in commands:
        assert main([*words, *SMALL[words[0]]]) == 0
    assert main(["train", "--resume", "runs/first", "--steps", "3"]) == 0
    assert (tmp_path / "runs/first/report.html").exists()
