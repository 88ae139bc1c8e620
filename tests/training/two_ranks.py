"""Trains on two processes, straight through and from a checkpoint; what each rank saw goes to JSON files."""

from pathlib import Path
from typing import Any

from ranks import digest, tell
from toys import Traced, make_trainer, toy_reward


def train(out: Path, resume: bool) -> Any:
    seen: list[list[str]] = []

    def reward(prompts: list[str], **columns: Any) -> list[float]:
        seen.append(prompts)
        return toy_reward(**columns)

    trainer = make_trainer(
        out,
        reward=reward,
        curriculum=Traced(seed=3, retest_every=2),
        accumulate=2,
        processes=2,
        max_steps=4,
        save_strategy="steps",
        save_steps=2,
    )
    trainer.train(resume_from_checkpoint=f"{out}/checkpoint-2" if resume else None)
    mine = {
        "rank": trainer.accelerator.process_index,
        "seen": seen,
        "parameters": digest(trainer),
        "bound": trainer.curriculum._pool is not None,
        "trace": getattr(trainer.curriculum, "trace", []),  # rank 0 alone has a bound curriculum
    }
    tell(trainer, mine, out / ("resumed.json" if resume else "straight.json"))
    return trainer
