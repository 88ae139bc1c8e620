"""Best-of-N by a policy over candidates that come as streams, of a server or of an engine that runs by itself.

Each candidate is a stream of its own. What a policy gives up is closed, which tells the other side to stop; what still
came of it is charged. Knows neither HTTP nor vLLM.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rollwise.errors import ConfigError
from rollwise.inference.endpoint.drawing import Slots
from rollwise.inference.endpoint.replies import BadReplyError, BrokenReplyError
from rollwise.inference.policies import ABANDONED, RUNNING, Policy, Result
from rollwise.inference.serving.feeding import ENDS, Feed
from rollwise.inference.serving.vllm_signals import Signal, VLLMRequest, check_policy
from rollwise.options import check_whole

GRACE = 2.0
"""Seconds to wait for one more chunk of a candidate that was given up, to charge it, before its stream is closed."""


@dataclass(frozen=True)
class Chunk:
    """What came of a candidate since the chunk before.

    Attributes:
        tokens: Its tokens; 0 for each of a server that does not name them.
        positions: For each token the log-probabilities there, id -> an object with `logprob`; None without a signal.
        text: Its text.
        finish: "stop", or "length" at the token limit; None while it goes on.
    """

    tokens: Sequence[int]
    positions: Sequence[Mapping[int, Any]] | None = None
    text: str = ""
    finish: str | None = None


class Source(Protocol):
    """Where candidates come from."""

    def stream(self, request: VLLMRequest, index: int, seed: int) -> AsyncGenerator[Chunk, None]:
        """The chunks of a prompt's candidate; `aclose` gives it up."""


class StreamedDecoder:
    """Adaptive best-of-N by a policy, over a source of streams.

    Args:
        source: Gives the streams.
        signal: `HeadSlice`, `TopLogprobs`, or None for policies that need none.
        max_new_tokens: Most tokens of a candidate.
        slots: Most candidates in flight, of all prompts together; the earliest prompt is served first.
        unnamed_ids: Rows without a name, which must never be drawn.
        answer: A candidate's text -> its final answer, for policies that vote.
    """

    def __init__(
        self,
        source: Source,
        *,
        signal: Signal | None,
        max_new_tokens: int,
        slots: int,
        unnamed_ids: Collection[int],
        answer: Callable[[str], str | None],
    ) -> None:
        self.source, self.signal, self.answer = source, signal, answer
        self.limit = check_whole("max_new_tokens", max_new_tokens, least=1)
        self.slots = Slots(check_whole("slots", slots, least=1))
        self.feed = Feed(signal, frozenset(unnamed_ids))
        self._turns = 0

    async def decode(self, request: VLLMRequest, k: int, policy: Policy, seed: int = 0) -> Result:
        """One prompt's candidates by the policy. Call it for many prompts at once.

        Candidate i has the seed `seed + i`. Cancelled, it closes all its streams.

        Raises:
            ConfigError: a policy that lacks what it needs, a masked row that was drawn, or no log-probabilities.
            BadReplyError: a candidate did not end by itself.
            BrokenReplyError: a stream ended before its candidate did.
        """
        check_whole("k", k, least=1)
        check_policy(policy, signal=self.signal, answers=True)
        self._turns += 1
        return await _Prompt(self, request, k, policy, seed, self._turns).run()


class _Prompt:
    """One prompt at work."""

    def __init__(
        self, decoder: StreamedDecoder, request: VLLMRequest, k: int, policy: Policy, seed: int, turn: int
    ) -> None:
        self.decoder, self.request, self.seed, self.turn = decoder, request, seed, turn
        self.group = decoder.feed.group(request, k, policy, decoder.limit)
        self.texts: list[list[str]] = [[] for _ in range(k)]
        self.positions: list[list[Mapping[int, Any]]] = [[] for _ in range(k)]
        self.late = 0
        self.tasks: dict[int, asyncio.Task[None]] = {}

    async def run(self) -> Result:
        self._begin(self.group.launch(self.group.first))
        try:
            while self.tasks:
                done, _ = await asyncio.wait(self.tasks.values(), return_when=asyncio.FIRST_COMPLETED)
                for j in [j for j, task in self.tasks.items() if task in done]:
                    task = self.tasks.pop(j)
                    with contextlib.suppress(asyncio.CancelledError):
                        task.result()
        finally:
            for task in self.tasks.values():
                task.cancel()
            await asyncio.gather(*self.tasks.values(), return_exceptions=True)
        result = self.group.result()
        result.late_tokens = self.late
        for candidate, parts in zip(result.candidates, self.texts, strict=True):
            candidate.text = "".join(parts)
        return result

    def _begin(self, indices: Sequence[int]) -> None:
        for j in indices:
            if self.group.state[j] == RUNNING:  # not given up within the same chunk
                self.tasks[j] = asyncio.get_running_loop().create_task(self._candidate(j))

    async def _candidate(self, j: int) -> None:
        await self.decoder.slots.take(1, self.turn)
        try:
            stream = self.decoder.source.stream(self.request, j, self.seed + j)
            try:
                await self._read(j, stream)
            finally:
                await stream.aclose()
        except BrokenReplyError:
            if self.group.state[j] != ABANDONED:
                raise
        finally:
            self.decoder.slots.give(1)

    async def _read(self, j: int, stream: AsyncGenerator[Chunk, None]) -> None:
        async for chunk in stream:
            seen = self._take(j, chunk) if self.group.state[j] == RUNNING else 0
            self.late += len(chunk.tokens) - seen
            if self.group.state[j] != RUNNING and chunk.finish is None:
                return  # what is whole is read to the stream's end, where the server's count of its tokens stands
        if self.group.state[j] == RUNNING:
            raise BrokenReplyError(f"the stream of a candidate of prompt {self.request.id!r} ended before it did")

    def _take(self, j: int, chunk: Chunk) -> int:
        """Show the group a chunk's tokens one by one, as though they had come so; how many it looked at."""
        self.texts[j].append(chunk.text)
        for at, token in enumerate(chunk.tokens):
            self._observe(j, int(token), None if chunk.positions is None else chunk.positions[at])
            if chunk.finish is not None and at == len(chunk.tokens) - 1:
                self._end(j, chunk.finish)
            self._decide()
            if self.group.state[j] == ABANDONED:
                return at + 1
        if chunk.finish is not None and not chunk.tokens:
            self._end(j, chunk.finish)
            self._decide()
        return len(chunk.tokens)

    def _observe(self, j: int, token: int, position: Mapping[int, Any] | None) -> None:
        if len(self.group.tokens[j]) >= self.group.limit:
            raise ConfigError(
                f"a candidate of prompt {self.group.id!r} has more than max_tokens={self.group.limit} tokens"
            )
        self.decoder.feed.observe(self.group, j, token, position)
        if position is not None:
            self.positions[j].append(position)

    def _end(self, j: int, finish: str) -> None:
        text = "".join(self.texts[j])
        if finish not in ENDS:  # as a filter of contents does: this prompt's failure, not that of all
            raise BadReplyError(f"a candidate was ended by {finish!r}, not by itself")
        self.decoder.feed.end(self.group, j, finish, self.positions[j], lambda: self.decoder.answer(text))

    def _decide(self) -> None:
        gone, begun = self.group.decide()
        for j in gone:
            if task := self.tasks.get(j):
                if self.group.tokens[j]:
                    asyncio.get_running_loop().call_later(GRACE, task.cancel)
                else:
                    task.cancel()  # perhaps it waits in a queue
        self._begin(begun)
