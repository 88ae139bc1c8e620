"""A run's progress in the terminal: a bar with the signals that tell whether rollouts are well spent."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress
from transformers import TrainerCallback

from rollwise.progress_bar import progress_bar
from rollwise.terminal import make_console
from rollwise.training.generation.groups import Groups

_POOLS = ("heap", "solved", "unsolved", "unseen")


class Display(TrainerCallback):
    """A live bar on a terminal; elsewhere (a log file, CI) a plain line every tenth of the way and at evaluations."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or make_console(stderr=True)
        self.parts: dict[str, str] = {}
        self._bar: Progress | None = None
        self._task: Any = None

    def attach(self, trainer: Any) -> None:
        """Listen to a trainer with a curriculum, on rank 0."""
        if trainer.is_world_process_zero():
            trainer.add_callback(self)
            trainer.group_observers.append(self.on_groups)
            trainer.after_evaluation.append(lambda: self.on_scores(trainer))

    def on_groups(self, groups: Groups) -> None:
        """Take a generation's numbers."""
        numbers = groups.metrics()
        if groups.evidence.judged.any():
            self.parts["reward"] = f"reward {np.nanmean(groups.rewards):.3f}"  # as in metrics.jsonl, not the score
            self.parts["mixed"] = f"mixed {numbers['frac_mixed']:.2f}"
        self.parts["advantage"] = f"|A| {numbers['abs_advantage']:.3f}"
        sizes = [f"{name} {int(groups.curriculum[name])}" for name in _POOLS if name in groups.curriculum]
        if sizes:
            self.parts["pools"] = " · ".join(sizes)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Show the bar."""
        if self.console.is_terminal:
            self._bar = progress_bar(self.console, note="signals")
            self._task = self._bar.add_task("train", total=state.max_steps, completed=state.global_step, signals="")
            self._bar.start()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Move the bar on."""
        if self._bar is not None:
            self._bar.update(self._task, completed=state.global_step, signals=self._signals())
        elif state.global_step % max(1, state.max_steps // 10) == 0:
            self._say(f"step {state.global_step}/{state.max_steps}  {self._signals()}")

    def on_scores(self, trainer: Any) -> None:
        """Say the scores of an evaluation: of each set, and of all together."""
        if not trainer.results:
            return
        score = trainer.together.get("pass@1", float("nan"))
        self.parts["score"] = f"pass@1 {score:.3f}"
        for name, one in trainer.results.items():
            text = "  ".join(f"{k} {value:.3f}" for k, value in one.scores.items() if k.startswith("pass@"))
            where = "the end" if trainer.evaluates_end else f"step {trainer.state.global_step}"
            self._say(f"evaluation at {where}: {text} on held-out prompts {name}".rstrip())
        if len(trainer.results) > 1:
            self._say(f"together ({trainer.eval_aggregate}): pass@1 {score:.3f}")

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Take the bar down."""
        self.close()

    def close(self) -> None:
        """Give the terminal back, also after an error."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _say(self, text: str) -> None:
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def _signals(self) -> str:
        order = ("score", "reward", "mixed", "advantage", "pools")
        return "  ".join(self.parts[name] for name in order if name in self.parts)
