"""Words of a command line in unusual places."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rollwise.cli import main
from rollwise.cli.formatting import gathered


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["train", ""], "train takes no ''"),
        (["train", "--", "x"], "train takes no '--'; rollwise train --help lists the options"),
        (["train", "--steps=", "--out", "x"], "--steps must be a whole number >= 1, got ''"),
        (["train", "--stop"], "rollwise: --stop needs one value"),
        (["train", "--data", ""], "rollwise: --data got an empty value; give one, or leave --data out"),
        (["train", "--data=", "--steps", "1"], "rollwise: --data got an empty value"),
        (["compare", "--config", "my plan.yaml"], "compare takes its file without --config: rollwise compare 'my plan"),
        (["simulate", "--config", "a.yaml"], "simulate takes its file without --config: rollwise simulate a.yaml"),
    ],
)
def test_a_wrong_word_is_named(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    assert said in capsys.readouterr().err


def test_a_stop_text_may_begin_with_a_dash() -> None:
    assert gathered(["train", "--stop=---", "--seed", "1"], ["--stop"]) == ["train", '--stop=["---"]', "--seed", "1"]


def test_launch_takes_a_switch_before_its_file_and_another_file_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text("task: reversal\n")
    second.write_text(f"out: {tmp_path / 'run'}\n")
    assert (
        main(["launch", "--dry_run", str(first), "--engine", "trl", "--nproc", "1", "--", "--config", str(second)]) == 0
    )
    assert f"--config {first} --config {second}" in capsys.readouterr().out


def test_a_reader_that_ends_first_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "rollwise", "schema", "train"], stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")
