"""A run with a budget of tokens ends when it is used up, with an evaluation, and counts as complete then."""

import io
import json
import os
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from rollwise.errors import StateFileError
from rollwise.models import EmbeddedConfig, embedded_policy, load_policy
from rollwise.models.identity import made_by
from rollwise.renamed import RENAMED
from rollwise.runs.reading import read_run
from rollwise.tasks import make_task
from rollwise.training.config import TrainConfig
from rollwise.training.run import resume_run, start_run
from rollwise.watching.follow import RunFollower

TINY = EmbeddedConfig(hidden_size=16, num_layers=1, num_heads=2, intermediate_size=32, num_demos=200, sft_steps=8)


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return embedded_policy(make_task("reversal", longest=4), config=TINY, cache_dir=tmp_path_factory.mktemp("cache"))


def config(policy: Path, out: Path, **options: Any) -> TrainConfig:
    values = {
        "task": "reversal", "task_options": {"longest": 4}, "model": str(policy), "curriculum": "uniform",
        "steps": 20, "prompts_per_step": 4, "num_generations": 4, "num_prompts": 40, "eval_prompts": 4,
        "eval_every": 50, "num_generations_eval": 2, "save_every": 50, "out": str(out),
    }  # fmt: skip
    return TrainConfig.from_dict({**values, **options})


def metrics(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_it_ends_after_the_step_that_uses_the_budget_up(
    policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = start_run(config(policy, tmp_path / "run", token_budget=250))
    assert "by --token_budget (now 250)" in " ".join(capsys.readouterr().err.split())
    tokens = [line["tokens"] for line in metrics(run)]
    assert tokens[-2] < 250 <= tokens[-1]
    assert len(tokens) < 20
    assert "eval/pass@1" in metrics(run)[-1]
    before = (run / "metrics.jsonl").read_bytes()
    resume_run(run)  # complete: nothing to do
    assert (run / "metrics.jsonl").read_bytes() == before


def test_a_run_of_an_older_version_goes_on(policy: Path, tmp_path: Path) -> None:
    """Its `config.yaml` has the old names of options."""
    run = start_run(config(policy, tmp_path / "run", token_budget=250))
    old = {now: name for name, now in RENAMED["train"].items()}
    kept = yaml.safe_load((run / "config.yaml").read_text())
    (run / "config.yaml").write_text(yaml.safe_dump({old.get(name, name): value for name, value in kept.items()}))
    assert "max_tokens: 250" in (run / "config.yaml").read_text()
    assert read_run(run).config == kept
    follower = RunFollower(run)
    follower.look()
    assert follower.history.config == kept
    before = len(metrics(run))
    resume_run(run, token_budget=500)
    assert metrics(run)[-1]["tokens"] >= 500
    assert len(metrics(run)) > before


class Hours:
    """A clock that goes on by half an hour at each look; the recorder looks once a step."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        self.now += 1800.0
        return self.now

    time = staticmethod(time.time)


def test_it_ends_after_its_hours_those_before_a_resume_included(
    policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evaluations take real time here, which is not counted."""
    monkeypatch.setattr("rollwise.training.recording.recorder.time", Hours())
    run = start_run(config(policy, tmp_path / "run", max_hours=1.4))
    assert [line["step"] for line in metrics(run)] == [0, 1, 2, 3]
    assert "eval/pass@1" in metrics(run)[-1]
    resume_run(run)  # complete: nothing to do
    assert len(metrics(run)) == 4
    resume_run(run, max_hours=2.4)
    assert metrics(run)[-1]["step"] == 5
    assert metrics(run)[-1]["wall_s"] == pytest.approx(5 * 1800, abs=60)


def test_without_a_budget_steps_decide_and_the_start_stays_on_record(policy: Path, tmp_path: Path) -> None:
    run = start_run(config(policy, tmp_path / "run", steps=3))
    assert metrics(run)[-1]["step"] == 3
    began = json.loads((run / "model.json").read_text())
    assert began == made_by(*load_policy(policy))
    resume_run(run, steps=4)
    assert metrics(run)[-1]["step"] == 4
    assert json.loads((run / "model.json").read_text()) == began


def test_a_complete_run_whose_checkpoints_were_deleted_keeps_its_logs(policy: Path, tmp_path: Path) -> None:
    """A resume trained it anew from the beginning, over its logs."""
    run = start_run(config(policy, tmp_path / "run", steps=2))
    shutil.rmtree(run / "checkpoints")
    logs = {path: path.read_bytes() for path in run.glob("*.jsonl")}
    resume_run(run)
    with pytest.raises(StateFileError, match="complete, with 2 steps, but its checkpoints are not there"):
        resume_run(run, steps=3)
    assert {path: path.read_bytes() for path in run.glob("*.jsonl")} == logs
    (run / "metrics.jsonl").write_text(json.dumps(metrics(run)[1]) + "\n")  # killed after its first step
    resume_run(run)
    assert [line["step"] for line in metrics(run)] == [0, 1, 2]


@pytest.mark.slow
def test_a_run_that_is_told_to_end_saves_says_so_and_goes_on(policy: Path, tmp_path: Path) -> None:
    """With transformers' `enable_jit_checkpoint`, as on a machine that is taken away: SIGTERM comes first."""
    options = config(
        policy, tmp_path / "run", steps=5000, save_every=5000, trainer_options={"enable_jit_checkpoint": True}
    )
    log = tmp_path / "run/metrics.jsonl"

    def end() -> None:
        while not log.exists() or len(log.read_text().splitlines()) < 4:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    ending = threading.Thread(target=end, daemon=True)
    ending.start()
    said = io.StringIO()
    run = start_run(options, console=Console(file=said, width=300))
    ending.join()
    last = metrics(run)[-1]["step"]
    assert last < 5000
    assert (
        f"ended at step {last} of 5000, before it was complete; rollwise train --resume {run} goes on"
        in said.getvalue()
    )
    resume_run(run, steps=last + 2)
    assert [line["step"] for line in metrics(run)] == list(range(last + 3))
