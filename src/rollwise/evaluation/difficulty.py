"""How difficult the prompts were that a run sampled, and the data set's on average (SEC, Figure 3)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rollwise.runs.group_table import NO_NAME, GroupTable, is_real
from rollwise.runs.lines import Faults
from rollwise.runs.reading import RunData

FloatArray = NDArray[np.float64]
_NUMBERED = re.compile(r"(\D*)(\d+(?:\.\d+)?)(\D*)")


@dataclass(frozen=True)
class Difficulty:
    """What was sampled, as numbers.

    Attributes:
        of: what the numbers are: "level", or "difficulty" for the column of that name.
        sampled: (M,) of each group; NaN where it is not known.
        mean: the data set's mean; NaN where the folder does not say.
    """

    of: str
    sampled: FloatArray
    mean: float


def level_numbers(names: Sequence[str]) -> FloatArray | None:
    """The levels (C,) that categories are named by; None unless all are named alike, with two numbers or more.

    Of categories of several columns the first part that has numbers counts.

    >>> level_numbers(["Level 1", "Level 5"]).tolist(), level_numbers(["4 numbers", "algebra"])
    ([1.0, 5.0], None)
    >>> level_numbers(["algebra | L2", "geometry | L3"]).tolist()
    [2.0, 3.0]
    """
    rows = [name.split(" | ") for name in names]
    if len({len(row) for row in rows}) != 1:
        return None
    for column in zip(*rows, strict=True):
        found = [match for part in column if (match := _NUMBERED.fullmatch(part.strip()))]
        alike = len(found) == len(column) and len({(match[1], match[3]) for match in found}) == 1
        if alike and len({match[2] for match in found}) > 1:
            return np.array([float(match[2]) for match in found])
    return None


def difficulty_of(run: RunData, groups: GroupTable) -> Difficulty | None:
    """By levels, where categories are levels, else by the column `difficulty`; None where the folder has neither."""
    facts, counts = run.pool, {} if run.pool is None else run.pool.categories
    names = list(dict.fromkeys([*groups.categories, *counts]))
    levels = level_numbers(names) if groups.categories else None
    if levels is not None:
        by_code = np.append(levels[: len(groups.categories)], math.nan)  # NO_NAME is the last
        weights = np.array([counts.get(name, 0) for name in names], dtype=np.float64)
        mean = float(weights @ levels / weights.sum()) if weights.any() else math.nan
        return Difficulty("level", by_code[np.where(groups.category == NO_NAME, -1, groups.category)], mean)
    columns = run.prompt_columns(Faults())
    known = {id_: float(n) for id_, own in columns.items() if is_real(n := own.get("difficulty"))}
    if not known:
        return None
    by_prompt = np.array([known.get(name, math.nan) for name in groups.prompts], dtype=np.float64)
    mean = math.nan if facts is None or facts.difficulty is None else facts.difficulty
    return Difficulty("difficulty", by_prompt[groups.prompt], mean)
