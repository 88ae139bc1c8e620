"""The time of a step by phase: on trainers of both kinds, on a resume, and by a clock of our own."""

import json
from pathlib import Path
from typing import Any

import pytest
from toys import make_trainer, toy_dataset

from rollwise.training import CurriculumGRPOTrainer, CurriculumRLOOTrainer, Recorder
from rollwise.training.recording import phases as module
from rollwise.training.recording.phases import EVALUATION, Phases

OF_A_STEP = {"time/generation", "time/reward", "time/update", "time/ask", "time/tell"}


class Clock:
    """Tells what it is set to."""

    now = 0.0

    def perf_counter(self) -> float:
        return self.now


def test_each_second_counts_for_the_innermost_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    phases = Phases()
    with phases.phase("update"):
        clock.now += 1
        with phases.phase("other"):
            clock.now += 2
            with phases.phase("generation"):
                clock.now += 4
        clock.now += 8
    clock.now += 100  # of no phase
    with phases.phase(EVALUATION), phases.phase("generation"):
        clock.now += 16
    phases.add("update", 0.5)
    assert phases.take() == {"update": 9.5, "other": 2.0, "generation": 4.0}
    assert (phases.take(), phases.take_evaluation(), phases.take_evaluation()) == ({}, 16.0, 0.0)


def test_a_phase_that_is_going_on_is_divided_when_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    phases = Phases()
    with pytest.raises(KeyError), phases.phase("update"):
        clock.now += 1
        assert phases.take() == {"update": 1.0}
        clock.now += 2
        raise KeyError
    clock.now += 4
    assert phases.take() == {"update": 2.0}


@pytest.mark.parametrize("kind", [CurriculumGRPOTrainer, CurriculumRLOOTrainer])
def test_a_run_and_its_resume_have_the_time_of_each_phase(tmp_path: Path, kind: type) -> None:
    """Phases of training fit into the time that a step is charged with; an evaluation has its own."""
    options: dict[str, Any] = {
        "kind": kind, "eval_dataset": toy_dataset(4), "eval_strategy": "steps", "eval_steps": 2, "save_steps": 2,
        "save_strategy": "steps", "accumulate": 2, "num_iterations": 2,
    }  # fmt: skip
    for steps in (2, 4):
        trainer = make_trainer(tmp_path / "out", max_steps=steps, **options)
        Recorder(tmp_path / "run").attach(trainer)
        trainer.train(resume_from_checkpoint=steps > 2)
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    spent = 0.0
    for line in lines:
        generated = line["step"] % 2 == 1  # each generation is trained on twice
        assert "time/update" in line
        assert (OF_A_STEP | {"time/logprobs"} <= set(line)) == generated
        assert ("time/evaluation" in line) == (line["step"] % 2 == 0)
        times = {key: value for key, value in line.items() if key.startswith("time/") and key != "time/evaluation"}
        assert all(value > 0 for value in times.values())
        assert sum(times.values()) <= line["wall_s"] - spent + 1e-6
        spent = line["wall_s"]
