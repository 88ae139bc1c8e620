"""The training data as a pool: columns by path, prompts left on disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollwise.errors import ConfigError
from rollwise.options import did_you_mean
from rollwise.pool import PromptPool, usable_columns, warn_left_out
from rollwise.prompt_ids import assign_ids

_PLAIN = ("int", "uint", "float", "bool", "string", "large_string")


def make_pool(rows: Any, *, prompt_key: str, columns: Mapping[str, str], id_path: str | None = None) -> PromptPool:
    """One prompt for each row of a `datasets.Dataset`.

    Args:
        rows: the data set.
        prompt_key: the column with the prompts; it is read again for each ticket, and not held in memory.
        columns: a pool's column -> where it is in a row, such as `extra_info.level`. Columns of numbers and texts are
            taken under their own names too.
        id_path: where a row's own id is; by default the column `id`, else the prompt's content is hashed.

    Raises:
        ConfigError: a path leads nowhere.
        PoolError: duplicate ids.
    """
    names = list(rows.column_names)
    prompts = rows[prompt_key]
    path = id_path or ("id" if "id" in names else None)
    own = None if path is None else [None if value is None else str(value) for value in _values(rows, "id", path)]
    ids, _ = assign_ids([None] * len(rows) if own is None else own, prompts, on_duplicate="number")
    plain = [name for name in names if str(getattr(rows.features[name], "dtype", "")).startswith(_PLAIN)]
    found = {name: list(rows[name][:]) for name in plain if name not in ("id", prompt_key) and name not in columns}
    found |= {name: _values(rows, name, path) for name, path in columns.items()}
    usable, left_out = usable_columns(found)
    warn_left_out(left_out)
    return PromptPool(ids=ids, prompts=prompts, columns=usable, left_out=left_out)


def _values(rows: Any, name: str, path: str) -> list[Any]:
    head, *inner = str(path).split(".")
    key = "data.rollwise.id" if name == "id" else f"data.rollwise.columns.{name}"
    if head not in rows.column_names:
        near = did_you_mean(head, rows.column_names)
        raise ConfigError(
            f"{key}={path!r}: the data have no column {head!r}{near}; it has {', '.join(rows.column_names)}"
        )
    values = list(rows[head][:])
    for part in inner:
        values = [value.get(part) if isinstance(value, Mapping) else None for value in values]
    if values and all(value is None for value in values):
        raise ConfigError(f"{key}={path!r}: no row has it; the first row's {head!r} is {rows[0][head]!r:.80}")
    return values
