"""Best-of-N for many prompts over one server, for `rollwise bestof --base_url`: the streamed decoder, in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rollwise.errors import ConfigError
from rollwise.inference.endpoint.asking import run_together, seed_of
from rollwise.inference.endpoint.client import Endpoint, import_openai
from rollwise.inference.endpoint.config import EndpointConfig
from rollwise.inference.endpoint.replies import BadReplyError, BrokenReplyError, Watch, one_line
from rollwise.inference.policies.candidate_group import Result
from rollwise.inference.policies.candidates import Policy
from rollwise.inference.policies.selection import answer_key
from rollwise.inference.serving.server_stream import ServerSource
from rollwise.inference.serving.streamed import StreamedDecoder
from rollwise.inference.serving.vllm_signals import Signal, VLLMRequest
from rollwise.models.sampler import encode


@dataclass
class Spent:
    """What a run over a server took.

    Attributes:
        wall_s: Seconds.
        requests: Sent, those that were tried again not counted.
        tokens_in: Prompt tokens of all requests.
        tokens_out: Completion tokens.
        uncounted: Requests that were closed, so that the server gave no count: their tokens are those that came.
    """

    wall_s: float = 0.0
    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    uncounted: int = 0


@dataclass
class ServerDecoder:
    """Decodes many prompts by a policy over a server.

    Args:
        config: The endpoint, whose `concurrency` bounds the candidates in flight.
        signal: What is read; None for policies that need nothing.
        unnamed_ids: Rows that must not be drawn.
        tokenizer: Makes prompts token ids; None to send them as they are.
        seed: Root of the candidates' seeds.

    Attributes:
        stats: What it took.
        failures: Prompt id -> what went wrong.
    """

    config: EndpointConfig
    signal: Signal | None = None
    unnamed_ids: Sequence[int] = ()
    tokenizer: Any = None
    seed: int = 0
    stats: Spent = field(default_factory=Spent)
    failures: dict[str, str] = field(default_factory=dict)

    def decode(
        self,
        ids: Sequence[str],
        prompts: Sequence[Any],
        policy: Policy,
        *,
        k: Sequence[int],
        answer: Any = answer_key,
    ) -> Iterator[Result]:
        """Yield each prompt's result as soon as it is done. Who stops reading leaves no request behind.

        Raises:
            ConfigError: the server refuses everything, nothing but failures comes from it, or it lacks the signal.
        """
        put: queue.SimpleQueue[Result | BaseException | None] = queue.SimpleQueue()
        loop = asyncio.new_event_loop()
        main = loop.create_task(self._all(ids, prompts, policy, k, answer, put))

        def work() -> None:
            end: BaseException | None = None
            try:
                loop.run_until_complete(main)
            except BaseException as error:  # raised by who reads
                end = error
            loop.close()
            put.put(end)

        thread = threading.Thread(target=work, daemon=True)
        began = time.monotonic()
        thread.start()
        try:
            while (item := put.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(main.cancel)
            thread.join()
            self.stats.wall_s += time.monotonic() - began

    async def _all(
        self, ids: Sequence[str], prompts: Sequence[Any], policy: Policy, k: Sequence[int], answer: Any, put: Any
    ) -> None:
        endpoint = Endpoint(self.config)
        if self.tokenizer is not None:
            prompts = [encode(self.tokenizer, prompt) for prompt in prompts]
        source = ServerSource(endpoint, dict(zip(ids, prompts, strict=True)), self.signal)
        decoder = StreamedDecoder(
            source,
            signal=self.signal,
            max_new_tokens=self.config.max_tokens,
            slots=self.config.concurrency,
            unnamed_ids=self.unnamed_ids,
            answer=answer,
        )
        at_work, watch = asyncio.Semaphore(self.config.concurrency), Watch(len(ids))

        async def one(at: int) -> None:
            async with at_work:
                if watch.down():
                    self.failures[ids[at]] = f"not asked: {watch.last}"
                    return
                watch.begin(at)
                try:
                    put.put(await self._one(decoder, ids[at], prompts[at], k[at], policy))
                    watch.succeeded()
                except (import_openai().APIError, BadReplyError) as error:
                    self.failures[ids[at]] = one_line(error)
                    watch.failed(at, error)
                    if watch.down():
                        raise ConfigError(
                            f"nothing but failures from {self.config.base_url}, the last: {watch.last}; look at the "
                            "server"
                        ) from error

        try:
            await run_together([one(at) for at in range(len(ids))])
        finally:
            for name in ("requests", "tokens_in", "tokens_out", "uncounted"):
                setattr(self.stats, name, getattr(source, name))
            await endpoint.close()

    async def _one(self, decoder: StreamedDecoder, id_: str, prompt: Any, k: int, policy: Policy) -> Result:
        """One prompt; where one of its streams breaks off, all of it again."""
        request = VLLMRequest(id_, () if self.tokenizer is None else prompt)
        for _ in range(self.config.retries):
            try:
                return await decoder.decode(request, k, policy, seed_of(self.seed, id_))
            except BrokenReplyError:
                continue
        return await decoder.decode(request, k, policy, seed_of(self.seed, id_))
