"""Writes `evaluations.jsonl` and `evaluation_sets.json` while a trainer trains."""

from __future__ import annotations

from typing import Any

from rollwise.runs.evaluations import evaluation_line, write_sets
from rollwise.runs.folder import RunFolder


class EvaluationLog:
    """A line for each evaluation of each set, with the results of its prompts.

    Args:
        folder: where to write.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self._waiting: list[dict[str, Any]] | None = []  # from before the first training; None once it has begun

    def begin(self, trainer: Any, *, anew: bool) -> None:
        """Write the trainer's sets, and for a run that begins anew what was evaluated before it."""
        if sets := trainer.evaluation_sets():
            write_sets(self.folder.path, {name.replace("/", "-"): one for name, one in sets.items()})
        waiting, self._waiting = self._waiting, None
        if waiting and anew:
            self.folder.append(self.folder.evaluations, waiting)

    def add(self, step: int, results: Any) -> None:
        """Write what was measured of a set of the trainer's; nothing where its prompts can't be told apart."""
        measured = None if results.own is None else results.by_row()
        if measured is None:
            return
        line = evaluation_line(step, results.own.replace("/", "-"), results.generations, *measured)
        if self._waiting is None:
            self.folder.append(self.folder.evaluations, [line])
        else:
            self._waiting.append(line)
