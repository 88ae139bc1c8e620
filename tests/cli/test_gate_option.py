"""`--gate` on the command line: a run, its resume, its files, and errors of one line."""

import json
from pathlib import Path

import pytest

from rollwise.cli import main
from rollwise.curricula import CURRICULA, make_curriculum
from rollwise.runs.folder import RunFolder
from rollwise.training.config import TrainConfig
from rollwise.training.run import left_out

pytestmark = pytest.mark.usefixtures("no_figures")


@pytest.mark.slow
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


@pytest.mark.parametrize("name", ["greso", "vcrl", "frontier"])
def test_a_method_runs_whole_with_the_gate_and_trainer_of_its_paper(
    name: str, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a plan's row names them. A batch trains 8 groups, however many more of them the gate admits."""
    monkeypatch.setattr("rollwise.reports.write_report", lambda run: run)
    kind = CURRICULA[name]
    chosen = [*options[: options.index("--curriculum")], "--curriculum", name]
    gate, own = kind.paper_gate or ("none", {})
    chosen += ["--gate", gate] + [part for k, v in own.items() for part in (f"--gate_options.{k}", v)]
    if gate == "variance":  # kappa rises after the second step
        chosen += ["--gate_options.first_steps", "2", "--curriculum_options.first_steps", "2"]
    if name == "frontier":
        chosen += ["--trainer", kind.paper_trainer or "", "--curriculum_options.least_memory", "1"]
        chosen += ["--curriculum_options.memory", "failure", "--curriculum_options.replay_ratio", "0.5"]
    assert main([*chosen, "--steps", "5", "--out", str(tmp_path)]) == 0
    metrics = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    groups = [json.loads(line) for line in (tmp_path / "rollouts.jsonl").read_text().splitlines()]
    assert all(sum(g["trained"] for g in groups if g["step"] == step) == 8 for step in range(1, 6))
    assert metrics[-1]["rollouts"] == 4 * len(groups)
    lanes = {g["lane"] for g in groups}
    if name == "greso":
        first = [sum(g["step"] == step and g["round"] == 1 for g in groups) for step in range(1, 6)]
        assert first == [12] * 5  # 1.5 batches
        assert metrics[-1]["curriculum/told"] == len(groups)  # those left over are told too
    if name == "vcrl":
        assert "replay" in lanes
        assert {m["curriculum/threshold"] for m in metrics[1:]} == {0.3, 0.8}
    if name == "frontier":
        assert lanes == {"uniform", "replay"}
        assert RunFolder(tmp_path).read_config()["trainer"] == "rloo"


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


def test_a_run_without_a_part_of_its_papers_method_says_so() -> None:
    whole = {"gate": "mixed", "gate_options": {"sizing": "ratio"}}
    said = {
        name: left_out(make_curriculum(name), TrainConfig(curriculum=name, **options))
        for name, options in (("greso", {}), ("frontier", {}), ("sec", {}))
    }
    assert "--gate mixed --gate_options.sizing ratio" in said["greso"][0]
    assert "--trainer rloo" in said["frontier"][0]
    assert said["sec"] == []
    assert left_out(make_curriculum("greso"), TrainConfig(curriculum="greso", **whole)) == []
    assert left_out(make_curriculum("frontier"), TrainConfig(curriculum="frontier", trainer="rloo")) == []
