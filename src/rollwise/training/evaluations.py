"""When a run is evaluated besides every so many steps: by generated tokens, and once more at its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accelerate import PartialState
from transformers import TrainerCallback

from rollwise.training.config import TrainConfig
from rollwise.training.recording.recorder import Recorder
from rollwise.training.trainer.ranks import on_main


class Evaluations(TrainerCallback):
    """Evaluates by generated tokens, and with more prompts at the end of the run.

    The evaluation at the end follows the last of the others, before the last checkpoint is written, so a run that is
    killed in it makes it again. Add it after everything that stops a run or takes scores.

    Args:
        recorder: counts the tokens; on ranks other than 0 it does not, so rank 0 decides for all.
        config: of the run.
        end_sets: sets of the evaluation at the end by name, "" for the only one; empty for no such evaluation.
    """

    def __init__(self, recorder: Recorder, config: TrainConfig, end_sets: Mapping[str, Any]) -> None:
        self.recorder, self.config, self.end_sets = recorder, config, end_sets
        self._trainer: Any = None
        self._before = 0  # tokens by the end of the step before
        self._over = False

    def attach(self, trainer: Any) -> None:
        """Listen to a trainer with a curriculum."""
        self._trainer = trainer
        trainer.add_callback(self)
        trainer.after_evaluation.append(self._evaluate_end)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """A run that goes on has generated tokens already."""
        self._before, self._over = self.recorder.totals.tokens, False

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Evaluate now?"""
        self._over = control.should_training_stop
        every = self.config.eval_every_tokens
        if every is None or args.eval_strategy == "no":
            return
        before, self._before = self._before, self.recorder.totals.tokens
        if on_main(PartialState(), lambda: passes_multiple(before, self._before, every)):
            control.should_evaluate = True

    def _evaluate_end(self) -> None:
        if self._over and self.end_sets and not self._trainer.evaluates_end:
            sets = self.end_sets.get("", self.end_sets)
            self._trainer.evaluate_end(sets, self.config.num_generations_end)


def passes_multiple(before: int, after: int, every: int) -> bool:
    """Whether a multiple of `every` lies in (before, after].

    >>> passes_multiple(90, 100, 100), passes_multiple(100, 190, 100), passes_multiple(190, 420, 100)
    (True, False, True)
    """
    return after // every > before // every
