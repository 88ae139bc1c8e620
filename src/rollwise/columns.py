"""Columns: what is given of each prompt, in a pool, and what a curriculum remembers of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rollwise.errors import PoolError, StateError
from rollwise.options.checks import several, shown
from rollwise.state import decode_array, encode_array


class Columns:
    """What a curriculum remembers: arrays (N,) by name, saved whole and joined by slot.

    Each has a default for prompts not seen before.

    >>> columns = Columns(3, {"mean": (np.float64, np.nan), "asked": (np.int64, 0)})
    >>> columns["asked"].tolist(), list(columns)
    ([0, 0, 0], ['mean', 'asked'])
    """

    def __init__(self, n: int, defaults: Mapping[str, tuple[type, Any]]) -> None:
        self._arrays: dict[str, np.ndarray] = {
            name: np.full(n, default, dtype) if default else np.zeros(n, dtype)
            for name, (dtype, default) in defaults.items()
        }

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def state_dict(self) -> dict[str, Any]:
        """Every array, JSON-safe."""
        return {name: encode_array(array) for name, array in self._arrays.items()}

    def load(
        self, state: Mapping[str, Any], old_rows: np.ndarray, new_rows: np.ndarray, *, strict: bool = True
    ) -> None:
        """Copy saved rows `old_rows` (K,) to rows `new_rows` (K,); the others keep their defaults.

        Args:
            state: what `state_dict` returned.
            old_rows: in the saved arrays.
            new_rows: here.
            strict: whether the names must be the same; if not, what only one side has is as for prompts not seen.

        Raises:
            StateError: names, lengths or dtypes are not those of these columns. Some may be loaded by then.
        """
        if strict and set(state) != set(self._arrays):
            raise StateError(f"the state has the columns {sorted(state)}, expected {sorted(self._arrays)}")
        for name in state.keys() & self._arrays.keys():
            array = self._arrays[name]
            saved = decode_array(state[name], writable=False)
            if saved.ndim != 1 or saved.dtype != array.dtype or (old_rows.size and len(saved) <= old_rows.max()):
                raise StateError(f"column {name!r} in the state has dtype {saved.dtype} and shape {saved.shape}")
            if old_rows is new_rows and len(saved) == len(array):  # the same prompts in the same order
                array[:] = saved
            else:
                array[new_rows] = saved[old_rows]


def as_column(name: str, values: Any, n: int) -> np.ndarray:
    """A pool's column of `n` values: an array of numbers or of objects, read-only.

    Raises:
        PoolError: not `n` values, or values that a column of this name can't hold.
    """
    if not several(values):
        raise PoolError(f"column {name!r} must be a list of {n} values, one a prompt, got {shown(values)}")
    if np.ma.is_masked(values):
        raise PoolError(f"column {name!r} has masked entries: fill them, or leave their prompts out")
    values = values if isinstance(values, np.ndarray) else list(values)
    if len(values) != n:
        raise PoolError(f"column {name!r} has {len(values)} values for {n} prompts")
    try:
        column = np.array(values)
    except ValueError:  # ragged lists
        column = np.empty(0, dtype=object)
    if column.dtype.kind not in "biuf" or len(column) != n:
        column = np.empty(n, dtype=object)
        column[:] = list(values)
    if column.dtype.kind in "iuf" and name in ("difficulty", "reference_pass_rates", "embedding"):
        column = column.astype(np.float64)
    _check_known(name, column)
    column.setflags(write=False)
    return column


_NUMBERS = {
    "difficulty": (1, "one finite number"),
    "reference_pass_rates": (2, "two rates in [0, 1], weak and strong,"),
    "embedding": (2, "finite numbers, equally many,"),
}
"""Column of numbers -> its dimensions, and what it holds for each prompt."""


def _fits(name: str, values: np.ndarray, dimensions: int) -> bool:
    """Whether this is such a column, or with a dimension less a row of it."""
    good = values.dtype.kind in "iuf" and values.ndim == dimensions and values.size > 0
    good = good and bool(np.isfinite(values).all())
    if name != "reference_pass_rates" or not good:
        return good
    return values.shape[-1] >= 2 and bool(values.min() >= 0 and values.max() <= 1)


def _first_wrong(name: str, column: np.ndarray, dimensions: int) -> int:
    """The first row that is wrong by itself; if none is, the first that is longer or shorter than those before."""
    lengths = []
    for row, value in enumerate(column.tolist()):
        try:
            numbers = np.array(value)
        except ValueError:  # ragged
            return row
        if not _fits(name, numbers, dimensions - 1):
            return row
        lengths.append(numbers.size)
    return next((row for row, length in enumerate(lengths) if length != lengths[0]), 0)


def _check_known(name: str, column: np.ndarray) -> None:
    dimensions, what = _NUMBERS.get(name, (0, ""))
    if dimensions and not _fits(name, column, dimensions):
        row = _first_wrong(name, column, dimensions)
        raise PoolError(
            f"column {name!r} must hold {what} for each prompt, got {shown(column.tolist()[row])} at row {row}; mend it"
        )
    if name == "category":
        for row, value in enumerate(column):
            parts = value if isinstance(value, tuple | list) else (value,)
            if not parts or not all(isinstance(part, str | int | np.integer) for part in parts):
                raise PoolError(f"column 'category' must hold text (or a tuple of texts), got {value!r} at row {row}")


def combine(columns: Sequence[np.ndarray]) -> tuple[list[str], np.ndarray]:
    """Names (C,) of the combinations of values in columns (N,) of numbers, texts or tuples of texts, and codes (N,)."""
    parts = [_factorise(column) for column in columns]
    codes = np.ravel_multi_index(tuple(code for _, code in parts), tuple(len(values) for values, _ in parts))
    combined, of = np.unique(codes, return_inverse=True)
    rows = np.unravel_index(combined, tuple(len(values) for values, _ in parts))
    names = [
        _name(tuple(values[i] for (values, _), i in zip(parts, row, strict=True))) for row in zip(*rows, strict=True)
    ]
    distinct = sorted(set(names))
    number = {name: i for i, name in enumerate(distinct)}
    return distinct, np.array([number[name] for name in names], dtype=np.int64)[of]


def _factorise(column: np.ndarray) -> tuple[list[Any], np.ndarray]:
    """The distinct values, and each row's index among them (N,); no line of Python is run for each row."""
    if column.dtype.kind in "biuf" and column.ndim == 1:
        numbers, of = np.unique(column, return_inverse=True)
        return list(numbers), of
    values = column.tolist()
    keys = values if set(map(type, values)) == {str} else list(map(str, values))  # lists can't be keys, and 1 is True
    distinct = dict(zip(keys, values, strict=True))
    number = {key: i for i, key in enumerate(distinct)}
    return list(distinct.values()), np.fromiter(map(number.__getitem__, keys), dtype=np.int64, count=len(keys))


def _name(values: tuple[Any, ...]) -> str:
    parts = [part for value in values for part in (value if isinstance(value, tuple | list) else (value,))]
    return " | ".join(str(part) for part in parts)
