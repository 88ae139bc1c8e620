"""Take a state in milliseconds and encode it later, so that nobody waits while it is saved.

`Snapshot.take` copies a curriculum's arrays into buffers that it keeps; compressing them, which takes most of the time
of `state_dict`, is done by `Snapshot.encoded`, in another thread if need be.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

_taking: ContextVar[Snapshot | None] = ContextVar("rollwise_snapshot", default=None)


@dataclass(frozen=True, slots=True)
class _Deferred:
    encode: Callable[[Any], Any]
    value: Any


class Snapshot:
    """One state at a time, in buffers that are used again: fresh memory would cost more than copying.

    >>> snapshot = Snapshot()
    >>> array = np.array([1, 2])
    >>> taken = snapshot.take(lambda: {"numbers": deferred(np.ndarray.tolist, array)})
    >>> array[0] = 5
    >>> snapshot.encoded(taken)
    {'numbers': [1, 2]}
    """

    def __init__(self) -> None:
        self._buffers: list[np.ndarray] = []
        self._used = 0

    def take(self, state_dict: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What `state_dict` returns, with what it would encode kept as it is now. The one taken before is gone."""
        self._used = 0
        token = _taking.set(self)
        try:
            return state_dict()
        finally:
            _taking.reset(token)

    def copy(self, array: np.ndarray) -> np.ndarray:
        """A copy in a buffer of this snapshot, valid until the next `take`."""
        if self._used == len(self._buffers):
            self._buffers.append(np.empty_like(array))
        buffer = self._buffers[self._used]
        if buffer.shape != array.shape or buffer.dtype != array.dtype:
            buffer = self._buffers[self._used] = np.empty_like(array)
        self._used += 1
        np.copyto(buffer, array)
        return buffer

    def encoded(self, taken: Any) -> Any:
        """What was taken as the JSON-safe state that `state_dict` would have returned."""
        if isinstance(taken, _Deferred):
            return taken.encode(taken.value)
        if isinstance(taken, dict):
            return {name: self.encoded(value) for name, value in taken.items()}
        if isinstance(taken, list):
            return [self.encoded(value) for value in taken]
        return taken


def deferred(encode: Callable[[Any], T], value: Any) -> T:
    """`encode(value)`; within `Snapshot.take` a stand-in for it, made of `value` as it is now.

    Args:
        encode: a function of the value alone.
        value: an array, or what is never changed.
    """
    snapshot = _taking.get()
    if snapshot is None:
        return encode(value)
    kept = snapshot.copy(value) if isinstance(value, np.ndarray) else value
    return _Deferred(encode, kept)  # type: ignore[return-value]
