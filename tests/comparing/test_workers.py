"""The processes of a comparison: on which GPU each run is, and what two comparisons of one folder leave alone."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from rollwise.comparing import worker
from rollwise.comparing.plan import Run
from rollwise.comparing.worker import main
from rollwise.comparing.workers import Workers
from rollwise.training.config import TrainConfig
from rollwise.yaml_file import read_yaml


@pytest.fixture
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In place of Python: says which GPUs it sees."""
    script = tmp_path / "echo.sh"
    script.write_text('#!/bin/sh\necho "sees ${CUDA_VISIBLE_DEVICES-all}"\n')
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    return script


@pytest.mark.usefixtures("echo")
@pytest.mark.parametrize(
    ("gpus", "named", "seen"),
    [
        (3, None, ["0", "1", "2", "0"]),
        (2, "3,5", ["3", "5", "3", "5"]),
        (1, None, ["all"] * 4),
        (1, "5", ["5"] * 4),
        (0, None, ["all"] * 4),
    ],
)
def test_each_run_has_one_of_several_gpus(
    gpus: int, named: str | None, seen: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that sees several is refused, so no comparison could be made on such a machine."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if named is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    config = TrainConfig(task="reversal")
    runs = [Run("uniform", seed, tmp_path / f"{seed}", config) for seed in range(5)]
    with Workers(tmp_path, jobs=4) as workers:
        for run in runs[:4]:
            workers.start(run)
        for process in workers.active:
            process.wait()
        if gpus > 1:  # the GPU of a run that has ended is free again
            workers.active.pop(next(p for p, run in workers.active.items() if run.seed == 1))
            workers.start(runs[4])
            next(p for p, run in workers.active.items() if run.seed == 4).wait()
            assert workers.log(runs[4]).read_text() == f"sees {seen[1]}\n"
    assert [workers.log(run).read_text() for run in runs[:4]] == [f"sees {name}\n" for name in seen]


def test_a_run_that_another_comparison_trains_keeps_its_timing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, options = tmp_path / "run", tmp_path / "options.json"
    options.write_text(json.dumps(TrainConfig(task="reversal", out=str(run)).to_dict()))
    script = (
        "import sys\nfrom rollwise.runs.folder import RunFolder\n"
        "with RunFolder(sys.argv[1]).held():\n    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", script, str(run)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        assert main(str(options), jobs=3, pinned=False) == 1
        assert not (run / "timing.jsonl").exists()
        assert "another process is training into" in capsys.readouterr().err
        other.communicate("")


def test_a_run_goes_on_where_its_plan_is_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looked for data and model where they were when it began, also after the plan's folder was moved."""
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(worker, "resume_run", lambda path: seen.append(read_yaml(path / "config.yaml")))
    run, options = tmp_path / "run", tmp_path / "options.json"
    now = {"data": "/there/d.jsonl", "reward": "/there/r.py:right", "model": "org/hub", "out": str(run)}
    options.write_text(json.dumps(TrainConfig(**now).to_dict()))
    run.mkdir()
    saved = {"data": "/here/d.jsonl", "reward": "/here/r.py:right", "model": "org/hub", "out": "old"}
    (run / "config.yaml").write_text(json.dumps(saved))  # of an earlier version: without `stop`
    assert main(str(options), jobs=1, pinned=False) == 0
    assert seen == [{**now, "out": "old"}]
