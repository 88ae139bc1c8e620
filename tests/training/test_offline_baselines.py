"""examples/baselines/offline.py: rows beside a plan's runs, by TRL's own trainers."""

import importlib
import json
from pathlib import Path

import pytest
import yaml

from rollwise.cli import main
from rollwise.errors import ConfigError

EXAMPLES = Path(__file__).parents[2] / "examples"
BASE = {
    "model": str(EXAMPLES / "compare/starts/countdown"),
    "task": "countdown",
    "task_options": {"levels": [1, 2], "style": "compact", "demo_accuracy": 0.15},
    "trainer": "rloo",
    "steps": 2,
    "prompts_per_step": 8,
    "num_generations": 8,
    "learning_rate": 1e-3,
    "num_prompts": 40,
    "eval_prompts": 8,
    "num_generations_eval": 4,
}


def offline(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **base: object) -> Path:
    plan = {"name": "t", "baseline": "uniform", "seeds": [0, 1], "budget": {"tokens": 10**6}, "base": {**BASE, **base}}
    (folder / "plan.yaml").write_text(yaml.safe_dump({**plan, "methods": {"uniform": {"curriculum": "uniform"}}}))
    monkeypatch.syspath_prepend(str(EXAMPLES / "baselines"))
    monkeypatch.setattr("sys.argv", ["", kind, str(folder / "plan.yaml"), "--out", str(folder / kind)])
    importlib.import_module("offline").main()
    return folder / kind


@pytest.mark.slow
def test_ipo_and_teacher_sft_write_runs_that_the_report_compares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [offline(kind, tmp_path, monkeypatch) for kind in ("ipo", "teacher-sft")]
    lines = [[json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()] for run in runs]
    for before, after in lines:
        assert (before["tokens"], after["rollouts"]) == (0, 2 * 8 * 8)
        assert 0 < after["rows"] <= 16
        assert after["tokens"] >= 2 * after["rollouts"]
        assert {"eval/pass@1", "eval/pass@4", "eval/reward"} <= before.keys() & after.keys()
    shared = ("eval/pass@1", "eval/reward")
    assert [lines[0][0][name] for name in shared] == [lines[1][0][name] for name in shared]  # the same start
    assert [lines[0][1][name] for name in ("tokens", "rows")] == [lines[1][1][name] for name in ("tokens", "rows")]
    assert main(["report", *map(str, runs), "--baseline", "ipo", "--out", str(tmp_path / "page")]) == 0
    assert "teacher-sft" in (tmp_path / "page/report.html").read_text()


def test_other_tasks_have_no_solver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="'reversal'; the solver of this script solves countdown"):
        offline("ipo", tmp_path, monkeypatch, task="reversal", task_options={})
