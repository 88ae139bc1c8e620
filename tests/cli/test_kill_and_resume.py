"""`kill -9` at any moment, then --resume: the run is the one that was never killed."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import Command

from rollwise.cli import main
from rollwise.training.trainer.checkpoint import SEAL, latest_complete

pytestmark = pytest.mark.usefixtures("no_figures")

PHASES = ("generation", "reward", "logprobs", "update", "evaluation", "ask", "tell")
TIMED = {"time", "wall_s", "ask_s", "tell_s", *(f"time/{phase}" for phase in PHASES)}


def kill_when(moment: Callable[[], bool], *arguments: str) -> None:
    command = Command(*arguments)
    command.wait_until(moment)
    command.send(signal.SIGKILL)
    command.wait()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@pytest.mark.slow
def test_killed_in_a_step_and_in_a_save_then_resumed(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    assert main([*options, "--out", str(straight)]) == 0
    assert f"report: {straight / 'report.html'}" in "".join(capsys.readouterr())

    # before the first checkpoint
    kill_when(lambda: size(killed / "rollouts.jsonl") > 0, *options, "--out", str(killed))
    assert latest_complete(killed / "checkpoints") is None
    with open(killed / "config.yaml", "a") as file:
        file.write("abort: null\n")  # as in the runs of versions that had a training-time abort
    # while checkpoint 4 is being written: weights there, seal not
    saving = killed / "checkpoints/checkpoint-4"
    kill_when(lambda: (saving / "model.safetensors").exists(), "train", "--resume", str(killed))
    if not (saving / SEAL).exists():
        assert latest_complete(killed / "checkpoints") == killed / "checkpoints/checkpoint-2"
    # in the middle of a later step, leaving a torn line behind
    kill_when(lambda: '"step": 7' in (killed / "rollouts.jsonl").read_text(), "train", "--resume", str(killed))
    with open(killed / "metrics.jsonl", "a") as file:
        file.write('{"step": 9, "rew')
    assert main(["train", "--resume", str(killed)]) == 0

    for name in ("rollouts.jsonl", "prompts.jsonl"):
        assert lines(killed / name) == lines(straight / name)
    ours, theirs = (
        [{k: v for k, v in line.items() if k not in TIMED} for line in lines(run / "metrics.jsonl")]
        for run in (killed, straight)
    )
    assert [line["step"] for line in ours] == list(range(9))
    assert ours == theirs
    final = "checkpoints/checkpoint-8"
    for name in ("model.safetensors", "rollwise_state.json"):
        assert (killed / final / name).read_bytes() == (straight / final / name).read_bytes()
    walls = [line["wall_s"] for line in lines(killed / "metrics.jsonl")]
    assert walls == sorted(walls)
    assert (killed / "report.html").exists()
