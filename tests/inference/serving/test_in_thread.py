"""A coroutine read from code that is not async: what it leaves half-read is closed before its loop ends."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable

import pytest

from rollwise.inference.serving.in_thread import in_thread


def test_streams_left_half_read_are_closed(caplog: pytest.LogCaptureFixture) -> None:
    """As `openai`'s streams are, of which each reads another; a task that is still closing one would be destroyed."""
    closed = []

    async def inner() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0.01)
            closed.append("inner")

    async def outer() -> AsyncIterator[int]:
        async for one in inner():
            yield one

    async def work(put: Callable[[int], None]) -> None:
        async for one in outer():
            put(one)
            break

    assert list(in_thread(work)) == [1]
    gc.collect()
    assert closed == ["inner"]
    assert "Task was destroyed" not in caplog.text
