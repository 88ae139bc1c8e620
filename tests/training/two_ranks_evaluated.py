"""Evaluates two sets on two processes, whose prompts do not fill the batches up."""

from pathlib import Path
from typing import Any

from datasets import Dataset
from toys import make_trainer, toy_dataset

from rollwise.training import Recorder

SETS = {"id": (7, 3), "ood": (3, 1)}
"""Prompts of each set, and how many of them every rollout solves."""


def held_out(n: int, solved: int) -> Dataset:
    rows = [{"id": f"h{i}", "prompt": f"held {i}=", "threshold": 0, "good": float(i < solved)} for i in range(n)]
    return Dataset.from_list(rows)


def train(out: Path) -> Any:
    def reward(completions: list[Any], good: list[float], **_: Any) -> list[float]:
        return [float(one) for one in good]

    trainer = make_trainer(
        out,
        reward=reward,
        dataset=toy_dataset().map(lambda row: {"good": 0.5}),
        eval_dataset={name: held_out(*sizes) for name, sizes in SETS.items()},  # type: ignore[arg-type]
        eval_strategy="steps",
        eval_steps=1,
        num_generations_eval=2,
        per_device_eval_batch_size=4,
        processes=2,
        max_steps=1,
        extra={"eval_aggregate": "prompts"},
    )
    Recorder(out / "run").attach(trainer)
    trainer.train()
    return trainer
