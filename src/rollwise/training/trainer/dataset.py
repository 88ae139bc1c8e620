"""A trainer's data set as a pool: its columns become the pool's, joined by id."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
from accelerate.utils import gather_object

from rollwise.curricula import Curriculum
from rollwise.errors import ConfigError, SilentNoOpError
from rollwise.pool import PromptPool, usable_columns, warn_left_out
from rollwise.prompt_ids import assign_ids, content_id
from rollwise.runs.data_file import category_columns
from rollwise.runs.evaluations import EvaluationSet
from rollwise.terminal import quiet
from rollwise.training.recording.group_lines import category_of

logger = logging.getLogger(__name__)

_PROMPTS = ("problem", "question", "instruction", "query", "input", "text")
_ANSWERS = frozenset({"answer", "solution", "ground_truth", "target", "label", "response", "completion"})
_MOST_KINDS = 50
_MOST_LEVELS = 20
_COMPARED = 64


def check_prompts(trainer: Any) -> None:
    """Refuse data sets without prompts, which TRL would miss in its first generation, or of which ranks have others."""
    given = trainer.eval_dataset
    sets = [("eval_dataset", one) for one in (given.values() if isinstance(given, dict) else [given])]
    for name, dataset in [("train_dataset", trainer.train_dataset), *sets]:
        check_data(trainer, name, dataset)


def check_data(trainer: Any, name: str, dataset: Any) -> None:
    """The same of one data set, called `name` in messages."""
    check_same_rows(trainer.accelerator, name, dataset)
    made = getattr(trainer, "environment_factories", None) is not None  # an environment may make the prompts
    columns = list(getattr(dataset, "column_names", None) or [])
    if columns and "prompt" not in columns and not made:
        likely = next((column for column in _PROMPTS if column in columns), columns[0])
        raise ConfigError(
            f"{name} has no column 'prompt'; it has {', '.join(columns)}: rename the one with the prompts, "
            f"for example dataset.rename_column({likely!r}, 'prompt')"
        )


def check_same_rows(ranks: Any, name: str, dataset: Any) -> None:
    """`SilentNoOpError` where the ranks have other rows: a row's number, by which prompts are sent, means others there.

    Sixty-four prompts are compared, evenly spaced, and how many there are; nothing of a stream.
    """
    if ranks.num_processes == 1 or not hasattr(dataset, "column_names") or not hasattr(dataset, "__len__"):
        return
    prompts = _prompts(dataset)
    rows = np.linspace(0, len(prompts) - 1, min(len(prompts), _COMPARED)).astype(int).tolist()
    everyone = gather_object([(len(prompts), content_id([prompts[row] for row in rows]))])
    others = [rank for rank, found in enumerate(everyone) if found != everyone[0]]
    if others:
        raise SilentNoOpError(
            f"rank {others[0]} has other rows in {name} than rank 0, so it would roll out other prompts than those "
            "that were chosen; give every rank the same rows in the same order, for example dataset.shuffle(seed=0)"
        )


def check_bindable(curriculum: Curriculum, source: str, dataset: Any) -> None:
    """Bind a curriculum to a data set for nothing but the errors, without warnings: what trains gives them again.

    Args:
        curriculum: unbound, and of no use afterwards.
        source: the folder or hub id that the policy will come from; nothing is loaded.
        dataset: of the prompts.

    Raises:
        PoolError, MissingColumnError: prompts that can't be used.
    """
    curriculum.start_from(source)
    with quiet():
        curriculum.bind(pool_from_dataset(dataset))


def say_groups(curriculum: Curriculum) -> None:
    """Log what a method that groups prompts groups them by; a warning where it is nothing and a column could serve."""
    by = curriculum.grouped_by
    if by is None:
        return
    if by:
        logger.info("prompts are grouped by: %s", ", ".join(by))
        return
    texts, levels = _kinds(curriculum.pool)
    could = [
        f"{what}: {', '.join(f'{name} ({n} values)' for name, n in found.items())}"
        for what, found in (("text columns that could serve", texts), ("whole numbers that could", levels))
        if found
    ]
    if could:
        some = next(iter({**texts, **levels}))
        logger.warning(
            "grouped by: nothing; %s. To learn and report by kind of prompt: --category %s, or in Python category=%r",
            *("; ".join(could), some, some),
        )
    else:
        logger.info("grouped by: nothing")


def _kinds(pool: PromptPool) -> tuple[dict[str, int], dict[str, int]]:
    """Columns that may name kinds of prompts, and how many values each has: of texts, and of whole numbers.

    A value stands for two prompts or more on the average, so that a column of nearly unique texts is no kind.
    """
    texts: dict[str, int] = {}
    levels: dict[str, int] = {}
    for name, column in pool.columns.items():
        whole = column.dtype.kind in "iu"
        if name in _ANSWERS or column.ndim != 1 or not (whole or all(isinstance(value, str) for value in column)):
            continue
        n = len(set(column.tolist()))
        if 1 < n <= min(len(column) // 2, _MOST_LEVELS if whole else _MOST_KINDS):
            (levels if whole else texts)[name] = n
    return texts, levels


def pool_from_dataset(dataset: Any, *, id_column: str = "id") -> PromptPool:
    """A pool with one prompt for each row of a map-style `datasets.Dataset`.

    Ids come from `id_column` where the data set has it, else from the prompt's content (of the whole row, where an
    environment makes the prompt); rows that repeat a prompt are numbered. Columns of numbers, text, or lists of numbers
    become the pool's; images, messages and other nested values stay with the data set, and so do columns with empty
    cells, or whose values are not what the column's name stands for (a `difficulty` of words).

    Prompts stay with the data set too: one is read when a ticket needs it, and all of them once where there are no ids.

    Raises:
        ConfigError: a streaming data set, which can't be asked for a row by number, or one without `id_column`.
        PoolError: no rows, or duplicate ids.
    """
    if not hasattr(dataset, "column_names") or not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
        raise ConfigError(
            f"a curriculum chooses rows by number, so train_dataset must be a map-style Dataset, got "
            f"{type(dataset).__name__}; materialise a stream with Dataset.from_generator"
        )
    names = list(dataset.column_names)
    prompts = _prompts(dataset)
    if id_column != "id" and id_column not in names:
        raise ConfigError(f"train_dataset has no column {id_column!r} (id_column); it has {names}")
    ids = _ids(dataset, prompts, id_column)
    plain = [name for name in names if name not in ("prompt", id_column) and _is_plain(name, dataset.features[name])]
    columns, left_out = usable_columns({name: list(dataset[name][:]) for name in plain})
    warn_left_out(left_out)
    return PromptPool(ids=ids, prompts=prompts, columns=columns, left_out=left_out)


def evaluation_set(dataset: Any, id_column: str, grouped_by: Sequence[str]) -> EvaluationSet | None:
    """Ids and categories of an evaluation set's prompts; None for a stream.

    Args:
        dataset: a `datasets.Dataset`.
        id_column: of its ids; the prompts' content where there is none.
        grouped_by: columns that the method groups prompts by.
    """
    if not hasattr(dataset, "column_names") or not hasattr(dataset, "__len__"):
        return None
    ids = [str(id_) for id_ in _ids(dataset, _prompts(dataset), id_column)]
    named = category_columns(grouped_by)
    if not set(named) <= set(dataset.column_names):
        named = ["category"]
    if not set(named) <= set(dataset.column_names):
        return EvaluationSet(ids, None)
    kinds = [category_of(row, named) for row in dataset.select_columns(named)]
    found = ["" if kind is None else kind for kind in kinds]
    return EvaluationSet(ids, found if any(found) else None)


def _prompts(dataset: Any) -> Any:
    return dataset["prompt"] if "prompt" in dataset.column_names else _WholeRows(dataset)


def _ids(dataset: Any, prompts: Any, id_column: str) -> list[str]:
    own = list(dataset[id_column][:]) if id_column in dataset.column_names else [None] * len(dataset)
    return assign_ids(own, prompts, on_duplicate="number")[0]


class _WholeRows(Sequence[dict[str, Any]]):
    """The rows of a data set without prompts, as prompts; each is read when it is asked for."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        return dict(self.dataset[index])


def rows_of_pool(curriculum: Curriculum, dataset: Any, *, id_column: str = "id") -> np.ndarray:
    """For each slot of the curriculum's pool the data set's row, (N,); binds an unbound curriculum first.

    Raises:
        SilentNoOpError: the curriculum was given a pool of its own, some of whose prompts the data set lacks.
    """
    from_dataset = pool_from_dataset(dataset, id_column=id_column)
    if curriculum._pool is None:
        curriculum.bind(from_dataset)
        return np.arange(len(from_dataset))
    rows = from_dataset.slots_of(curriculum.pool.ids)
    missing = np.flatnonzero(rows < 0)
    if len(missing):
        ids = curriculum.pool.ids
        raise SilentNoOpError(
            f"{len(missing):,} of the {len(ids):,} prompts in the curriculum's pool are not in train_dataset: for "
            f"example {ids[missing[0]]!r}, where the data set has ids like {from_dataset.ids[0]!r}. Make the pool from "
            f"the same data (ids in column {id_column!r}, else the prompts' content), or pass an unbound curriculum"
        )
    return rows


def _is_plain(name: str, feature: Any) -> bool:
    inner = getattr(feature, "feature", None)
    kind = str(getattr(inner if inner is not None else feature, "dtype", ""))
    numbers = kind.startswith(("int", "uint", "float", "bool"))
    return numbers or ((inner is None or name == "category") and kind in ("string", "large_string"))
