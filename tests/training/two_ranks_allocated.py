"""Groups of different size on two processes, straight through and from a checkpoint."""

from pathlib import Path
from typing import Any

from allocated import InTurn
from ranks import digest, tell
from toys import make_trainer

import rollwise as rw


def train(out: Path, resume: bool) -> Any:
    sizes: list[list[int]] = []
    trainer = make_trainer(
        out,
        curriculum=rw.Recommended(seed=3, allocator=InTurn(), rails=None),
        processes=2,
        max_steps=4,
        save_strategy="steps",
        save_steps=2,
        extra={"group_observers": [lambda groups: sizes.append(groups.sizes.tolist())]},
    )
    trainer.train(resume_from_checkpoint=f"{out}/checkpoint-2" if resume else None)
    mine = {
        "sizes": sizes,
        "parameters": digest(trainer),
        "told": trainer.curriculum.metrics()["rollouts"] if trainer.curriculum._pool is not None else None,
    }
    tell(trainer, mine, out / ("resumed.json" if resume else "straight.json"))
    return trainer
