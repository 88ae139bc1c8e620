"""Best-of-N for many prompts over one server, for `rollwise bestof --base_url`: the streamed decoder, in a thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from rollwise.inference.endpoint.asking import ask_each, seed_of
from rollwise.inference.endpoint.client import Endpoint
from rollwise.inference.endpoint.config import EndpointConfig
from rollwise.inference.endpoint.replies import BrokenReplyError, wait_again
from rollwise.inference.policies import Policy, Result, answer_key
from rollwise.inference.serving.in_thread import in_thread
from rollwise.inference.serving.server_stream import ServerSource, Spent
from rollwise.inference.serving.streamed import StreamedDecoder
from rollwise.inference.serving.vllm_signals import Signal, VLLMRequest
from rollwise.models.sampler import encode


@dataclass
class ServerDecoder:
    """Decodes many prompts by a policy over a server.

    Args:
        config: The endpoint, whose `concurrency` bounds the candidates in flight.
        signal: What is read; None for policies that need nothing.
        unnamed_ids: Rows that must not be drawn.
        tokenizer: Makes prompts token ids; None to send them as they are.
        seed: Root of the candidates' seeds.
        resumed: Whether other prompts are answered: should the server be down, the rest is left instead of an error.

    Attributes:
        stats: What it took.
        failures: Prompt id -> what went wrong.
    """

    config: EndpointConfig
    signal: Signal | None
    unnamed_ids: Sequence[int]
    tokenizer: Any
    seed: int
    resumed: bool = False
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
        """Yield each prompt's result as soon as it is done. If the caller stops reading, open requests are closed.

        Raises:
            ConfigError: the server refuses everything, nothing but failures comes from it, or it lacks the signal.
        """
        if self.tokenizer is not None:
            prompts = [encode(self.tokenizer, prompt) for prompt in prompts]
        counts, given = dict(zip(ids, k, strict=True)), dict(zip(ids, prompts, strict=True))

        def work(put: Callable[[Result], None]) -> Coroutine[Any, Any, None]:
            return self._all(given, counts, policy, answer, put)

        began = time.monotonic()
        try:
            yield from in_thread(work)
        finally:
            self.stats.wall_s += time.monotonic() - began

    async def _all(
        self,
        prompts: dict[str, Any],
        counts: dict[str, int],
        policy: Policy,
        answer: Any,
        put: Callable[[Result], None],
    ) -> None:
        endpoint = Endpoint(self.config)
        decoder = StreamedDecoder(
            ServerSource(endpoint, prompts, self.signal, self.stats),
            signal=self.signal,
            max_new_tokens=self.config.max_completion_length,
            slots=self.config.concurrency,
            unnamed_ids=self.unnamed_ids,
            answer=answer,
        )
        ids = list(prompts)

        async def work(at: int, admit: Callable[[], None], give_up: Callable[[Exception], None]) -> None:
            admit()
            try:
                put(await self._one(decoder, ids[at], prompts[ids[at]], counts[ids[at]], policy))
            except Exception as error:
                give_up(error)
                raise

        self.failures = await ask_each(endpoint, ids, work, resumed=self.resumed)

    async def _one(self, decoder: StreamedDecoder, id_: str, prompt: Any, k: int, policy: Policy) -> Result:
        """One prompt; where one of its streams breaks off, all of it again."""
        request, failures = VLLMRequest(id_, () if self.tokenizer is None else prompt), 0
        while True:
            try:
                return await decoder.decode(request, k, policy, seed_of(self.seed, id_))
            except BrokenReplyError:
                failures += 1
                if failures > self.config.retries:
                    raise
                await wait_again(failures)
