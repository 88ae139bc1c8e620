"""Reading from a coroutine in code that is not async."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


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
