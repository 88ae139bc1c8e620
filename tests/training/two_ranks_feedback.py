"""Gains told after the step, posterior advantages, prompts read: on two processes, straight and from a checkpoint."""

from pathlib import Path
from typing import Any

from ranks import digest, tell
from toys import make_trainer, toy_dataset

import rollwise as rw

CURRICULA: dict[str, Any] = {
    "feedback": lambda: rw.ActorCurator(seed=1, dormant=0, warmup=0, candidate_multiplier=4),
    "posterior": lambda: rw.MaPP(seed=1),
    "hive": lambda: rw.HIVE(seed=1),
    "prepo": lambda: rw.PREPO(seed=1, steps=4),
}
LEARNT = {"feedback": "theta", "hive": "measured", "prepo": "measured"}


def train(out: Path, resume: bool, name: str) -> Any:
    trainer = make_trainer(
        out,
        curriculum=CURRICULA[name](),
        dataset=toy_dataset().add_column("embedding", [[float(i % 6), float(i % 4)] for i in range(24)]),
        processes=2,
        max_steps=3,
        save_strategy="steps",
        save_steps=2,
        extra={"posterior_advantages": name == "posterior"},
    )
    trainer.train(resume_from_checkpoint=f"{out}/checkpoint-2" if resume else None)
    bound = trainer.curriculum._pool is not None  # on rank 0 alone
    learnt = getattr(trainer.curriculum, LEARNT[name]).tolist() if bound and name in LEARNT else None
    mine = {"parameters": digest(trainer), "learnt": learnt}
    tell(trainer, mine, out / ("resumed.json" if resume else "straight.json"))
    return trainer
