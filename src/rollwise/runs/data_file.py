"""What a run's folder says of its data: `data.json`, hashes; `pool.json`, the data set in numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.pool import PromptPool
from rollwise.runs.lines import Faults, read_facts
from rollwise.runs.names import DATA_FILE, POOL_FILE
from rollwise.state import write_atomically

_WORDS = {
    "data": "the training prompts have changed; beliefs go on with those found again by id",
    "eval_data": "the held-out prompts have changed; scores before and after can't be compared",
    "reward": "the file of the reward has changed; rewards before and after may mean different things",
}


def note_data(folder: Path, fingerprint: Mapping[str, str], *, anew: bool = False) -> list[str]:
    """Write the hashes of a run that begins `anew`; else say in words what differs from those that it began with."""
    path = folder / DATA_FILE
    before: dict[str, str] = {} if anew else read_facts(path, dict, Faults()) or {}
    began = {**fingerprint, **before}
    if began != before:
        write_atomically(path, json.dumps(began, indent=1).encode())
    return [f"since the run began, {words}" for name, words in _WORDS.items() if began[name] != fingerprint[name]]


MOST_CATEGORIES = 1000
"""With more categories than this they are names of prompts, and are left out."""
_NUMBERS = ("reference_pass_rates", "difficulty", "embedding")
"""Columns that make groups of prompts without naming them."""


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """A data set in numbers.

    Attributes:
        prompts: how many it has.
        categories: how many of each category, as `rollouts.jsonl` names them; empty where there are none.
        difficulty: mean of the column `difficulty`; None without one.
    """

    prompts: int
    categories: dict[str, int] = field(default_factory=dict)
    difficulty: float | None = None


def category_columns(grouped_by: Sequence[str]) -> list[str]:
    """The columns that name a prompt's category in `rollouts.jsonl`: those it is grouped by, else `category`.

    >>> category_columns(["type", "difficulty"]), category_columns([])
    (['type'], ['category'])
    """
    return [column for column in grouped_by if column not in _NUMBERS] or ["category"]


def pool_facts(pool: PromptPool, grouped_by: Sequence[str] = ()) -> PoolFacts:
    """The facts of a pool whose method groups prompts by these columns."""
    columns = category_columns(grouped_by)
    categories: dict[str, int] = {}
    if all(column in pool.columns and pool.columns[column].dtype.kind in "iuO" for column in columns):
        names, codes = pool.codes(*columns)
        if len(names) <= MOST_CATEGORIES:
            counts = np.bincount(codes, minlength=len(names)).tolist()
            categories = dict(zip(names, counts, strict=True))
    difficulty = pool.columns.get("difficulty")
    return PoolFacts(len(pool), categories, None if difficulty is None else float(difficulty.mean()))


def write_pool_facts(folder: Path, facts: PoolFacts) -> None:
    """Write `pool.json`, atomically."""
    write_atomically(folder / POOL_FILE, json.dumps(asdict(facts)).encode())


def read_pool_facts(folder: Path, faults: Faults | None = None) -> PoolFacts | None:
    """The facts; None where the file is absent, as of older runs, or damaged, which `faults` then names."""
    return read_facts(folder / POOL_FILE, _checked, Faults() if faults is None else faults)


def _checked(found: dict[str, Any]) -> PoolFacts:
    difficulty = found["difficulty"]
    categories = {str(name): int(count) for name, count in found["categories"].items()}
    facts = PoolFacts(int(found["prompts"]), categories, None if difficulty is None else float(difficulty))
    if facts.prompts < 1 or any(count < 1 for count in categories.values()):
        raise ValueError("a count below 1")
    return facts
