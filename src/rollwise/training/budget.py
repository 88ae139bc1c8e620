"""Stops a run when it has generated its budget of tokens, so that runs can be compared at equal compute."""

from __future__ import annotations

from typing import Any

from accelerate.utils import broadcast_object_list
from transformers import TrainerCallback

from rollwise.training.recording.recorder import Recorder


class TokenBudget(TrainerCallback):
    """Ends training after the step in which the budget is used up, with an evaluation and a checkpoint.

    Every token counts that was generated to train, to measure or to screen; an oracle's and an evaluation's do not.

    Args:
        most: the budget, in generated tokens.
        recorder: who counts them. On ranks other than 0 it does not, so rank 0 decides for all.
    """

    def __init__(self, most: int, recorder: Recorder) -> None:
        self.most = most
        self.recorder = recorder

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Stop here?"""
        spent = [self.recorder.totals.tokens >= self.most]
        if args.world_size > 1:
            broadcast_object_list(spent)
        if spent[0]:
            control.should_training_stop = True
            control.should_evaluate = args.eval_strategy != "no"
            control.should_save = True
