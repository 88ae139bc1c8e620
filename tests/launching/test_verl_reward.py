"""The reward that verl calls is the one that the run's file names."""

import json
import math
from pathlib import Path

from rollwise.engines.verl.settings import TOLD
from rollwise.launching.verl_reward import compute_score
from rollwise.runs.folder import RunFolder
from rollwise.training.config import TrainConfig


def _folder(tmp_path: Path, **options: object) -> str:
    RunFolder(tmp_path).write_config(TrainConfig(**options).to_dict())  # type: ignore[arg-type]
    return str(tmp_path)


def test_one_reward_is_the_score(tmp_path: Path) -> None:
    folder = _folder(tmp_path, data="x.jsonl", reward="exact", model="m")
    row = {"answer": "4", "id": "a"}
    assert compute_score("d", "4", "4", row, folder=folder) == {"score": 1.0, TOLD: 1.0}
    assert compute_score("d", "5", "4", row, folder=folder)["score"] == 0.0


def test_several_are_summed_and_success_is_told(tmp_path: Path) -> None:
    (tmp_path / "r.py").write_text(
        "def accuracy(completions, answer, **_): return [float(c == a) for c, a in zip(completions, answer)]\n"
        "def brief(completions, **_): return [-float(len(c)) for c in completions]\n"
        "def broken(completions, **_): return [None for _ in completions]\n"
    )
    where = [f"{tmp_path / 'r.py'}:accuracy", f"{tmp_path / 'r.py'}:brief"]
    folder = _folder(tmp_path, data="x.jsonl", reward=where, reward_weights=[1.0, 0.5], success="accuracy", model="m")
    scores = compute_score("d", "44", "44", {"answer": "44"}, folder=folder)
    assert scores == {"score": 1.0 + 0.5 * -2.0, TOLD: 1.0, "accuracy": 1.0, "brief": -2.0}
    json.dumps(scores)


def test_a_reward_that_is_called_score_is_not_taken_for_the_sum(tmp_path: Path) -> None:
    (tmp_path / "r.py").write_text(
        "def score(completions, **_): return [1.0 for _ in completions]\n"
        "def brief(completions, **_): return [-0.25 for _ in completions]\n"
    )
    where = [f"{tmp_path / 'r.py'}:score", f"{tmp_path / 'r.py'}:brief"]
    folder = _folder(tmp_path, data="x.jsonl", reward=where, model="m")
    assert compute_score("d", "4", "4", {}, folder=folder) == {"score": 0.75, TOLD: 0.75, "brief": -0.25}


def test_what_cannot_be_scored_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "r.py").write_text("def broken(completions, **_): return [None for _ in completions]\n")
    folder = _folder(tmp_path, data="x.jsonl", reward=f"{tmp_path / 'r.py'}:broken", model="m")
    scores = compute_score("d", "4", "4", {}, folder=folder)
    assert scores["score"] == 0.0
    assert math.isnan(scores[TOLD])


def test_a_tasks_verifier_scores_its_rows(tmp_path: Path) -> None:
    config = TrainConfig(task="countdown", model="m")
    RunFolder(tmp_path).write_config(config.to_dict())
    from rollwise.sampling.own_task import task_of

    record = task_of(config).train_records(1, 0)[0]
    scores = compute_score("countdown", "nothing", "", dict(record), folder=str(tmp_path))
    assert scores["score"] == scores[TOLD] < 1.0
