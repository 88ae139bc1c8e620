"""Answers many prompts over one endpoint; a prompt's failure is its own."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from rollwise.errors import ConfigError
from rollwise.inference.endpoint.client import Endpoint
from rollwise.inference.endpoint.config import EndpointConfig
from rollwise.inference.endpoint.drawing import Desk, Drawing, Slots
from rollwise.inference.endpoint.replies import NotAskedError, Watch, one_line
from rollwise.inference.endpoint.samples import Drawn, Line
from rollwise.inference.policies.agreement import Answer


async def ask_endpoint(
    config: EndpointConfig,
    asked: Sequence[tuple[str, Any]],
    drawn: Mapping[str, Drawn],
    extract: Callable[[str], Answer],
    log: Callable[[Line], None],
    keep: Callable[[int, Line], None],
    *,
    resumed: bool,
) -> dict[str, str]:
    """Answer N prompts over the endpoint of `config`, several at once; each line goes to `keep` as soon as it is there.

    Args:
        config: The endpoint, and how samples are drawn.
        asked: (id, prompt) of each, text or chat messages.
        drawn: What is there already of some of them.
        extract: Finds a sample's answer.
        log: Keeps a line of a sample or request.
        keep: Takes a prompt's place and its line.
        resumed: Whether other prompts are done: should the endpoint be down, the rest is left instead of an error.

    Returns:
        Of prompts that failed, or were not asked any more: id -> what went wrong.

    Raises:
        ConfigError: the endpoint refuses everything, or nothing but failures comes from it.
        RewardError: the user's function that extracts answers, or `keep`, fails.
    """
    endpoint = Endpoint(config)
    slots = Slots(config.concurrency)
    desk = Desk(config, config.stopping_rule(), endpoint.ask, extract, slots, log, endpoint.passing)
    for one in drawn.values():
        desk.length.add_drawn(one)

    async def work(at: int, admit: Callable[[], None], give_up: Callable[[Exception], None]) -> None:
        id_, prompt = asked[at]
        seed, there = None if config.seed is None else seed_of(config.seed, id_), drawn.get(id_) or Drawn()
        drawing = Drawing(desk, id_, prompt, there, priority=at, seed=seed, admit=admit, give_up=give_up)
        keep(at, {"id": id_, **await drawing.run()})

    return await ask_each(endpoint, [id_ for id_, _ in asked], work, resumed=resumed)


async def ask_each(
    endpoint: Endpoint,
    ids: Sequence[str],
    work: Callable[[int, Callable[[], None], Callable[[Exception], None]], Awaitable[None]],
    *,
    resumed: bool,
) -> dict[str, str]:
    """Do the work of N prompts over an endpoint, several at once, and close it; results and errors of `ask_endpoint`.

    Args:
        endpoint: The endpoint.
        ids: (N,) of the prompts.
        work: Is given a prompt's place, what to call right before a request is sent (it may raise), and what to call
            with the error by which one failed for good.
        resumed: As for `ask_endpoint`.
    """
    config, passing = endpoint.config, endpoint.passing
    at_work = asyncio.Semaphore(config.concurrency)  # each prompt at work has a sample in flight, or waits for a slot
    failures: dict[str, str] = {}
    watch = Watch(len(ids), done=resumed)

    def give_up(at: int, error: Exception) -> None:
        if isinstance(error, passing) and ids[at] not in failures:  # one of a prompt's requests is enough
            failures[ids[at]] = one_line(error)
            watch.failed(at, error)

    async def one(at: int) -> None:
        try:
            async with at_work:
                await work(at, partial(watch.begin, at), partial(give_up, at))
        except NotAskedError:
            failures[ids[at]] = f"not asked: {watch.hopeless(config.base_url)}"
        except passing as error:
            if watch.down() and not resumed:
                raise ConfigError(watch.hopeless(config.base_url)) from error
        else:
            failures.pop(ids[at], None)  # it did without what failed
            watch.succeeded()

    try:
        await _run_together([one(at) for at in range(len(ids))])
    finally:
        await endpoint.close()
    return failures


async def _run_together(works: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run all of them at once; the first error cancels the others, and is raised when they have ended."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def seed_of(seed: int, id_: str) -> int:
    """A prompt's first seed, its own and below 2^31; its samples count on from there.

    >>> seed_of(0, "a") == seed_of(0, "a"), seed_of(0, "a") == seed_of(0, "b")
    (True, False)
    """
    return int.from_bytes(hashlib.sha256(f"{seed}/{id_}".encode("utf-8", "surrogatepass")).digest()[:4], "big") >> 2
