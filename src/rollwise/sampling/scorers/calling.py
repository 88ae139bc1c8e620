"""Calls reward functions of TRL's signature, and checks what they give."""

from __future__ import annotations

import asyncio
import functools
import inspect
import math
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rollwise.errors import RewardError, RollwiseError

_LIBRARIES = (sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))
_NOT_OWN = (*_LIBRARIES, str(Path(__file__).parents[2]), "<")


def checked(
    function: Callable[..., Any], name: str, *, pool: Callable[..., list[float | None]] | None = None
) -> Callable[..., Any]:
    """`function` under `name`, asynchronous if it is; it raises `RewardError` for what is no list of finite numbers.

    Args:
        function: the reward.
        name: its name.
        pool: what is called in its place, not asynchronous; the signature stays that of `function`.
    """
    label = f"reward {name!r}"
    inner: Callable[..., Any] = function if pool is None else pool

    async def asked(**columns: Any) -> list[float | None]:
        with _named(label):
            return numbers(await inner(**columns), label, len(columns["completions"]))

    def called(**columns: Any) -> list[float | None]:
        with _named(label):
            return numbers(inner(**columns), label, len(columns["completions"]))

    call: Callable[..., Any] = asked if is_async(inner) else called
    call.__name__ = name
    call.__wrapped__ = function  # type: ignore[attr-defined]  # so that its signature can be read
    return call


def is_async(function: Any) -> bool:
    """Whether calling it gives something to await: a coroutine function, or an object with one as its `__call__`."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Whatever a reward function raises inside becomes a `RewardError` that names it."""
    try:
        yield
    except RollwiseError:
        raise
    except (Exception, SystemExit) as error:  # `sys.exit()` would end the run without a word
        raise RewardError(f"{name} raised {error!r:.300}{place_of(error)}; {remedy_for(error)}") from error


def place_of(error: BaseException) -> str:
    """Where in a user's own code an error was raised, " in FILE, line N"; "" where no frame is the user's."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_NOT_OWN)]
    return f" in {own[-1].filename}, line {own[-1].lineno}" if own else ""


def remedy_for(error: BaseException) -> str:
    """What to do about an error of a user's own code."""
    if isinstance(error, AttributeError | TypeError) and "'list'" in str(error):
        return "with chat prompts a completion is a list of messages, whose text is completion[-1]['content']"
    if isinstance(error, TypeError) and str(error).startswith("string indices must be"):
        return "these completions are texts; for messages give chat prompts, or --system ('' for no system message)"
    return "mend it"


def numbers(given: Any, name: str, n: int) -> list[float | None]:
    """What `name` gave as n finite numbers, None where a rollout can't be scored; `RewardError` for anything else."""
    listed = given.tolist() if hasattr(given, "tolist") else given
    if inspect.isawaitable(listed):
        raise RewardError(f"{name} gave something to await; declare it with async def")
    if not isinstance(listed, list | tuple) or len(listed) != n:
        raise RewardError(f"{name} must give a list of {n} rewards, got {listed!r:.120}")
    return [None if value is None else _number(value, name) for value in listed]


def _number(value: Any, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise RewardError(
            f"{name} gave {value!r:.80}; a reward must be a number, or None for what can't be scored"
        ) from None
    if not math.isfinite(number):
        raise RewardError(f"{name} gave {value!r:.80}; a reward must be finite, or None for what can't be scored")
    return number


def awaited(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, or where it is asynchronous, one that waits for it."""
    if not is_async(function):
        return function

    @functools.wraps(function)
    def run(**columns: Any) -> Any:
        return asyncio.run(function(**columns))

    return run
