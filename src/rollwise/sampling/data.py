"""The prompts to roll out: a task's, or a file's, with ids, categories, and the order in which they are sampled."""

from __future__ import annotations

import hashlib
import json
import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rollwise.errors import PoolError
from rollwise.pool import PromptPool
from rollwise.sampling.columns import categories_of, check_one_form, ids_of, named_columns, warn_of_escapes
from rollwise.sampling.config import DataConfig, check_selection
from rollwise.sampling.own_rows import own_rows
from rollwise.sampling.scorers.builtin import several_answers, unanswered
from rollwise.sampling.selection import row_places, strata_of
from rollwise.tasks import TASKS, Task

logger = logging.getLogger(__name__)

HELD_OUT = 0.2
"""Share of a file's prompts that are of the split `eval`."""


@dataclass(frozen=True)
class PromptData:
    """N prompts with their columns.

    Attributes:
        ids: (N,) distinct.
        rows: (N,) all columns; absent values are None.
        categories: (N,), or None where there are none.
    """

    ids: list[str]
    rows: list[dict[str, Any]]
    categories: list[str] | None

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def prompts(self) -> list[Any]:
        """(N,) text or chat messages."""
        return [row["prompt"] for row in self.rows]

    def pool(self) -> PromptPool:
        """As a pool, with every column that has no holes; one that a pool can't hold is left out, with a warning."""
        columns: dict[str, Any] = {}
        for name in self.rows[0]:
            values = [row[name] for row in self.rows]
            if name not in ("id", "prompt") and not any(value is None for value in values):
                try:
                    columns[name] = PromptPool(ids=self.ids, columns={name: values}).columns[name]
                except PoolError as error:
                    logger.warning("%s; methods that need it can't use it as it is", error)
        if self.categories is not None:
            columns["category"] = self.categories
        return PromptPool(ids=self.ids, columns=columns)

    def taken(self, rows: Sequence[int]) -> PromptData:
        """The prompts at these places, in this order."""
        categories = None if self.categories is None else [self.categories[i] for i in rows]
        return PromptData([self.ids[i] for i in rows], [self.rows[i] for i in rows], categories)

    def fingerprint(self) -> str:
        """A hash of all rows, whatever their order."""
        lines = (
            json.dumps([id_, row], sort_keys=True, default=str) for id_, row in zip(self.ids, self.rows, strict=True)
        )
        return hashlib.sha256("\n".join(sorted(lines)).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def load_data(config: DataConfig, task: Task | None, *, split: Literal["train", "eval"] | None = None) -> PromptData:
    """What `config.data` names: the task's own prompts, or a file's rows.

    Args:
        config: Which, and what its columns are called.
        task: The task, where one is named.
        split: A task's training prompts (also by default) or its held-out ones; of a file, which by default is taken
            whole, four fifths or the other fifth, by a hash of the prompt: which it is depends on nothing else.

    Raises:
        ConfigError: it is neither a task nor a readable file.
        PoolError: no rows, a row without a prompt, or duplicate ids.
        MissingColumnError: a column that is named is not there.
    """
    if task is not None and config.source in TASKS:
        records = task.eval_records if split == "eval" else task.train_records
        source = f"task {config.source!r}"
        check_selection(config, source)
        found = records(config.pool_prompts, config.seed)
        places = row_places(source, len(found))
        rows = named_columns(found, config, source, places)
        split = None  # they are of one side
    else:
        (rows, places), source = own_rows(config), repr(config.source)
    check_one_form(rows, places)
    data = PromptData(ids_of(rows, config.id, places), rows, categories_of(rows, config.category or "category", places))
    data = limited(data, config, source)
    _warn(data, config, source)
    warn_of_escapes(data.rows, source)
    return data if split is None else split_of(data, split, source)


def _warn(data: PromptData, config: DataConfig, source: str) -> None:
    """Say what is odd about the prompts, though they can be used."""
    if len(data) > 1 and len({json.dumps(prompt, default=str) for prompt in data.prompts}) == 1:
        logger.warning("%s: all %d prompts are the same text; is --prompt_column right?", source, len(data))
    answered = sum(not isinstance(prompt, str) and prompt[-1]["role"] == "assistant" for prompt in data.prompts)
    if answered:
        logger.warning(
            "%s: %d of %d prompts end with an assistant message, as in data for supervised fine-tuning; if it is the "
            "answer, remove it, so that the prompt ends with the question",
            *(source, answered, len(data)),
        )
    if config.category == (config.answer_column or "answer"):
        logger.warning(
            "%s: column %r has the answers and the categories, so prompts are chosen by their answers; is --category "
            "right?",
            *(source, config.category),
        )
    if lacking := unanswered(config.rewards, data.rows):
        logger.warning(
            "%s: %d of %d prompts have no recorded answer, so they get no reward; leave them out, or name the column "
            "of answers with --answer_column",
            *(source, lacking, len(data)),
        )
    if several := several_answers(config.rewards, data.rows):
        counts = (source, several, len(data))
        logger.warning("%s: %d of %d prompts record a list of answers; any of them is right", *counts)


def split_of(data: PromptData, split: Literal["train", "eval"], source: str) -> PromptData:
    """The prompts of a file that are trained on, or those held out.

    Raises:
        PoolError: there are none.
    """
    kept = [i for i, prompt in enumerate(data.prompts) if is_held_out(prompt) == (split == "eval")]
    if not kept:
        part = "held out; give --eval_data FILE" if split == "eval" else "trained on; give more"
        raise PoolError(f"{source} has {len(data)} prompts, and the split by their texts leaves none to be {part}")
    return data.taken(kept)


def limited(data: PromptData, config: DataConfig, source: str) -> PromptData:
    """At most `config.limit` of the prompts, every stratum in proportion; which ones, their ids decide.

    Raises:
        MissingColumnError: no row has the column `config.stratify`.
        PoolError: that column holds neither text nor numbers.
    """
    if config.limit is None:
        return data
    strata = None if config.stratify is None else strata_of(data.rows, config.stratify, source)
    return data.taken(sorted(sampling_order(data.ids, strata, config.limit_seed)[: config.limit]))


def is_held_out(prompt: Any) -> bool:
    """Whether a prompt of a file is held out, where no `eval_data` is given: its text decides."""
    return _fraction(f"held-out/{json.dumps(prompt, sort_keys=True, default=str)}") < HELD_OUT


def sampling_order(ids: Sequence[str], categories: Sequence[str] | None, seed: int) -> list[int]:
    """All N rows in an order each of whose beginnings is a sample with every category in proportion.

    Within a category the order is random (a hash of seed and id, so the order of the data plays no part); the i-th of
    n prompts stands at (i + u) / n of the whole, u random to the category. So a larger sample continues a smaller one.

    >>> order = sampling_order(list("abcdef"), list("xxxxyy"), seed=0)
    >>> [sum(row >= 4 for row in order[:n]) for n in (3, 6)]                            # a third of each is of y
    [1, 2]
    """
    members: dict[str, list[int]] = defaultdict(list)
    for row in range(len(ids)):
        members["" if categories is None else categories[row]].append(row)
    place: list[tuple[float, float, int]] = []
    for category, rows in members.items():
        shift = _fraction(f"{seed}/category/{category}")
        by_chance = sorted((_fraction(f"{seed}/prompt/{ids[row]}"), row) for row in rows)
        place += [((i + shift) / len(rows), chance, row) for i, (chance, row) in enumerate(by_chance)]
    return [row for *_, row in sorted(place)]


def _fraction(text: str) -> float:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
