"""`rollwise compare` for real: methods x seeds in processes of their own, killed, resumed, reported."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from made_runs import lines, write_run
from processes import Command

from rollwise.cli import main
from rollwise.cli.compare import _default_jobs
from rollwise.comparing import read_plan
from rollwise.comparing.timing import note_timing
from rollwise.comparing.workers import Workers
from rollwise.evaluation.comparison.timing import read_timings
from rollwise.models import EmbeddedConfig, embedded_policy
from rollwise.tasks import make_task

pytestmark = pytest.mark.usefixtures("no_figures", "forked_workers")

TINY = EmbeddedConfig(hidden_size=16, num_layers=1, num_heads=2, intermediate_size=32, num_demos=200, sft_steps=8)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    policy = embedded_policy(make_task("reversal", longest=4), config=TINY, cache_dir=folder / "cache")
    base = {
        "task": "reversal", "task_options": {"longest": 4, "broken": 0.5}, "model": str(policy), "steps": 40,
        "prompts_per_step": 4, "num_generations": 4, "num_prompts": 40, "eval_prompts": 8, "eval_every": 4,
        "num_generations_eval": 2, "save_every": 2, "keep_checkpoints": 1,
    }  # fmt: skip
    gated = {"gate": "mixed", "gate_options": {"max_rounds": 2}}
    methods: dict[str, Any] = {
        "uniform": {"curriculum": "uniform"},
        "oracle": {"curriculum": "oracle", "curriculum_options": {"candidates": 12, "probe_rollouts": 4}, **gated},
    }
    values = {"baseline": "uniform", "oracle": "oracle", "seeds": [0, 1], "budget": {"tokens": 500}}
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump({"name": "tiny", **values, "base": base, "methods": methods}))
    return path


IN_A_GROUP = """
import os, sys
from pathlib import Path
from processes import OwnWorker
from rollwise.cli import main
from rollwise.comparing import workers
os.setsid()
out = Path(sys.argv[sys.argv.index("--out") + 1])
out.mkdir()
(out / "group").write_text(str(os.getpgrp()))
new_interpreter = workers.subprocess.Popen
workers.subprocess.Popen = lambda command, **named: (
    OwnWorker if command[3].endswith("seed0.json") else new_interpreter
)(command, **named)
sys.exit(main(sys.argv[1:]))
"""


def running(group: int) -> bool:
    """Whether any process of this group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def metrics(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_killed_and_gone_on_with_then_compared_at_equal_compute(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The comparison is killed when one run has saved and another process, a new interpreter, has just begun."""
    out = tmp_path / "out"
    command = ["compare", str(plan), "--out", str(out), "--jobs", "2"]
    process = Command(*command, code=IN_A_GROUP)
    first = out / "runs/uniform/seed0"
    process.wait_until(lambda: bool(list(first.glob("checkpoints/*/rollwise_complete.json"))))
    group = int((out / "group").read_text())
    process.send(signal.SIGKILL)  # the comparison alone: its runs must not go on without it
    assert process.wait() == -signal.SIGKILL
    deadline = time.monotonic() + 200
    while running(group):
        assert time.monotonic() < deadline
        time.sleep(0.05)

    assert main(command) == 0
    said = capsys.readouterr().out
    for method in ("uniform", "oracle"):
        for seed in (0, 1):
            lines = metrics(out / f"runs/{method}/seed{seed}")
            assert [line["step"] for line in lines] == list(range(len(lines)))
            assert lines[-2]["tokens"] < 500 <= lines[-1]["tokens"]
            assert "eval/pass@1" in lines[-1]
    assert f"report: {out / 'report.html'}" in said
    results = json.loads((out / "results.json").read_text())
    assert {method["name"] for method in results["methods"]} == {"uniform", "oracle"}

    before = (out / "runs/oracle/seed1/metrics.jsonl").read_bytes()
    assert main(["compare", str(plan), "--out", str(out)]) == 0  # nothing left to train
    assert (out / "runs/oracle/seed1/metrics.jsonl").read_bytes() == before
    assert "4 runs, 4 of them complete" in capsys.readouterr().err

    assert main([*command, "--delete_checkpoints", "--seeds", "1"]) == 0
    assert [len(list(out.glob(f"runs/*/seed{seed}/checkpoints/checkpoint-*"))) > 0 for seed in (0, 1)] == [True, False]
    assert main([*command, "--delete_checkpoints"]) == 0
    assert "4 runs, 4 of them complete" in capsys.readouterr().err
    assert not list(out.glob("runs/*/*/checkpoints/*checkpoint-*"))
    assert (out / "runs/oracle/seed1/metrics.jsonl").read_bytes() == before


@pytest.mark.slow
def test_a_run_that_fails_is_named_and_does_not_stop_the_others(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = yaml.safe_load(plan.read_text())
    values["methods"] = {
        "uniform": {},
        "impossible": {"trainer_options": {"loss_type": "none"}},  # TRL says so in the first step
    }
    values |= {"oracle": None, "seeds": [0], "budget": {"tokens": 100}, "timing": True}
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump(values))
    command = ["compare", str(tmp_path / "bad.yaml"), "--out", str(tmp_path / "out"), "--jobs", "1"]
    assert main([*command, "--delete_checkpoints"]) == 1
    said = capsys.readouterr().err
    assert "failed: impossible seed 0 (exit status 1); see" in said
    assert "\n  rollwise: TRL refuses these options (trainer_options): Unknown loss type: none" in said
    assert "Unknown loss type: none" in (tmp_path / "out/logs/impossible-seed0.log").read_text()
    assert metrics(tmp_path / "out/runs/uniform/seed0")[-1]["tokens"] >= 100
    assert not list((tmp_path / "out/runs/uniform/seed0/checkpoints").glob("*checkpoint-*"))
    cores = sorted(os.sched_getaffinity(0))
    (timing,) = read_timings(tmp_path / "out/runs/uniform/seed0")
    assert (timing.jobs, timing.pinned, timing.cores) == (1, True, tuple(cores[1:] or cores))
    assert timing.processor


def test_a_run_that_the_kernel_kills_says_how_it_ended(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log says nothing."""
    killed = [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
    monkeypatch.setattr(Workers, "start", lambda self, run: self.active.update({subprocess.Popen(killed): run}))
    arguments = ["--out", str(tmp_path / "out"), "--methods", "uniform", "--seeds", "0", "--jobs", "1"]
    assert main(["compare", str(plan), *arguments]) == 1
    said = capsys.readouterr().err
    assert "failed: uniform seed 0 (ended by SIGKILL, as when memory runs out: the same command goes on with it" in said
    assert "1 run, 0 of them complete" in said


def test_a_run_that_ends_before_it_is_complete_keeps_its_checkpoint(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after SIGTERM with transformers' `enable_jit_checkpoint`: its exit status is 0."""
    monkeypatch.setattr(Workers, "start", lambda self, run: self.active.update({subprocess.Popen(["true"]): run}))
    run = tmp_path / "out/runs/uniform/seed0"
    write_run(run, lines([0.1, 0.2]), steps=40)
    (run / "checkpoints/checkpoint-1").mkdir(parents=True)
    options = read_plan(plan).config("uniform", 0, run)
    (run / "config.yaml").write_text(yaml.safe_dump(options.to_dict()))
    arguments = ["--out", str(tmp_path / "out"), "--methods", "uniform", "--seeds", "0", "--jobs", "1"]
    assert main(["compare", str(plan), *arguments, "--delete_checkpoints"]) == 0
    assert (run / "checkpoints/checkpoint-1").is_dir()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system binds no process to cores")
def test_jobs_and_threads_are_of_the_cores_that_the_process_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a batch system that gives a job a few of a machine's many cores."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(own)})
    try:
        assert _default_jobs() == 1
        assert Workers(tmp_path, jobs=1).environment["OMP_NUM_THREADS"] == "1"
    finally:
        os.sched_setaffinity(0, own)


def test_an_attempt_that_failed_before_a_run_began_is_no_part_of_its_timing(tmp_path: Path) -> None:
    note_timing(tmp_path, jobs=2, pinned=False)  # refused then: the folder has no config.yaml
    note_timing(tmp_path, jobs=1, pinned=False)
    (tmp_path / "config.yaml").write_text("{}")
    note_timing(tmp_path, jobs=3, pinned=False)  # resumed
    assert [timing.jobs for timing in read_timings(tmp_path)] == [1, 3]


def test_a_report_by_another_plan_than_the_folder_s_says_so(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, changed = tmp_path / "out", tmp_path / "changed.yaml"
    read_plan(plan).write(out)
    for method in ("uniform", "oracle"):
        write_run(out / f"runs/{method}/seed0", lines([0.1, 0.2]), steps=1)
    values = yaml.safe_load(plan.read_text())
    changed.write_text(yaml.safe_dump({**values, "baseline": "oracle", "oracle": None}))
    for file, said in ((plan, ""), (changed, "comparison.yaml, which has other baseline, oracle than")):
        assert main(["compare", str(file), "--out", str(out), "--report_only"]) == 0
        assert said in capsys.readouterr().err if said else not capsys.readouterr().err
        assert json.loads((out / "results.json").read_text())["baseline"] == "uniform"
    (out / "report.html").unlink()
    (out / "report.html").mkdir()  # as where nothing can be written: `compare --out` would train all of it again
    assert main(["compare", str(plan), "--out", str(out), "--report_only"]) == 1
    shown = capsys.readouterr()
    assert "uniform" in shown.out  # the table
    assert shown.err.startswith("rollwise: all runs are kept, but ")
    assert shown.err.endswith(f": rollwise report '{out}' --out FOLDER\n")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--methods", "nobody"], "method 'nobody' is not in the plan; it has"),
        (["--seeds", "7"], "seed 7 is not in the plan; it has 0, 1"),
        (["--jobs", "0"], "jobs must be"),
        (["--learning_rate", "0"], "learning_rate must be a number in (0"),
        (["--model", "./none"], "model folder 'none' does not exist; give a folder"),
        (["--model", "starts/none"], "can be loaded from 'starts/none' (no such folder is here)"),
        (["--report_only", "--seeds", "0"], "--seeds says what to train, and --report_only trains nothing"),
        (["--report_only", "--delete_checkpoints"], "--delete_checkpoints is for training, and --report_only trains"),
        (["--report_only", "--out", "/nowhere"], "'/nowhere' holds no comparison yet"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str], reason: str, plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(plan), "--out", str(tmp_path / "out"), *arguments]) == 1
    said = capsys.readouterr().err
    assert said.startswith("rollwise: ")
    assert reason in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"trainer_options": {"num_iteration": 2}}, "has no option 'num_iteration' (did you mean 'num_iterations'?)"),
        ({"report_to": "abacus"}, "report_to 'abacus' is not installed"),
        ({"profile": "nowhere"}, "there is no profile 'nowhere'"),
        ({"peft": {"rank": 8}}, "peft's LoraConfig has no option 'rank'"),
        ({"num_prompts": 1}, "distinct prompts but the pool has 1"),
        ({"keep_best": "pass@3"}, "keep_best must be a score of the evaluations"),
        ({"curriculum": "bots", "curriculum_options": {"prior": "references"}}, "reference_pass_rates"),
        ({"eval_prompts": 0}, "eval_prompts 0 evaluates nothing, and scores are what is compared"),
    ],
)
def test_what_a_later_run_would_refuse_is_refused_before_the_first(
    options: dict[str, Any], reason: str, plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = yaml.safe_load(plan.read_text())
    values |= {"methods": {"uniform": {}, "late": options}, "oracle": None}
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump(values))
    assert main(["compare", str(tmp_path / "bad.yaml"), "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("rollwise: method 'late': ")
    assert reason in said
    assert not (tmp_path / "out").exists()
