"""What a curriculum remembers of each prompt: preallocated arrays (N,), saved whole and joined by slot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from rollwise.errors import StateError
from rollwise.state import decode_array, encode_array


class Columns:
    """Arrays (N,) by name, each with a default for prompts not seen before.

    >>> columns = Columns(3, {"mean": (np.float64, np.nan), "asked": (np.int64, 0)})
    >>> columns["asked"].tolist(), list(columns)
    ([0, 0, 0], ['mean', 'asked'])
    """

    def __init__(self, n: int, defaults: Mapping[str, tuple[type, Any]]) -> None:
        self._arrays: dict[str, np.ndarray] = {
            name: np.full(n, default, dtype=dtype) for name, (dtype, default) in defaults.items()
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
            saved = decode_array(state[name])
            if saved.ndim != 1 or saved.dtype != array.dtype or (old_rows.size and len(saved) <= old_rows.max()):
                raise StateError(f"column {name!r} in the state has dtype {saved.dtype} and shape {saved.shape}")
            array[new_rows] = saved[old_rows]
