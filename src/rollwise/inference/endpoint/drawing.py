"""Draws one prompt's samples, several at once, until its rule stops.

A rule has a least number of samples (`least_stop`): adaptive consistency can't stop before 4, or before 7 once one of
them disagrees. That many are asked for in one request, which reads the prompt once. All of them are needed, so the
total is the same as when drawing one at a time, in fewer rounds. Where prompts are long beside answers, a request asks
for a few more (`sizing`), which may save reading the prompt again. `ahead` asks for more in requests of their own, and
cancels what the rule does not need.

Samples are judged in the order of their numbers, never in that in which they come. So the result does not depend on
latencies, and short samples, which come first, get no more weight than long ones.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from rollwise.inference.endpoint.answers import unified
from rollwise.inference.endpoint.config import EndpointConfig
from rollwise.inference.endpoint.replies import LONGEST_WAIT, BrokenReplyError, NotAskedError, Reply, Sample, wait_again
from rollwise.inference.endpoint.samples import Drawn, Line, request_line, sample_line
from rollwise.inference.endpoint.sizing import AnswerLength, estimated_tokens, worth_asking
from rollwise.inference.policies.agreement import Answer, StoppingRule, least_stop, majority

Ask = Callable[[Any, int, int | None, Reply], Awaitable[None]]
"""(prompt, samples wanted, seed or None, what takes them)."""


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
        passing: Errors that end one prompt alone.
        most: Most samples that one request asks for; 1 as soon as the endpoint turns out to ignore n.
        length: How long answers are.
    """

    config: EndpointConfig
    rule: StoppingRule
    ask: Ask
    extract: Callable[[str], Answer]
    slots: Slots
    log: Callable[[Line], None]
    passing: tuple[type[Exception], ...] = ()
    most: int = field(init=False)
    length: AnswerLength = field(default_factory=AnswerLength)

    def __post_init__(self) -> None:
        self.most = self.config.per_request()


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
        self._stop, self._ahead, self._failed = 0, desk.config.ahead or 0, False
        self._asked: set[int] = set()
        self._tasks: dict[asyncio.Task[None], set[int]] = {}  # each with the samples that it still has to bring
        self._spare: set[asyncio.Task[None]] = set()  # those that bring none but samples asked for `ahead`
        self._news = asyncio.Event()

    async def run(self) -> Line:
        """Draw until the rule stops, or there are K: the prompt's line."""
        try:
            while not self._settled():
                for task in [task for task in self._tasks if task.done()]:
                    del self._tasks[task]
                    task.result()
                if not self._tasks or self._ahead:
                    self._launch()
                await self._news.wait()
                self._news.clear()
            await self._wait_for_counts()
        except self.desk.passing:
            self._failed = True
            await self._wait_for_counts()  # what else was asked for is paid: a resume has it
            raise
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        return self._line()

    async def _wait_for_counts(self) -> None:
        """Wait for what is under way, and for its tokens' counts. What was asked for `ahead` alone is cancelled."""
        for task, left in self._tasks.items():
            if left and task in self._spare:
                task.cancel()
        if self._tasks:
            more_to_come = any(left for task, left in self._tasks.items() if task not in self._spare)
            await asyncio.wait(self._tasks, timeout=None if more_to_come else LONGEST_WAIT)

    def _settled(self) -> bool:
        """Whether all samples are there that the rule needs."""
        samples = self.drawn.samples
        numbers = sorted(samples)
        known = dict(zip(numbers, self._unified(numbers), strict=True))
        self._stop = least_stop(self.desk.rule, self.desk.config.num_generations, known, self._stop)
        return all(at in known for at in range(self._stop))

    def _unified(self, numbers: Iterable[int]) -> list[Answer]:
        return unified((self.drawn.samples[at]["answer"] for at in numbers), self.desk.config.same)

    def _launch(self) -> None:
        config, most = self.desk.config, self.desk.most
        needed = runs_of(filter(self._is_free, range(self._stop)), most=most)
        if needed and needed[-1][-1] == self._stop - 1:
            room = min(most - len(needed[-1]), self._worth_more())
            needed[-1] += list(takewhile(self._is_free, range(self._stop, config.num_generations)))[:room]
        beyond = range(self._stop, min(config.num_generations, self._stop + self._ahead))
        # Apart, so that a request that is cancelled holds no sample that is needed.
        ahead = runs_of(filter(self._is_free, beyond), most=most)
        for run in needed + ahead:
            self._asked.update(run)
            left, spare = set(run), run[0] >= self._stop
            task = asyncio.create_task(self._request(left, spare=spare))
            task.add_done_callback(lambda _: self._news.set())
            self._tasks[task] = left
            if spare:
                self._spare.add(task)

    def _is_free(self, at: int) -> bool:
        return at not in self.drawn.samples and at not in self._asked

    def _worth_more(self) -> int:
        """Samples to ask for beyond those that the rule can't do without, in the same request."""
        config = self.desk.config
        if config.window is not None or config.ahead is not None:
            return 0
        counted = [line["prompt_tokens"] for line in self.drawn.requests.values() if line["prompt_tokens"]]
        prompt = counted[0] if counted else estimated_tokens(self.prompt, config.system)
        price_in, price_out = (1.0 if price is None else price for price in (config.price_in, config.price_out))
        return int(min(config.num_generations, worth_asking(prompt, self.desk.length.mean(), price_in, price_out)))

    async def _request(self, left: set[int], *, spare: bool) -> None:
        """Draw these samples, asking again for what a reply that broke off, or an endpoint that ignores n, left.

        Where some are needed and those are there, the others are not asked for again.
        """
        failures = 0
        await self.desk.slots.take(len(left), self.priority)
        try:
            self.admit()
            while left and not self._failed and (spare or min(left) < self._stop):
                try:
                    await self._ask(runs_of(sorted(left), most=len(left))[0], left)
                except BrokenReplyError:
                    failures += 1
                    if failures > self.desk.config.retries:
                        raise
                    await wait_again(failures)
        except Exception as error:
            if spare and isinstance(error, (*self.desk.passing, NotAskedError)):
                self._ahead = 0  # nobody needs them yet: what is needed is under way, or asked for by itself
                return
            self.give_up(error)
            raise
        finally:
            self.desk.slots.give(len(left))
            self._asked -= left

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

        reply, ended = Reply(take, desk.config.stops), False
        try:
            await desk.ask(self.prompt, len(run), None if self.seed is None else self.seed + run[0], reply)
            ended = True
            if reply.taken == 1 < len(run):
                desk.most = 1
        finally:
            if reply.began:
                line = request_line(self.id, request, len(run), reply, ended=ended)
                self._keep(line)
                self.desk.length.add(line, reply.taken)

    def _keep(self, line: Line) -> None:
        self.desk.log(line)
        self.drawn.add(line)

    def _line(self) -> Line:
        samples = [self.drawn.samples[at] for at in range(self._stop)]
        answers = self._unified(range(self._stop))
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
