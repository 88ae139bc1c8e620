"""`rollwise simulate` as a user types it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rollwise.cli import main

ROOT = Path(__file__).parents[2]
RUN = ROOT / "tests/simulation/data/uniform-run"
CONFIG = """
prompts: 80
steps: 3
batch: 8
group: 4
seeds: 2
jobs: 1
methods:
  uniform: {curriculum: uniform}
  bots: {curriculum: bots, curriculum_options: {rails: off}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "my.yaml"
    path.write_text(CONFIG)
    return path


def test_help_teaches_and_says_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["simulate", "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for part in ("SIMULATED", "--template", "--replay", "--jobs", "--out", "examples:", "docs/simulate.md"):
        assert part in text


def test_the_template_is_a_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--template"]) == 0
    text = capsys.readouterr().out
    assert "overfitting: 0.0" in text
    short = text.replace("# steps:", "steps: 2 #").replace("seeds: 5", "seeds: 1").replace("# jobs:", "jobs: 1 #")
    (tmp_path / "t.yaml").write_text(short)
    assert main(["simulate", str(tmp_path / "t.yaml"), "--out", str(tmp_path / "out")]) == 0
    assert len(list((tmp_path / "out/runs").iterdir())) == 10


@pytest.mark.parametrize(("name", "limit"), [("results.json", 1_000), ("curves.png", 20_000)])
def test_a_full_disk_leaves_the_results_of_before(
    name: str, limit: int, config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They were cut off, and the message spoke of 'a file'. A limit of file sizes stands for a full disk."""
    resource = pytest.importorskip("resource")
    command = ["simulate", str(config), "--out", str(tmp_path / "out")]
    assert main(command) == 0
    before = (tmp_path / "out" / name).read_bytes()
    assert len(before) > limit
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        assert main(command) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert f"'{tmp_path}/out/{name}' can't be written" in capsys.readouterr().err
    assert (tmp_path / "out" / name).read_bytes() == before


def test_a_comparison_and_again(config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["simulate", str(config), "--out", str(out)]) == 0
    first = capsys.readouterr()
    assert first.out.count("SIMULATED") == 2  # the table's title, and where the files are
    assert "bots" in first.out
    assert len([line for line in first.err.splitlines() if line.startswith("SIMULATED")]) == 4
    for name in ("results.json", "results.csv", "curves.svg"):
        assert "SIMULATED" in (out / name).read_text()
    for path in (out / "runs").iterdir():
        assert "SIMULATED" in json.loads(path.read_text())["note"]
    results = (out / "results.csv").read_bytes()
    assert main(["simulate", str(config), "--out", str(out)]) == 0
    again = capsys.readouterr()
    assert again.err.count("(was there)") == 4
    assert again.out == first.out
    assert (out / "results.csv").read_bytes() == results
    config.write_text(CONFIG + "lag: 1\n")
    assert main(["simulate", str(config), "--out", str(out)]) == 1
    assert "lag = 0, the config has 1" in capsys.readouterr().err


def test_it_runs_in_several_processes_from_the_command(config: Path, tmp_path: Path) -> None:
    assert main(["simulate", str(config), "--out", str(tmp_path / "out1"), "--jobs", "1"]) == 0
    command = [sys.executable, "-m", "rollwise", "simulate", str(config), "--out", "out2", "--jobs", "2"]
    subprocess.run(command, check=True, cwd=tmp_path, capture_output=True)
    one, two = (json.loads((tmp_path / f"out{j}/results.json").read_text()) for j in "12")
    assert one["runs"] == two["runs"]
    assert one["methods"] == two["methods"]


def test_a_run_is_replayed_without_a_config(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.yaml").write_text("batch: 2\nseeds: 1\njobs: 1\nmethods: {u: {curriculum: uniform}}\n")
    assert main(["simulate", "r.yaml", "--replay", str(RUN)]) == 0
    shown = capsys.readouterr().out
    assert "never learning" in " ".join(shown.split())
    assert "score" not in shown
    assert "the replayed steps of the log itself have an effective ratio of" in " ".join(shown.split())
    assert (tmp_path / "runs/simulate-r/results.json").exists()


def test_what_the_docs_show_is_a_config_and_is_shipped() -> None:
    from rollwise.simulation.config import SimulateConfig

    page = (ROOT / "docs/simulate.md").read_text()
    (shown,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert SimulateConfig.from_dict(yaml.safe_load(shown)).methods["bots, with rails"].make(0).rails is not None
    for name in re.findall(r"examples/simulate/\w+\.yaml", page):
        assert (ROOT / name).exists()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "simulate needs a CONFIG"),
        (["nowhere.yaml"], "'nowhere.yaml' can't be read"),
        (["--replay", "/nowhere"], "/nowhere"),
        (["CONFIG", "--jobs", "0"], "jobs must be a whole number >= 1"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str], reason: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", *(str(config) if a == "CONFIG" else a for a in arguments)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("rollwise: ")
    assert reason in error
    assert error.count("\n") == 1
