"""Writes `prompts.jsonl`, the columns of each prompt that was asked for, and `pool.json`, the data set in numbers.

A log of rollouts alone could be replayed only for methods that need nothing but categories.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rollwise.pool import PromptPool
from rollwise.runs.data_file import pool_facts, write_pool_facts
from rollwise.runs.folder import RunFolder
from rollwise.runs.log_ends import read_log

LONGEST_TEXT = 80
"""Texts longer than this are answers or solutions, not names of something."""


class PromptLog:
    """Writes each prompt's columns once: numbers, lists of numbers, short texts and lists of them.

    Args:
        folder: where to write. A pool without such columns makes no file.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self._written: set[str] = set()
        self._pool: PromptPool | None = None  # as `pool.json` has it

    def resume(self) -> None:
        """Go on after what the file holds, once it has been rolled back."""
        self._pool = None
        self._written = {line["prompt_id"] for _, line in read_log(self.folder.prompts)}

    def add(self, step: int, prompt_ids: Iterable[str], pool: PromptPool, grouped_by: Sequence[str] = ()) -> None:
        """Write those of the prompts that are new and in the pool; and the pool in numbers, where it is another."""
        if pool is not self._pool:
            self._pool = pool
            write_pool_facts(self.folder.path, pool_facts(pool, grouped_by))
        new = [id_ for id_ in dict.fromkeys(prompt_ids) if id_ not in self._written]
        slots = zip(new, pool.slots_of(new).tolist(), strict=True)
        found = {id_: columns for id_, slot in slots if slot >= 0 and (columns := _columns(pool, slot))}
        if found:
            lines = [{"step": step, "prompt_id": id_, "columns": columns} for id_, columns in found.items()]
            self.folder.append(self.folder.prompts, lines)
            self._written.update(found)


def _columns(pool: PromptPool, slot: int) -> dict[str, Any]:
    values = {name: column[slot] for name, column in pool.columns.items()}
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in values.items()
        if isinstance(value, np.ndarray | np.generic) or _is_short(value)
    }


def _is_short(value: Any) -> bool:
    parts = value if isinstance(value, tuple | list) else (value,)
    return all(isinstance(part, str) and len(part) <= LONGEST_TEXT for part in parts)
