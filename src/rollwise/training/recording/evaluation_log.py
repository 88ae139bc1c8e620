"""Writes `evaluations.jsonl` and `evaluation_sets.json` while a trainer trains."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from rollwise.runs.evaluations import EvaluationSet, evaluation_line, read_sets, write_sets
from rollwise.runs.folder import RunFolder
from rollwise.runs.lines import Faults

logger = logging.getLogger(__name__)


class EvaluationLog:
    """A line for each evaluation of each set, with the results of its prompts."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self._waiting: list[dict[str, Any]] | None = []  # from before the first training; None once it has begun

    def begin(self, trainer: Any, *, anew: bool) -> None:
        """Write the trainer's sets, and for a run that begins anew what was evaluated before it."""
        if sets := {name.replace("/", "-"): one for name, one in (trainer.evaluation_sets() or {}).items()}:
            if not anew:
                _warn_of_others(read_sets(self.folder.path, Faults()), sets)
            write_sets(self.folder.path, sets)
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


def _warn_of_others(before: Mapping[str, EvaluationSet], now: Mapping[str, EvaluationSet]) -> None:
    """A run that goes on with other held-out prompts has scores that can't be compared with one another."""
    for name in dict.fromkeys((*before, *now)) if before else ():
        then, new = ([] if name not in sets else [*map(str, sets[name].ids)] for sets in (before, now))
        if then != new:
            logger.warning(
                "the held-out prompts%s are not those of before: %d then, %d now, %d in both; scores from before this "
                "resume and from after it do not measure the same",
                *(f" of {name!r}" if name else "", len(then), len(new), len({*then} & {*new})),
            )
