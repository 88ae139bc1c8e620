"""A real run's folder: a toy policy on TRL's trainer, six steps, with evaluations and categories."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from toys import make_trainer, toy_dataset

import rollwise as rw
from rollwise.training import Recorder, RunFolder

STEPS = 6
CONFIG = {"task": "toy", "curriculum": "prioritized", "model": "toy", "seed": 3, "steps": STEPS, "eval_every": 2}


@pytest.fixture(scope="session")
def real_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = RunFolder(tmp_path_factory.mktemp("runs") / "real")
    folder.write_config(CONFIG)
    categories = [f"c{i % 3}" for i in range(24)]
    trainer = make_trainer(
        folder.checkpoints,
        max_steps=STEPS,
        dataset=toy_dataset().add_column("category", categories),
        eval_dataset=toy_dataset(4),
        eval_strategy="steps",
        eval_steps=2,
        num_generations_eval=2,
        curriculum=rw.PrioritizedReplay(seed=3, retest_every=2),
    )
    Recorder(folder, evaluate_first=True).attach(trainer)
    trainer.train()
    return folder.path


@pytest.fixture
def begun(tmp_path: Path) -> RunFolder:
    """A run that has begun, without a line yet."""
    folder = RunFolder(tmp_path / "begun")
    folder.write_config(CONFIG)
    return folder


@pytest.fixture
def replay(real_run: Path, begun: RunFolder) -> Callable[[int], None]:
    """Write the real run's lines of one step into the run that has begun, groups first, as a recorder does."""

    def write(step: int) -> None:
        for source, target in (("rollouts.jsonl", begun.rollouts), ("metrics.jsonl", begun.metrics)):
            rows: list[dict[str, Any]] = [json.loads(text) for text in (real_run / source).read_text().splitlines()]
            begun.append(target, [row for row in rows if row["step"] == step])

    return write
