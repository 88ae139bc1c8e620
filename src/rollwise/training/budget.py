"""When a run has done all that it was to do: its steps, or its budget, so that runs are compared at equal compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from accelerate import PartialState
from transformers import TrainerCallback

from rollwise.errors import StateFileError
from rollwise.runs.folder import RunFolder
from rollwise.runs.log_ends import Totals, read_log
from rollwise.runs.names import resume_command
from rollwise.training.config import TrainConfig
from rollwise.training.recording.recorder import Recorder
from rollwise.training.trainer.checkpoint import checkpoints, step_of
from rollwise.training.trainer.ranks import on_main


class Budget(TrainerCallback):
    """Ends training after the step in which a budget is used up, with an evaluation and a checkpoint.

    Every token counts that was generated to train, to measure or to screen; an oracle's and an evaluation's do not.
    Hours are those of all training that led to the policy, likewise.

    Args:
        recorder: who counts them. On ranks other than 0 it does not, so rank 0 decides for all.
        tokens: the budget, in generated tokens; None for no limit.
        hours: the budget, in hours; None for no limit.
    """

    def __init__(self, recorder: Recorder, *, tokens: int | None = None, hours: float | None = None) -> None:
        self.recorder, self.tokens, self.hours = recorder, tokens, hours

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Stop here?"""
        if on_main(PartialState(), lambda: is_spent(self.recorder.totals, tokens=self.tokens, hours=self.hours)):
            control.should_training_stop = True
            control.should_evaluate = args.eval_strategy != "no"
            control.should_save = True


def is_spent(totals: Totals, *, tokens: int | None, hours: float | None) -> bool:
    """Whether a run that has spent `totals` has used one of its budgets up.

    >>> is_spent(Totals(tokens=900, wall_s=7200.0), tokens=1000, hours=2.0)
    True
    """
    return (tokens is not None and totals.tokens >= tokens) or (hours is not None and totals.wall_s >= 3600 * hours)


def is_over(config: TrainConfig, folder: RunFolder, step: int) -> bool:
    """Whether a run whose newest checkpoint is of `step` has done all its steps or used up its tokens or hours."""
    return step >= config.steps or is_spent(folder.spent_by(step), tokens=config.token_budget, hours=config.max_hours)


def done_at(config: TrainConfig, folder: RunFolder, checkpoint: Path | None) -> int | None:
    """The step at which a run that is to go on is complete; None where it is not.

    If no checkpoint is kept, its logs decide: a new start would write over them.

    Args:
        config: Its options, with new limits if there are any.
        folder: Its folder, with the options that it had.
        checkpoint: What it is to go on from; None for the beginning.

    Raises:
        StateFileError: It is complete by the limits that it had and not by new ones, and no checkpoint is kept.
    """
    if checkpoint is not None or checkpoints(folder.checkpoints):
        step = 0 if checkpoint is None else step_of(checkpoint)
        return step if is_over(config, folder, step) else None
    step = max((int(line["step"]) for _, line in read_log(folder.metrics)), default=0)
    if is_over(config, folder, step):
        return step
    if is_over(TrainConfig.from_dict(folder.read_config()), folder, step):
        raise StateFileError(
            f"{str(folder.path)!r} is complete, with {step} steps, but its checkpoints are not there: it can't be "
            "extended, only trained again over its logs; put a checkpoint back, or choose another --out"
        )
    return None


def limits_of(config: TrainConfig, folder: RunFolder, step: int) -> str:
    """The options that ended a run, with what they are now."""
    spent = folder.spent_by(step)
    ends = {
        f"--steps (now {config.steps})": step >= config.steps,
        f"--token_budget (now {config.token_budget or 0:,})": is_spent(spent, tokens=config.token_budget, hours=None),
        f"--max_hours (now {config.max_hours or 0:g})": is_spent(spent, tokens=None, hours=config.max_hours),
    }
    return " and ".join(limit for limit, over in ends.items() if over)


def ended_early(config: TrainConfig, folder: RunFolder, step: int) -> list[str]:
    """Why a run ended at `step`, before all of its steps, in a line; nothing where it did not."""
    if step >= config.steps:
        return []
    if limit := limits_of(config, folder, step):
        return [f"ended at step {step} of {config.steps}, by {limit}"]
    return [f"ended at step {step} of {config.steps}, before it was complete; {resume_command(folder.path)} goes on"]
