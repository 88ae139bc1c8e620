"""The alarm that stops a training run in which the curriculum has no effect."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from rollwise.errors import SilentNoOpError


class NoOpAlarm(TrainerCallback):
    """Raises at the end of the first step if no prompt was bound: training went past the curriculum."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Check at the end of every step."""
        if self._trainer._generations == 0:
            raise SilentNoOpError(
                f"step {state.global_step} ended without the curriculum having been asked: the trainer does not "
                "generate through _generate_and_score_completions (does a subclass override it, without super()?)"
            )
