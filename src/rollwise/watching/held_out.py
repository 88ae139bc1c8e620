"""The newest scores by category of a run's evaluation sets, for the screen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rollwise.evaluation.categories import CategoryScores, category_scores
from rollwise.runs.evaluations import read_evaluations
from rollwise.runs.lines import Faults


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A row for each of C categories, a column for each of S evaluation sets.

    Attributes:
        step: of the newest evaluation.
        sets: (S,) names; `pass@1` for a set without one.
        rows: (C,) each category and its pass@1 on each set, (S,); NaN where a set has no such prompt.
    """

    step: int
    sets: tuple[str, ...]
    rows: tuple[tuple[str, tuple[float, ...]], ...]


def held_out(scores: Sequence[CategoryScores]) -> HeldOut | None:
    """The last score of each set and category; None where prompts have no categories."""
    if not scores:
        return None
    last = {(one.of.set, one.of.category): one.final for one in scores}
    sets = tuple(dict.fromkeys(name for name, _ in last))
    rows = [
        (category, tuple(last.get((name, category), math.nan) for name in sets))
        for category in sorted({category for _, category in last})
    ]
    return HeldOut(int(max(one.steps[-1] for one in scores)), tuple(name or "pass@1" for name in sets), tuple(rows))


def read_held_out(path: Path) -> HeldOut | None:
    """What a run's `evaluations.jsonl` has of it by now; lines that can't be read are left out."""
    return held_out(category_scores(read_evaluations(path.parent, Faults())))
