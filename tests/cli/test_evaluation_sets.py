"""Named evaluation sets from the command and from a plan: killed and resumed, shown by a dry run."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml
from processes import Command

from rollwise.cli import main
from rollwise.comparing import read_plan
from rollwise.runs.evaluations import read_evaluations, read_sets, scores_by_category
from rollwise.tasks import make_task
from rollwise.training.trainer.checkpoint import latest_complete

pytestmark = pytest.mark.usefixtures("no_figures")

CATEGORIES = {"even", "odd", "large"}


def category(record: dict[str, Any]) -> str:
    return "large" if record["target"] > 20 else "odd" if record["target"] % 2 else "even"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Countdown's puzzles of level 1 as a user's files, in three categories: to train on, and two held-out sets."""
    task = make_task("countdown", levels=(1,))
    held_out = task.eval_records(18, 0)
    parts = {"train": task.train_records(60, 0), "id": held_out[:12], "ood": held_out[12:]}
    for name, records in parts.items():
        rows = [{**record, "category": category(record)} for record in records]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def words(files: Path, policy: Path) -> list[str]:
    return [
        "train", "--model", str(policy), "--task", "countdown", "--task_options.levels", "[1]", "--data",
        str(files / "train.jsonl"), "--eval_data.id", str(files / "id.jsonl"), "--eval_data.ood",
        str(files / "ood.jsonl"), "--eval_aggregate", "prompts", "--eval_temperature", "0.7", "--keep_best",
        "eval/ood/pass@1", "--keep_checkpoints", "1", "--steps", "6", "--save_every", "2", "--eval_every", "2",
        "--num_generations_eval", "4", "--prompts_per_step", "8", "--num_generations", "4", "--learning_rate", "1e-3",
        "--curriculum", "uniform",
    ]  # fmt: skip


def scored(run: Path) -> list[dict[str, Any]]:
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [{k: v for k, v in line.items() if k.startswith("eval/")} for line in lines]


@pytest.mark.slow
def test_a_killed_run_has_the_evaluations_of_one_that_was_not(files: Path, policy: Path) -> None:
    straight, killed = files / "straight", files / "killed"
    given = words(files, policy)
    assert main([*given, "--out", str(straight)]) == 0
    command = Command(*given, "--out", str(killed))

    def in_the_second_half() -> bool:
        path = killed / "evaluations.jsonl"
        return latest_complete(killed / "checkpoints") is not None and '"step": 4' in path.read_text()

    command.wait_until(in_the_second_half)
    command.send(signal.SIGKILL)
    command.wait()
    with open(killed / "evaluations.jsonl", "a") as file:
        file.write('{"step": 6, "set": "id", "gen')
    assert main(["train", "--resume", str(killed)]) == 0

    for name in ("evaluations.jsonl", "evaluation_sets.json"):
        assert (killed / name).read_bytes() == (straight / name).read_bytes()
    assert scored(killed) == scored(straight)
    found = read_evaluations(killed)
    assert [(one.step, one.set) for one in found] == [(s, name) for s in (0, 2, 4, 6) for name in ("id", "ood")]
    assert {name: len(one.ids) for name, one in read_sets(killed).items()} == {"id": 12, "ood": 6}
    assert {name for one in found for name in scores_by_category(one)} == CATEGORIES
    for line, own, other in zip(scored(killed)[::2], found[::2], found[1::2], strict=True):
        assert line["eval/id/pass@1"] == pytest.approx(own.pass_rates.mean(), abs=1e-6)
        assert line["eval/ood/pass@1"] == pytest.approx(other.pass_rates.mean(), abs=1e-6)
        together = (own.successes.sum() + other.successes.sum()) / (4 * 18)
        assert line["eval/pass@1"] == pytest.approx(together, abs=1e-6)
    best = json.loads((killed / "checkpoints/best.json").read_text())
    assert best == json.loads((straight / "checkpoints/best.json").read_text())
    rates = {one.step: one.pass_rates.mean() for one in found if one.set == "ood" and one.step > 0}
    assert best["value"] == max(rates.values())
    assert (killed / "checkpoints/best/model.safetensors").exists()


def test_a_dry_run_names_the_sets(files: Path, policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words(files, policy), "--dry_run", "true", "--out", str(files / "run")]) == 0
    said = capsys.readouterr().out
    counts = dict.fromkeys(CATEGORIES, 0)
    for line in (files / "ood.jsonl").read_text().splitlines():
        counts[json.loads(line)["category"]] += 1
    shown = ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()) if count)
    assert "60 prompts to train on, 18 held out" in said
    assert f"evaluation set ood: 6 prompts; by category: {shown}\n" in said
    assert "evaluation set id: 12 prompts; by category: " in said
    assert "their score together: prompts (eval_aggregate)" in said
    assert f"{6 * 8 * 4 + 4 * 18 * 4:,} rollouts" in said
    assert not (files / "run").exists()


def test_countdown_has_two_sets(policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["train", "--model", str(policy), "--task_options.levels", "[1]", "--task_options.eval_levels", "[2]"]
    more = ["--num_prompts", "60", "--eval_prompts", "8", "--prompts_per_step", "8", "--dry_run", "true"]
    assert main([*given, *more]) == 0
    said = capsys.readouterr().out
    assert "evaluation set id: 8 prompts; by category: L1 8" in said
    assert "evaluation set ood: 8 prompts; by category: L2 8" in said
    assert main([*given, *more, "--keep_best", "eval/odd/pass@1"]) == 1
    assert "did you mean 'eval/ood/pass@1'" in capsys.readouterr().err


def test_a_plan_has_sets_relative_to_its_file(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names in a mapping are found as all paths are; a preset is no path."""
    base = {"data": "train.jsonl", "reward": "exact", "eval_data": {"id": "id.jsonl", "x": ["ood.jsonl", "preset:y"]}}
    (files / "plan.yaml").write_text(
        yaml.safe_dump({"base": base, "methods": {"uniform": {"curriculum": "uniform"}}, "seeds": [0]})
    )
    (files / "elsewhere").mkdir()
    monkeypatch.chdir(files / "elsewhere")
    plan = read_plan(files / "plan.yaml")
    placed = {"id": str(files / "id.jsonl"), "x": [str(files / "ood.jsonl"), "preset:y"]}
    assert plan.config("uniform", 0, Path("out")).eval_data == placed
    assert plan.resolved()["base"]["eval_data"] == placed
