"""What the recorder writes goes, as flat numbers, to whatever `report_to` names."""

import json
from pathlib import Path
from typing import Any

import pytest
from toys import make_trainer, toy_dataset

import rollwise as rw
from rollwise.cli import main
from rollwise.training import Recorder, RunFolder

STEPS = 4
SPENT = ("rollouts", "tokens", "flops", "wall_s")
# In the trackers these are TRL's own: its `reward`, and under `completions/` the mean length and the clipped ratio; the
# time of an evaluation is `eval_runtime`. The step and the time are a tracker's axes.
TRLS_OWN = {"reward", "completion_length", "clipped_ratio", "step", "time", "time/evaluation"}


def train(tmp_path: Path, report_to: str) -> tuple[Any, list[dict[str, Any]]]:
    folder = RunFolder(tmp_path / "run")
    trainer = make_trainer(
        folder.checkpoints,
        max_steps=STEPS,
        report_to=report_to,
        eval_dataset=toy_dataset(4),
        eval_strategy="steps",
        eval_steps=2,
        num_generations_eval=2,
        extra={"gate": rw.DynamicSampling(max_rounds=2), "log": "all"},
    )
    Recorder(folder).attach(trainer)
    trainer.train()
    rows = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    assert [row["step"] for row in rows] == list(range(1, STEPS + 1))
    return trainer, rows


def tracked(name: str) -> str:
    """A metric's name in TRL's log."""
    if name in SPENT:
        return f"spent/{name}"
    if name.startswith("eval/"):
        return name.replace("eval/", "eval_")
    plain = "/" in name or name in ("loss", "grad_norm", "learning_rate", "entropy")
    return name if plain else f"curriculum/{name}"


def test_every_number_of_a_step_is_in_trls_log(tmp_path: Path) -> None:
    trainer, rows = train(tmp_path, "none")
    logged: dict[int, dict[str, float]] = {}
    for entry in trainer.state.log_history:
        logged.setdefault(entry["step"], {}).update(entry)
    names = {name for row in rows for name in row}
    assert {"frac_mixed", "gate/rounds", "curriculum/heap", "eval/pass@1", "tokens"} <= names
    for row in rows:
        for name in set(row) - TRLS_OWN:
            if row[name] is not None:
                assert logged[row["step"]][tracked(name)] == pytest.approx(row[name], rel=1e-5, abs=1e-6), name


def test_what_counts_from_the_beginning_is_logged_as_it_is(tmp_path: Path) -> None:
    """Not as the mean over the steps between two logs, of which TRL's default is ten."""
    extra = {"run": tmp_path / "run", "log": "all"}
    trainer = make_trainer(tmp_path / "out", max_steps=6, logging_steps=3, extra=extra)
    trainer.train()
    rows = {row["step"]: row for row in map(json.loads, (tmp_path / "run/metrics.jsonl").read_text().splitlines())}
    logs = [entry for entry in trainer.state.log_history if "loss" in entry]
    assert [entry["step"] for entry in logs] == [3, 6]
    for entry in logs:
        row = rows[entry["step"]]
        for name in ("rollouts", "tokens", "flops"):
            assert entry[f"spent/{name}"] == pytest.approx(row[name], rel=1e-5)
        for name in ("curriculum/coverage", "curriculum/effective_ratio", "curriculum/asked"):
            assert entry[name] == pytest.approx(row[name], rel=1e-5)
        mean = sum(rows[step]["success"] for step in range(entry["step"] - 2, entry["step"] + 1)) / 3
        assert entry["curriculum/success"] == pytest.approx(mean, rel=1e-5)


def test_tensorboard_holds_them_without_account_or_network(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    _, rows = train(tmp_path, "tensorboard")
    (events,) = (tmp_path / "run/checkpoints/runs").iterdir()
    board = EventAccumulator(str(events)).Reload()
    for row in rows:
        for name in set(row) - TRLS_OWN:
            tag = tracked(name).replace("eval_", "eval/") if name.startswith("eval/") else f"train/{tracked(name)}"
            if row[name] is not None:
                value = {event.step: event.value for event in board.Scalars(tag)}[row["step"]]
                assert value == pytest.approx(row[name], rel=1e-5, abs=1e-6), tag


def test_a_tracker_that_is_not_there_is_named_before_anything_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "--report_to", "abacus", "--out", str(tmp_path / "run")]) == 1
    error = capsys.readouterr().err
    assert "report_to 'abacus' is not installed" in error
    assert "Traceback" not in error
    assert not (tmp_path / "run/config.yaml").exists()
