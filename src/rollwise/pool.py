"""The prompts that a curriculum chooses from: durable ids, the prompts themselves, and typed columns.

A prompt is known outside by its `id`, a string that survives reordering and growth of the data set; inside, by its
*slot*, its row in the columns. An id that is not given is the hash of the prompt's content.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np

from rollwise.columns import as_column, combine
from rollwise.errors import MissingColumnError, PoolError
from rollwise.options.checks import several, shown
from rollwise.prompt_ids import Duplicates, assign_ids, hash_ids, index_ids, join_rows, take_rows
from rollwise.state import decode_strings, encode_strings

logger = logging.getLogger(__name__)

KNOWN = frozenset({"difficulty", "reference_pass_rates", "embedding", "category"})
"""Columns with a meaning."""


class PromptPool:
    """An immutable set of prompts: ids of shape (N,), prompts, and columns whose first axis is N.

    Args:
        ids: N distinct non-empty strings.
        prompts: N prompts (text or chat messages), handed back on tickets. Defaults to the ids. Any sequence is kept as
            it is: a column on disk is not read before a prompt is asked for.
        columns: name -> N values. Numbers become numpy arrays, everything else object arrays. Columns with a known
            meaning are checked: `difficulty` (N,) finite, `reference_pass_rates` (N, 2) weak and strong in [0, 1] (or
            more than two, of which BOTS's `references` chooses), `embedding` (N, d) finite, `category` (N,) text, or a
            tuple of texts where a prompt has several.
        left_out: columns that the data have and the pool can't, with the reason; said when a method needs one.

    Raises:
        PoolError: no prompts, duplicate or non-text ids, lengths that differ, or values a known column can't hold.

    >>> pool = PromptPool(ids=["a", "b"], columns={"difficulty": [0.1, 0.9]})
    >>> len(pool), pool.slot("b"), pool.columns["difficulty"].dtype.name
    (2, 1, 'float64')
    """

    def __init__(
        self,
        *,
        ids: Iterable[str],
        prompts: Sequence[Any] | None = None,
        columns: Mapping[str, Any] | None = None,
        left_out: Mapping[str, str] | None = None,
    ) -> None:
        if not several(ids):
            raise PoolError(f"ids must be a list of strings, got {shown(ids)}")
        self.ids: list[str] = list(ids)
        self._slots = index_ids(self.ids)
        self.prompts: Sequence[Any] = self.ids if prompts is None else prompts
        if isinstance(prompts, str | Mapping) or not hasattr(self.prompts, "__getitem__"):
            raise PoolError(f"prompts must be a list, one prompt for each id in its order, got {shown(prompts)}")
        if len(self.prompts) != len(self.ids):
            raise PoolError(f"{len(self.prompts)} prompts for {len(self.ids)} ids; give one prompt for each id")
        self.columns: dict[str, np.ndarray] = {
            name: as_column(name, values, len(self.ids)) for name, values in (columns or {}).items()
        }
        self.has_categories = "category" in self.columns
        """Whether there is a column `category`, which alarms and safeguards look at, whatever the method."""
        self.left_out = dict(left_out or {})
        self._codes: dict[tuple[str, ...], tuple[list[str], np.ndarray]] = {}

    @classmethod
    def from_records(
        cls,
        records: Iterable[Mapping[str, Any]],
        *,
        id_field: str = "id",
        prompt_field: str = "prompt",
        on_duplicate: Duplicates = "error",
    ) -> PromptPool:
        """A pool from one mapping for each prompt; every other field that all of them have becomes a column.

        Args:
            records: mappings with a prompt, an id, or both. Without an id, the prompt's content hash is the id.
            id_field: the field with the id.
            prompt_field: the field with the prompt.
            on_duplicate: what to do with prompts of the same content *and no id of their own*: "error"; "drop" keeps
                the first; "number" keeps all and appends #2, #3, ... in the order given. Equal given ids always raise.

        A `datasets.Dataset` is read by column: given ids and columns are copied, prompts stay where they are.

        Raises:
            PoolError: no records, duplicates, or a record with neither id nor prompt.
        """
        if hasattr(records, "column_names") and hasattr(records, "__len__"):
            return cls._from_columns(records, id_field, prompt_field, on_duplicate)
        rows = _mappings(records, id_field, prompt_field)
        ids, keep = assign_ids(
            [row.get(id_field) for row in rows], [row.get(prompt_field) for row in rows], on_duplicate=on_duplicate
        )
        rows = [rows[i] for i in keep]
        fields = set.intersection(*(set(row) for row in rows)) - {id_field, prompt_field} if rows else set()
        left_out = {}
        for name in sorted(set().union(*rows) - fields - {id_field, prompt_field}, key=str):
            without = [i for i, row in enumerate(rows) if name not in row]
            left_out[name] = f"{len(without)} of {len(rows)} records are without it, the first {ids[without[0]]!r}"
        prompts = [row.get(prompt_field, id_) for row, id_ in zip(rows, ids, strict=True)]
        warn_left_out(left_out)
        columns = {name: [row[name] for row in rows] for name in sorted(fields, key=str)}
        return cls(ids=ids, prompts=prompts, columns=columns, left_out=left_out)

    @classmethod
    def _from_columns(cls, records: Any, id_field: str, prompt_field: str, on_duplicate: Duplicates) -> PromptPool:
        names, nothing = list(records.column_names), [None] * len(records)
        prompts = records[prompt_field] if prompt_field in names else nothing
        given = list(records[id_field][:]) if id_field in names else nothing
        ids, keep = assign_ids(given, prompts, on_duplicate=on_duplicate)
        kept = np.array(keep, dtype=np.int64)
        columns = {
            name: take_rows(list(records[name][:]), kept) for name in sorted({*names} - {id_field, prompt_field})
        }
        return cls(ids=ids, prompts=take_rows(prompts, kept) if prompt_field in names else None, columns=columns)

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, prompt_id: object) -> bool:
        return prompt_id in self._slots

    def __repr__(self) -> str:
        return f"PromptPool({len(self):,} prompts, columns={sorted(self.columns)})"

    def slot(self, prompt_id: str) -> int:
        """The row of `prompt_id`; `PoolError` if it is not in the pool."""
        try:
            return self._slots[prompt_id]
        except (KeyError, TypeError):  # of what can't be a key, as a list
            raise PoolError(f"no prompt with id {shown(prompt_id)} in this pool of {len(self):,}") from None

    def slots_of(self, prompt_ids: Sequence[str]) -> np.ndarray:
        """The rows of `prompt_ids`, -1 where the pool lacks one; shape (len(prompt_ids),), int64."""
        find = self._slots.get
        return np.fromiter((find(i, -1) for i in prompt_ids), dtype=np.int64, count=len(prompt_ids))

    def require(self, column: str, method: str, remedy: str) -> np.ndarray:
        """The column a method needs; `MissingColumnError` naming method, column and remedy if it is not here."""
        if column not in self.columns:
            here = sorted(self.columns) or "no columns"
            why = (
                f" ({column!r} is in the data, but left out: {self.left_out[column]})"
                if column in self.left_out
                else ""
            )
            raise MissingColumnError(f"{method} needs the column {column!r}, but the pool has {here}{why}; {remedy}")
        return self.columns[column]

    def plus(self, other: PromptPool) -> PromptPool:
        """This pool's prompts and then the other's; columns that both have. Known ones that are lost are warned of.

        Raises:
            PoolError: a prompt is in both, or the other is no pool.
        """
        if not isinstance(other, PromptPool):
            raise PoolError(f"a pool is joined with a PromptPool, got {shown(other)}")
        lost = other._lacks(self)
        columns = {name: [*self.columns[name], *other.columns[name]] for name in self.columns if name in other.columns}
        both = PromptPool(
            ids=self.ids + other.ids,
            prompts=join_rows(self.prompts, other.prompts),
            columns=columns,
            left_out={**self._lacks(other), **other.left_out, **self.left_out, **lost},
        )
        warn_left_out(lost)
        return both

    def _lacks(self, other: PromptPool) -> dict[str, str]:
        """The other's columns that this pool has not, with the reason to leave them out of both together."""
        n = len(self) + len(other)
        why = f"{len(self)} of {n} prompts are without it, the first {self.ids[0]!r}"
        return dict.fromkeys(other.columns.keys() - self.columns.keys(), why)

    def minus(self, ids: Iterable[str]) -> PromptPool:
        """This pool without the prompts of these ids, in the same order.

        Raises:
            PoolError: one of them is not here, nothing would be left, or `ids` is no list.
        """
        if not several(ids):
            raise PoolError(f"ids must be a list of strings, got {shown(ids)}")
        stays = np.ones(len(self), dtype=bool)
        stays[[self.slot(id_) for id_ in ids]] = False
        kept = np.flatnonzero(stays)
        return PromptPool(
            ids=list(compress(self.ids, stays.tolist())),
            prompts=take_rows(self.prompts, kept),
            columns={name: column[kept] for name, column in self.columns.items()},
            left_out=self.left_out,
        )

    def codes(self, *columns: str) -> tuple[list[str], np.ndarray]:
        """The distinct values of a column, or combinations of several, as sorted names (C,), and each prompt's (N,).

        The parts of a combination, and of a tuple, are joined by " | ".

        Raises:
            PoolError: no names, or a column that the pool lacks.

        >>> pool = PromptPool(ids=["a", "b", "c"], columns={"category": ["x", "y", "x"], "difficulty": [1, 1, 2]})
        >>> names, codes = pool.codes("category")
        >>> names, codes.tolist()
        (['x', 'y'], [0, 1, 0])
        """
        if not columns or not all(isinstance(name, str) for name in columns):
            raise PoolError(f"codes takes the names of columns, as codes('category'), got {shown(columns)}")
        if columns not in self._codes:
            remedy = "add it, or name columns that are there"
            self._codes[columns] = combine([self.require(name, "grouping", remedy) for name in columns])
        return self._codes[columns]

    @cached_property
    def id_hashes(self) -> np.ndarray:
        """A uint32 hash of each id, (N,); made once."""
        hashes = hash_ids(self.ids)
        hashes.setflags(write=False)
        return hashes

    @cached_property
    def encoded_ids(self) -> dict[str, Any]:
        """The ids as they stand in a saved state; made once, since the pool never changes."""
        return encode_strings(self.ids)

    def recognise(self, encoded: Mapping[str, Any]) -> list[str] | None:
        """The ids of a saved state; None where they are this pool's, in the same order.

        Raises:
            StateError: `encoded` is malformed.
        """
        if encoded == vars(self).get("encoded_ids"):
            return None
        ids = decode_strings(encoded)
        if ids != self.ids:
            return ids
        vars(self)["encoded_ids"] = {"zlib64": encoded["zlib64"]}  # the next save need not make it
        return None


def usable_columns(columns: Mapping[str, Sequence[Any]]) -> tuple[dict[str, Any], dict[str, str]]:
    """Columns as a pool takes them; and those that it can't take, with the reason.

    >>> usable_columns({"difficulty": [1.0, 2.0], "category": ["sums", None]})
    ({'difficulty': array([1., 2.])}, {'category': '1 of 2 prompts are without one, the first in row 1'})
    """
    usable: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for name, values in columns.items():
        empty = [row for row, value in enumerate(values) if value is None]
        try:
            if empty:
                raise PoolError(f"{len(empty)} of {len(values)} prompts are without one, the first in row {empty[0]}")
            usable[name] = as_column(name, values, len(values)) if name in KNOWN and len(values) else values
        except PoolError as error:
            left_out[name] = str(error)
    return usable, left_out


def warn_left_out(left_out: Mapping[str, str]) -> None:
    """Say which columns with a meaning are left out."""
    for name in sorted(KNOWN & left_out.keys()):
        logger.warning("column %r is left out: %s", name, left_out[name])


def _mappings(records: Any, id_field: str, prompt_field: str) -> list[Mapping[str, Any]]:
    """The records, each a mapping with an id or a prompt; `PoolError` names the first that is not."""
    if isinstance(records, Mapping) or not several(records):
        raise PoolError(f"records must be a list of mappings, got one {type(records).__name__}; put it into a list")
    rows = list(records)
    for row, record in enumerate(rows):
        if not isinstance(record, Mapping):
            frame = "; give df.to_dict('records') of a DataFrame" if hasattr(records, "to_dict") else ""
            raise PoolError(f"record {row} must be a mapping such as {{'prompt': ...}}, got {record!r:.80}{frame}")
        if record.get(id_field) is None and record.get(prompt_field) is None:
            raise PoolError(
                f"record {row} has neither an id ({id_field!r}) nor a prompt ({prompt_field!r}); it has "
                f"{', '.join(map(str, record)) or 'nothing'}: name its field by prompt_field=... or id_field=..."
            )
    return rows
