"""Draws one prompt's samples, several at once, until its rule stops.

A rule has a least number of samples (`least_stop`): adaptive consistency can't stop before 4, or before 7 once one of
them disagrees. That many are asked for in one request, which reads the prompt once. All of them are needed, so the
total is the same as when drawing one at a time, in fewer rounds. `ahead` asks for more, and cancels what the rule does
not need.

Samples are judged in the order of their numbers, never in that in which they come. So the result does not depend on
latencies, and short samples, which come first, get no more weight than long ones.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from rollwise.inference.endpoint.answers import unified
from rollwise.inference.endpoint.config import EndpointConfig
from rollwise.inference.endpoint.replies import BrokenReplyError, Reply, Sample
from rollwise.inference.endpoint.samples import Drawn, Line, request_line, sample_line
from rollwise.inference.policies.agreement import Answer, StoppingRule, least_stop, majority

Ask = Callable[[Any, int, int | None, Reply], Awaitable[None]]
"""(prompt, samples wanted, seed or None, what takes them)."""

_LONGEST_WAIT = 8.0
"""Seconds between two tries, or for the count of tokens after the last sample, at most."""


class Slots:
    """A bound on the samples in flight; a request takes a slot for each of its samples.

    The oldest prompt is served first, so that prompts are finished one after another.

    Args:
        limit: Most samples in flight.
    """

    def __init__(self, limit: int) -> None:
        self.free = limit
        self._waiting: list[tuple[int, int, int, asyncio.Future[None]]] = []
        self._count = 0

    async def take(self, n: int, priority: int) -> None:
        """Wait for n slots, at most `limit`; the least `priority` goes first."""
        turn = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._waiting, (priority, self._count, n, turn))
        self._serve()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():  # it was not its turn yet; it may have been the first
                self._serve()
            else:
                self.give(n)
            raise

    def give(self, n: int) -> None:
        """Give n slots back."""
        self.free += n
        self._serve()

    def _serve(self) -> None:
        while self._waiting:
            *_, n, turn = self._waiting[0]
            if not turn.done():
                if n > self.free:
                    return  # the first in turn waits until there are enough, else a large request never has its turn
                self.free -= n
                turn.set_result(None)
            heapq.heappop(self._waiting)


@dataclass
class Desk:
    """What all prompts share.

    Attributes:
        config: How samples are drawn.
        rule: When to stop.
        ask: Asks for samples.
        extract: Finds a sample's answer.
        slots: The bound on samples in flight.
        log: Keeps a line of a sample or request.
        most: Most samples that one request asks for; 1 as soon as the endpoint turns out to ignore n.
    """

    config: EndpointConfig
    rule: StoppingRule
    ask: Ask
    extract: Callable[[str], Answer]
    slots: Slots
    log: Callable[[Line], None]
    most: int = 0

    def __post_init__(self) -> None:
        self.most = self.most or self.config.per_request()


class Drawing:
    """Draws samples of one prompt.

    Args:
        desk: What all prompts share.
        id_: The prompt's id.
        prompt: Text or chat messages.
        drawn: What is there of it.
        priority: Its place among the prompts.
        seed: That of its first sample; the others' count on from there, however they are asked for. None for none.
        admit: Called when a request has its slots, right before it is sent; may raise.
        give_up: Called with what a request failed for good by, before others get its slots.
    """

    def __init__(
        self,
        desk: Desk,
        id_: str,
        prompt: Any,
        drawn: Drawn,
        *,
        priority: int = 0,
        seed: int | None = None,
        admit: Callable[[], None] = lambda: None,
        give_up: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        self.desk, self.id, self.prompt, self.drawn = desk, id_, prompt, drawn
        self.priority, self.seed, self.admit, self.give_up = priority, seed, admit, give_up
        self._stop = 0
        self._asked: set[int] = set()
        self._tasks: dict[asyncio.Task[None], set[int]] = {}  # each with the samples that it still has to bring
        self._news = asyncio.Event()

    async def run(self) -> Line:
        """Draw until the rule stops, or there are K: the prompt's line."""
        try:
            while not self._settled():
                for task in [task for task in self._tasks if task.done()]:
                    del self._tasks[task]
                    task.result()
                if not self._tasks or self.desk.config.ahead:
                    self._launch()
                await self._news.wait()
                self._news.clear()
            await self._wait_for_counts()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        return self._line()

    async def _wait_for_counts(self) -> None:
        """Cancel what brings samples that are not needed; what brought all of them has the count of tokens to come."""
        for task, left in self._tasks.items():
            if left:
                task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_LONGEST_WAIT)

    def _settled(self) -> bool:
        """Whether all samples are there that the rule needs."""
        samples = self.drawn.samples
        numbers = sorted(samples)
        known = dict(zip(numbers, unified(samples[at]["answer"] for at in numbers), strict=True))
        self._stop = least_stop(self.desk.rule, self.desk.config.k, known, self._stop)
        return all(at in known for at in range(self._stop))

    def _launch(self) -> None:
        target = min(self.desk.config.k, self._stop + self.desk.config.ahead)
        missing = [at for at in range(target) if at not in self.drawn.samples and at not in self._asked]
        self._asked.update(missing)
        most = self.desk.most
        needed = [at for at in missing if at < self._stop]  # apart, so that a request that is cancelled holds none
        for run in runs_of(needed, most=most) + runs_of(missing[len(needed) :], most=most):
            left = set(run)
            task = asyncio.create_task(self._request(left))
            task.add_done_callback(lambda _: self._news.set())
            self._tasks[task] = left

    async def _request(self, left: set[int]) -> None:
        """Draw these samples, asking again for what a reply that broke off, or an endpoint that ignores n, left."""
        failures = 0
        await self.desk.slots.take(len(left), self.priority)
        try:
            self.admit()
            while left:
                try:
                    await self._ask(runs_of(sorted(left), most=len(left))[0], left)
                except BrokenReplyError:
                    failures += 1
                    if failures > self.desk.config.retries:
                        raise
                    await asyncio.sleep(min(_LONGEST_WAIT, 0.25 * 2**failures))
        except Exception as error:
            self.give_up(error)
            raise
        finally:
            self.desk.slots.give(len(left))

    async def _ask(self, run: list[int], left: set[int]) -> None:
        """One request for samples with numbers in a row; those that come leave `left`."""
        desk, request = self.desk, self.drawn.next_request
        self.drawn.next_request += 1

        def take(place: int, sample: Sample) -> None:
            at = run[place]
            answer = None if sample.truncated else desk.extract(sample.text)
            self._keep(sample_line(self.id, at, request, answer, sample, keep_text=desk.config.keep_texts))
            left.discard(at)
            desk.slots.give(1)
            self._news.set()

        reply, ended = Reply(take), False
        try:
            await desk.ask(self.prompt, len(run), None if self.seed is None else self.seed + run[0], reply)
            ended = True
            if reply.taken == 1 < len(run):
                desk.most = 1
        finally:
            if reply.began:
                self._keep(request_line(self.id, request, len(run), reply, ended=ended))

    def _keep(self, line: Line) -> None:
        self.desk.log(line)
        self.drawn.add(line)

    def _line(self) -> Line:
        samples = [self.drawn.samples[at] for at in range(self._stop)]
        answers = unified(line["answer"] for line in samples)
        line = {
            "answers": answers,
            "chosen": majority(answers),
            "why": "agreed" if self.desk.rule.agreed(answers) else "budget",
            "samples": len(answers),
            **self.drawn.cost(self._stop),
            "truncated": sum(line["truncated"] for line in samples),
        }
        return {**line, "texts": [one["text"] for one in samples]} if self.desk.config.keep_texts else line


def runs_of(numbers: Iterable[int], *, most: int) -> list[list[int]]:
    """Increasing numbers in runs without gaps, none longer than `most`.

    >>> runs_of([0, 1, 2, 5, 6], most=2)
    [[0, 1], [2], [5, 6]]
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and len(runs[-1]) < most and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs
