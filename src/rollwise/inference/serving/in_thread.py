"""Reading from a coroutine in code that is not async."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


_PATIENCE = 5.0
"""Seconds that what is being closed gets to end by itself, before it is cancelled."""


def in_thread(work: Callable[[Callable[[T], None]], Coroutine[Any, Any, None]]) -> Iterator[T]:
    """Run a coroutine in a thread of its own, and yield what it puts; cancelled if the caller stops reading.

    Args:
        work: Is given `put`, which it calls with each item.

    Raises:
        BaseException: what the coroutine raised.
    """
    items: queue.SimpleQueue[tuple[T] | BaseException | None] = queue.SimpleQueue()
    loop = asyncio.new_event_loop()
    main = loop.create_task(work(lambda item: items.put((item,))))

    def run() -> None:
        end: BaseException | None = None
        try:
            loop.run_until_complete(main)
        except BaseException as error:  # raised where the items are read
            end = error
        loop.run_until_complete(_settled())
        loop.close()
        items.put(end)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while (item := items.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item[0]
    finally:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(main.cancel)
        thread.join()


async def _settled() -> None:
    """Let streams that were left half-read close, while their loop still runs.

    Each is closed by a task, which may leave another stream inside of it, whose task comes a turn later.
    """
    loop, own = asyncio.get_running_loop(), asyncio.current_task()
    await loop.shutdown_asyncgens()
    await asyncio.sleep(0)
    while tasks := asyncio.all_tasks() - {own}:
        _, late = await asyncio.wait(tasks, timeout=_PATIENCE)
        for task in late:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)
