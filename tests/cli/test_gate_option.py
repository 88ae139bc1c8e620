"""`--gate` on the command line: a run, its resume, its files, and errors of one line."""

import json
from pathlib import Path

import pytest

from rollwise.cli import main
from rollwise.training.run_folder import RunFolder


def test_a_gated_run_resumes_with_its_gate(options: list[str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    gate = ["--gate", "mixed", "--gate_options.max_rounds", "2", "--gate_options.tolerance", "0.01"]
    assert main([*options, *gate, "--steps", "2", "--out", str(out)]) == 0
    assert main(["train", "--resume", str(out), "--steps", "3"]) == 0
    assert RunFolder(out).read_config()["gate_options"] == {"max_rounds": 2, "tolerance": 0.01}
    metrics = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    groups = [json.loads(line) for line in (out / "rollouts.jsonl").read_text().splitlines()]
    assert [line["step"] for line in metrics] == [0, 1, 2, 3]
    assert metrics[-1]["rollouts"] == 4 * len(groups)
    assert sum(line.get("gate/extra_rollouts", 0) for line in metrics) == 4 * len(groups) - 3 * 8 * 4 > 0
    assert all(sum(g["trained"] for g in groups if g["step"] == step) == 8 for step in (1, 2, 3))
    assert {g["round"] for g in groups} == {1, 2}
    assert (out / "report.html").exists()


def test_the_gates_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gates"]) == 0
    assert "mixed" in capsys.readouterr().out
    assert main(["gates", "pass-rate"]) == 0
    shown = capsys.readouterr().out
    assert "low = 0.0" in shown
    assert "max_rounds = 3" in shown


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["gates", "nobody"], "unknown gate 'nobody'"),
        (["train", "--gate", "nobody"], "unknown gate 'nobody'"),
        (["train", "--gate", "mixed", "--gate_options.speed", "9"], "no option 'speed'"),
        (["train", "--gate_options.max_rounds", "9"], "no gate"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path / "run")] if arguments[0] == "train" else []
    assert main([*arguments, *out]) == 1
    error = capsys.readouterr().err
    assert reason in error
    assert "Traceback" not in error
    assert not (tmp_path / "run/config.yaml").exists()
