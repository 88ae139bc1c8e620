"""`rollwise profile --rollouts` and what else reads past rollouts, as a user types it."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from rollwise.cli import main

ROWS = [
    {"step": step, "prompt": f"{n}+1=", "completion": f"it is {n + i}", "score": float(i < n % 5)}
    for step in (1, 2, 3)
    for n in range(20)
    for i in range(4)
]


@pytest.fixture
def past(tmp_path: Path) -> Path:
    path = tmp_path / "mine/rollouts.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def test_it_needs_neither_model_nor_torch(past: Path, tmp_path: Path) -> None:
    code = f"""
        import sys
        for name in ("torch", "transformers", "trl", "datasets", "accelerate"):
            sys.modules[name] = None          # importing it would raise
        from rollwise.cli import main
        sys.exit(main(["profile", "--rollouts", {str(past)!r}, "--out", {str(tmp_path / "out")!r}]))
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    for part in (
        "60 groups of 20 prompts",
        "Over the steps",
        "Replay (SIMULATED)",
        "Recommendation",
        "pass_rates.jsonl",
    ):
        assert part in text
    assert (tmp_path / "out/pass_rates.jsonl").read_text().count("\n") == 20


def test_the_replay_that_is_named_has_the_same_columns(
    past: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command left them out, so it replayed another reward, or could not read the file."""
    rows = [{**row, "reward": 0.0, "right answer": row["score"]} for row in ROWS]
    path = past.with_name("two rewards.jsonl")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["--reward_column", "right answer", "--step_column", "step"]
    assert main(["profile", "--rollouts", str(path), *command, "--out", str(tmp_path / "out")]) == 0
    said = f"More: rollwise simulate --replay '{path}' --reward_column 'right answer' --step_column step"
    assert "".join(said.split()) in "".join(capsys.readouterr().out.split())


def test_rollouts_without_a_reward_are_counted(past: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They were left out without a word."""
    rows = [{**row, "score": float("nan")} if i % 5 == 0 else row for i, row in enumerate(ROWS)]
    past.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["profile", "--rollouts", str(past), "--out", str(tmp_path / "out")]) == 0
    assert "48 of 240 rollouts have no reward" in " ".join(capsys.readouterr().out.split())


def test_a_report_of_what_something_else_logged_is_refused(past: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(past.parent)]) == 1
    error = capsys.readouterr().err
    assert "rollouts.jsonl, line 1: no 'rewards'" in error
    assert f"rollwise profile --rollouts {past}" in error
    assert error.count("\n") == 1
    assert not (past.parent / "report.html").exists()


def test_a_replay_of_a_file(past: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.yaml").write_text("seeds: 1\njobs: 1\nmethods: {u: {curriculum: uniform}, sec: {curriculum: sec}}\n")
    command = ["simulate", str(tmp_path / "r.yaml"), "--replay", str(past), "--out", str(tmp_path / "out")]
    assert main([*command, "--reward_column", "score"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "sec *" in shown
    assert "* sec: no categories in this run: one arm, so it samples uniformly" in shown
    results = json.loads((tmp_path / "out/results.json").read_text())
    assert "one arm" in results["methods"]["sec"]["mark"]
    assert "mark" not in results["methods"]["u"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["profile"], "profile needs DATA (a task or a file), or --rollouts FILE"),
        (["profile", "countdown", "--rollouts", "PAST"], "DATA has no effect"),
        (["profile", "--rollouts", "PAST", "--model", "m"], "--model has no effect"),
        (["profile", "countdown", "--step_column", "t"], "--step_column has no effect"),
        (["profile", "--rollouts", "PAST", "--reward_column", "good"], "line 1: no 'good' (--reward_column)"),
        (["profile", "--rollouts", "/nowhere.jsonl"], "'/nowhere.jsonl' is not there"),
        (
            ["profile", "--rollouts", "PAST", "--planned_generations", "1"],
            "planned_generations must be a whole number >= 2",
        ),
        (["simulate", "--replay", "PAST", "--step_column", "t"], "line 1: no 't' (--step_column)"),
        (["simulate", "--step_column", "t", "CONFIG"], "give them with --replay FILE"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str], reason: str, past: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.yaml").write_text("seeds: 1\n")
    names = {"PAST": str(past), "CONFIG": str(tmp_path / "config.yaml")}
    assert main([*(names.get(a, a) for a in arguments), "--out", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("rollwise: ")
    assert reason in error
    assert error.count("\n") == 1
