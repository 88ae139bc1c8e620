"""One call at a time: overlapping calls on a curriculum are refused, or wait for each other in `Synchronized`."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from rollwise.errors import ConcurrentUseError, ConfigError

P = ParamSpec("P")
R = TypeVar("R")


class Busy:
    """Held while a curriculum is in a call. A deep copy and an unpickled one are free, whatever the original is."""

    __slots__ = ("lock",)

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __deepcopy__(self, memo: dict[int, Any]) -> Busy:
        return Busy()

    def __reduce__(self) -> tuple[type[Busy], tuple[()]]:
        return Busy, ()


class _HasBusy(Protocol):
    busy: Busy


S = TypeVar("S", bound=_HasBusy)


def exclusive(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Raise `ConcurrentUseError` at once where another exclusive method of the object has not returned yet."""

    @functools.wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            lock = self.busy.lock  # of now: the call may exchange all attributes of the object
        except AttributeError:
            raise ConfigError(f"{type(self).__name__}.__init__ must call super().__init__(pool)") from None
        if not lock.acquire(blocking=False):
            raise ConcurrentUseError(
                f"{method.__name__} was called while another call on this {type(self).__name__} was running, and "
                "changed nothing; call it from one thread, or share rw.Synchronized(curriculum)"
            )
        try:
            return method(self, *args, **kwargs)
        finally:
            lock.release()

    return call


class Synchronized:
    """A curriculum for several threads: the same methods and attributes, one call at a time; the others wait.

    Args:
        curriculum: leave all calls on it to this object.

    >>> import rollwise as rw
    >>> shared = rw.Synchronized(rw.Uniform(rw.PromptPool(ids=["a", "b"])))
    >>> len(shared.ask(2)), shared.step
    (2, 1)

    Several calls that belong together hold its `lock`, which may be taken again by the thread that has it:

    >>> with shared.lock:
    ...     report = shared.tell_each([]), shared.ask(1)
    """

    def __init__(self, curriculum: Any) -> None:
        self.curriculum = curriculum
        self.lock = threading.RLock()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("curriculum", "lock"):
            raise AttributeError(name)
        with self.lock:
            value = getattr(self.curriculum, name)
        if not callable(value):
            return value

        @functools.wraps(value)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.lock:
                return getattr(self.curriculum, name)(*args, **kwargs)

        self.__dict__[name] = call
        return call

    def __reduce__(self) -> tuple[type[Synchronized], tuple[Any]]:
        return Synchronized, (self.curriculum,)
