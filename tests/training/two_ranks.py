"""Trains on two processes, straight through and from a checkpoint; what each rank saw goes to JSON files."""

from pathlib import Path
from typing import Any

from ranks import digest, tell
from toys import Traced, make_trainer, toy_dataset, toy_reward

from rollwise.errors import SilentNoOpError


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


def other_rows(out: Path) -> Any:
    """What each rank says where the last one has the rows in another order: to train on, to evaluate on, or later."""
    trainer = make_trainer(out, processes=2)
    rows = toy_dataset()
    mine = rows.select(range(len(rows) - 1, -1, -1)) if trainer.accelerator.process_index else rows
    said = []
    for act in (
        lambda: make_trainer(out, dataset=mine, processes=2),
        lambda: make_trainer(out, eval_dataset=mine, processes=2),
        lambda: trainer.change_dataset(mine),
    ):
        try:
            act()
        except SilentNoOpError as error:
            said.append(str(error))
    out.mkdir(exist_ok=True)
    tell(trainer, said, out / "said.json")
    return trainer
