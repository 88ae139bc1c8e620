"""When a run has done all that it was to do."""

from __future__ import annotations

from rollwise.runs.folder import RunFolder
from rollwise.training.budget import is_spent
from rollwise.training.config import TrainConfig


def is_over(config: TrainConfig, folder: RunFolder, step: int) -> bool:
    """Whether a run whose newest checkpoint is of `step` has done all its steps or used up its tokens or hours."""
    return step >= config.steps or is_spent(folder.spent_by(step), tokens=config.token_budget, hours=config.max_hours)


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
    limit = limits_of(config, folder, step) if step < config.steps else ""
    return [f"ended at step {step} of {config.steps}, by {limit}"] if limit else []
