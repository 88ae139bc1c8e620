"""Groups of different size on two processes, also through a gate, after a screening and in rounds; and resumed."""

from pathlib import Path
from typing import Any

from allocated import InTurn, Steep
from probing import speed
from ranks import digest, tell
from toys import make_trainer

import rollwise as rw
from rollwise.gates import DynamicSampling

STEEP = Steep(min_rollouts=1, max_rollouts=9)


def curriculum_of(way: str) -> rw.Curriculum:
    if way == "screening":
        return speed(allocator=STEEP)
    allocator = {"gate": STEEP, "rounds": rw.ReinforceAda(round_rollouts=5, rounds=3), "once": InTurn()}[way]
    return rw.Recommended(seed=3, allocator=allocator, rails=None)


def train(out: Path, resume: bool, way: str = "once") -> Any:
    sizes: list[list[int]] = []
    used: list[int] = []
    trainer = make_trainer(
        out,
        curriculum=curriculum_of(way),
        processes=2,
        max_steps=3,
        save_strategy="steps",
        save_steps=2,
        extra={
            "group_observers": [
                lambda groups: sizes.append(groups.sizes.tolist()),
                lambda groups: used.append(int(groups.used.sum())),
            ],
            **({"gate": DynamicSampling()} if way == "gate" else {}),
        },
    )
    trainer.train(resume_from_checkpoint=f"{out}/checkpoint-2" if resume else None)
    mine = {
        "sizes": sizes,
        "used": used,
        "parameters": digest(trainer),
        "told": trainer.curriculum.metrics()["rollouts"] if trainer.curriculum._pool is not None else None,
    }
    tell(trainer, mine, out / ("resumed.json" if resume else "straight.json"))
    return trainer
