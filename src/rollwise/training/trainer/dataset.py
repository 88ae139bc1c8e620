"""A trainer's data set as a pool: its columns become the pool's, joined by id."""

from __future__ import annotations

from typing import Any

import numpy as np

from rollwise.curricula import Curriculum
from rollwise.errors import ConfigError, SilentNoOpError
from rollwise.pool import PromptPool, assign_ids, usable_columns, warn_left_out


def pool_from_dataset(dataset: Any, *, id_column: str = "id") -> PromptPool:
    """A pool with one prompt for each row of a map-style `datasets.Dataset`.

    Ids come from `id_column` where the data set has it, else from the prompt's content (of the whole row, where an
    environment makes the prompt); rows that repeat a prompt are numbered. Columns of numbers, text, or lists of numbers
    become the pool's; images, messages and other nested values stay with the data set, and so do columns with empty
    cells, or whose values are not what the column's name stands for (a `difficulty` of words).

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
    n = len(dataset)
    prompts = list(dataset["prompt"]) if "prompt" in names else [dict(row) for row in dataset]
    if id_column != "id" and id_column not in names:
        raise ConfigError(f"train_dataset has no column {id_column!r} (id_column); it has {names}")
    own = list(dataset[id_column]) if id_column in names else [None] * n
    ids, _ = assign_ids(own, prompts, on_duplicate="number")
    plain = [name for name in names if name not in ("prompt", id_column) and _is_plain(name, dataset.features[name])]
    columns, left_out = usable_columns({name: list(dataset[name]) for name in plain})
    warn_left_out(left_out)
    return PromptPool(ids=ids, prompts=prompts, columns=columns, left_out=left_out)


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
