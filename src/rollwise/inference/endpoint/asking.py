"""Answers many prompts over one endpoint; a prompt's failure is its own."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
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
    try:
        return await _answer_all(asked, drawn, desk, keep, resumed)
    finally:
        await endpoint.close()


async def _answer_all(
    asked: Sequence[tuple[str, Any]],
    drawn: Mapping[str, Drawn],
    desk: Desk,
    keep: Callable[[int, Line], None],
    resumed: bool,
) -> dict[str, str]:
    config, passing = desk.config, desk.passing
    at_work = asyncio.Semaphore(config.concurrency)  # each prompt at work has a sample in flight, or waits for a slot
    failures: dict[str, str] = {}
    watch = Watch(len(asked), done=resumed)

    def give_up(at: int, error: Exception) -> None:
        if isinstance(error, passing) and asked[at][0] not in failures:  # one of a prompt's requests is enough
            failures[asked[at][0]] = one_line(error)
            watch.failed(at, error)

    async def one(at: int) -> None:
        (id_, prompt), hooks = asked[at], {"admit": partial(watch.begin, at), "give_up": partial(give_up, at)}
        seed = None if config.seed is None else seed_of(config.seed, id_)
        drawing = Drawing(desk, id_, prompt, drawn.get(id_) or Drawn(), priority=at, seed=seed, **hooks)
        try:
            async with at_work:
                line = await drawing.run()
        except NotAskedError:
            failures[id_] = f"not asked: {watch.hopeless(config.base_url)}"
        except passing as error:
            if watch.down() and not resumed:
                raise ConfigError(watch.hopeless(config.base_url)) from error
        else:
            failures.pop(id_, None)  # it did without what failed
            keep(at, {"id": id_, **line})
            watch.succeeded()

    await run_together([one(at) for at in range(len(asked))])
    return failures


async def run_together(works: Sequence[Coroutine[Any, Any, None]]) -> None:
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
