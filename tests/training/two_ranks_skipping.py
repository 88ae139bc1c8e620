"""Rollouts without an advantage left out of the update on two processes, of which one may have none with one."""

from pathlib import Path
from typing import Any

from ranks import digest, tell
from toys import flat_parameters, make_trainer, rows_of_updates, toy_reward

import rollwise as rw


def reward(threshold: list[int], **columns: Any) -> list[float]:
    """Of one prompt in six the toy reward, else 0: few groups have contrast."""
    rewards = toy_reward(threshold=threshold, **columns)
    return [reward * (one == 2) for reward, one in zip(rewards, threshold, strict=True)]


def train(out: Path, *, skip: bool) -> tuple[Any, list[int]]:
    """A trainer after its run, and the rows of each forward pass of this rank's loss."""
    trainer = make_trainer(
        out,
        reward=reward,
        curriculum=rw.Uniform(seed=3),
        processes=2,
        accumulate=8,
        max_steps=3,
        loss_type="bnpo",
        optim="sgd",
        learning_rate=0.5,
        save_strategy="no",
        extra={"skip_zero_advantage": skip},
    )
    rows = rows_of_updates(trainer)
    trainer.train()
    return trainer, rows


def compare(out: Path) -> Any:
    """What each rank saw with and without the option."""
    whole, all_rows = train(out, skip=False)
    less, rows = train(out, skip=True)
    apart = float((flat_parameters(whole) - flat_parameters(less)).abs().max())
    mine = {"parameters": digest(less), "apart": apart, "all_rows": all_rows, "rows": rows}
    tell(less, mine, out / "skipping.json")
    return less
