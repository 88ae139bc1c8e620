"""Adaptive best-of-N on unmodified vLLM: reads values from log-probabilities, aborts lost candidates.

The success head stands in the rows of the served model's LM head that no token is named by (`rollwise head export`).
`logprob_token_ids` returns the log-probabilities of exactly these rows at each position, taken from the raw logits,
before bias and temperature: the softmax over them is the head's joint distribution, whatever the other tokens weigh.
`logit_bias` of -100 keeps them from being drawn. `abort_request` frees an abandoned candidate's place and cache, which
the engine's continuous batching gives to the next. Each candidate is a request of its own, with its own seed; the
prompt is shared by vLLM's prefix caching.

Works without a head too: `TopLogprobs` reads DeepConf's confidence, and `BestOfN` needs no signal at all.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rollwise.errors import ConfigError, MissingExtraError
from rollwise.inference.policies import RUNNING, CandidateGroup, Policy, Result, answer_key
from rollwise.inference.serving.feeding import Feed
from rollwise.inference.serving.vllm_signals import (
    TESTED,
    Signal,
    VLLMRequest,
    check_engine,
    check_policy,
    check_requests,
    drawing_options,
)
from rollwise.options import check_whole
from rollwise.rng import check_seed, stream_generator


@dataclass(frozen=True)
class _Live:
    """A request that the engine works on."""

    name: str
    group: CandidateGroup
    index: int

    @property
    def tokens(self) -> list[int]:
        """Those taken so far."""
        return self.group.tokens[self.index]


class VLLMDecoder:
    """Adaptive best-of-N by a policy, on a vLLM engine that is otherwise left as it is.

    Args:
        engine: A `vllm.LLMEngine` (V1), or anything with its `add_request`, `step`, `abort_request` and
            `has_unfinished_requests`. Give it `enable_prefix_caching=True`. While `decode` runs it must have no other
            user.
        signal: `HeadSlice`, `TopLogprobs`, or None for policies that need none.
        unnamed_ids: Every row of the vocabulary that no token is named by, the head's among them; none is ever drawn.
        stop_token_ids: End a candidate; the end of text, the chat's end.
        max_new_tokens: Most tokens of a candidate.
        temperature: Of the softmax.
        top_p: Nucleus sampling: draw from the smallest set of tokens with this total probability.
        top_k: Draw from this many of the most likely tokens; 0 for all.
        answer: A candidate's tokens -> its final answer, for policies that vote; by default what its text votes for.
        text: A candidate's tokens -> its text, for the results.
        vllm: Module with `SamplingParams` and `RequestOutputKind`; by default vllm's own.

    Attributes:
        late_tokens: Tokens that came for candidates that were abandoned already: computed, paid for, not looked at.

    Raises:
        ConfigError: options that contradict each other, or the engine's, or are beyond what vLLM takes.
        MissingExtraError: vLLM is not installed.
    """

    def __init__(
        self,
        engine: Any,
        *,
        signal: Signal | None,
        unnamed_ids: Sequence[int] = (),
        stop_token_ids: Sequence[int],
        max_new_tokens: int,
        temperature: float = 1.0,
        top_p: float = 1.0,
        top_k: int = 0,
        answer: Callable[[list[int]], str | None] | None = None,
        text: Callable[[list[int]], str] | None = None,
        vllm: Any = None,
    ) -> None:
        self.engine, self.signal, self.text = engine, signal, text
        self.answer = answer
        if answer is None and text is not None:
            self.answer = lambda tokens: answer_key(text(tokens))
        self.feed = Feed(signal, frozenset(int(i) for i in unnamed_ids))
        self.vllm = import_vllm() if vllm is None else vllm
        self.options = {
            **drawing_options(
                signal, self.feed.unnamed, max_new_tokens, temperature=temperature, top_p=top_p, top_k=top_k
            ),
            "stop_token_ids": list(stop_token_ids),
            "detokenize": False,
            "output_kind": self.vllm.RequestOutputKind.CUMULATIVE,
        }
        self.limit = max_new_tokens
        self.late_tokens = 0
        self._live: dict[str, _Live] = {}
        self._abandoned: dict[str, int] = {}  # name -> tokens that are accounted for
        self._count = 0
        check_engine(engine, signal, self.feed.unnamed, stop_token_ids)

    def decode(
        self, requests: Sequence[VLLMRequest], k: int | Sequence[int], policy: Policy, seed: int, *, at_once: int = 64
    ) -> Iterator[Result]:
        """Yield each prompt's result as soon as it is done, in the order in which they are.

        A candidate depends on the seed, its prompt's id and its index, not on the policy nor on what else is in the
        batch, up to rounding. If the caller stops reading, or is interrupted, open requests are aborted.

        Args:
            requests: The prompts.
            k: Candidates of each, or (N,) of each its own.
            policy: Spends compute by the signal.
            seed: Seed of all random numbers.
            at_once: Prompts given to the engine at a time; it queues what does not fit.

        Raises:
            ConfigError: a policy that lacks what it needs, a prompt that does not fit, ids that repeat, or an engine
                that draws a masked row, gives no log-probabilities, or ends a candidate by itself.
        """
        check_seed(seed)
        check_whole("at_once", at_once, least=1)
        counts = [k] * len(requests) if isinstance(k, int) else list(k)
        check_policy(policy, signal=self.signal, answers=self.answer is not None)
        check_requests(requests, counts, self.engine, self.limit)
        waiting = list(zip(requests, counts, strict=True))[::-1]
        prompts = {request.id: request for request in requests}
        running: dict[str, CandidateGroup] = {}
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    request, count = waiting.pop()
                    group = running[request.id] = self.feed.group(request, count, policy, self.limit)
                    self._begin(request, group, group.launch(group.first), seed)
                if not self.engine.has_unfinished_requests():
                    raise ConfigError(f"the engine has nothing left, but {len(running)} prompts are not done")
                for group, begun in self._take(self.engine.step()):
                    self._begin(prompts[group.id], group, begun, seed)
                for id_ in [id_ for id_, group in running.items() if group.done]:
                    yield self._result(running.pop(id_))
        finally:
            if self._live:
                self.engine.abort_request(list(self._live))
            self._live.clear()
            self._abandoned.clear()

    def _take(self, outputs: Sequence[Any]) -> list[tuple[CandidateGroup, list[int]]]:
        """Feed one step's outputs to their groups, token by token; abort what they abandon; what they begin.

        With speculative decoding or a delayed scheduler a step may bring several tokens. They are looked at as though
        they had come one by one, so that the policy decides the same.
        """
        news: list[tuple[_Live, Any, int]] = []
        for output in outputs:
            live = self._live.get(output.request_id)
            if live is None:
                self._count_late(output)
            else:
                news.append((live, output, len(live.tokens)))
        aborted: list[str] = []
        begun: list[tuple[CandidateGroup, list[int]]] = []
        for token in range(max((len(output.outputs[0].token_ids) - start for _, output, start in news), default=0)):
            touched: dict[str, CandidateGroup] = {}
            for live, output, start in news:
                if live.name in self._live and start + token < len(output.outputs[0].token_ids):
                    self._observe(live, output, at=start + token)
                    touched[live.group.id] = live.group
            for group in touched.values():
                gone, new = group.decide()
                aborted += self._abandon(group, gone)
                if new:
                    begun.append((group, new))
        for live, output, _ in news:
            if live.name in self._abandoned:
                self._count_late(output)
        if aborted:
            self.engine.abort_request(aborted)
        return begun

    def _observe(self, live: _Live, output: Any, *, at: int) -> None:
        """Take a request's token at position `at`."""
        group, j, completion = live.group, live.index, output.outputs[0]
        positions = completion.logprobs or []
        position = positions[at] if at < len(positions) else None
        self.feed.observe(group, j, int(completion.token_ids[at]), position)
        if output.finished and at == len(completion.token_ids) - 1:
            self.feed.end(
                group, j, completion.finish_reason, positions, lambda: self.answer and self.answer(live.tokens)
            )
            del self._live[live.name]

    def _count_late(self, output: Any) -> None:
        """Tokens of a candidate that was abandoned already."""
        known = self._abandoned.get(output.request_id)
        if known is not None:
            count = len(output.outputs[0].token_ids)
            self.late_tokens += max(0, count - known)
            self._abandoned[output.request_id] = max(known, count)

    def _abandon(self, group: CandidateGroup, gone: Sequence[int]) -> list[str]:
        some = [live for live in self._live.values() if live.group is group and live.index in gone]
        for live in some:
            del self._live[live.name]
            self._abandoned[live.name] = len(live.tokens)
        return [live.name for live in some]

    def _begin(self, request: VLLMRequest, group: CandidateGroup, begun: Sequence[int], seed: int) -> None:
        for j in begun:
            if group.state[j] != RUNNING:  # begun and abandoned within one step's tokens
                continue
            self._count += 1
            name = f"rollwise-{self._count}"
            self._live[name] = _Live(name, group, j)
            prompt = {"prompt_token_ids": list(request.prompt_ids)}
            params = self.vllm.SamplingParams(**self.options, seed=stream_seed(seed, request.id, j))
            self.engine.add_request(name, prompt, params)

    def _result(self, group: CandidateGroup) -> Result:
        result = group.result()
        if self.text is not None:
            for candidate in result.candidates:
                candidate.text = self.text(candidate.token_ids)
        return result


def stream_seed(seed: int, id_: str, index: int) -> int:
    """The seed of a prompt's candidate, below 2^31; the same whatever else is decoded.

    >>> stream_seed(0, "a", 1) == stream_seed(0, "a", 1) != stream_seed(0, "a", 2)
    True
    """
    return int(stream_generator(seed, f"vllm/{id_}/{index}").integers(2**31))


def import_vllm() -> Any:
    """The module with `SamplingParams`; `MissingExtraError` where vLLM is not installed."""
    try:
        return importlib.import_module("vllm.sampling_params")
    except ModuleNotFoundError as error:
        missing = (error.name or "vllm").removesuffix(".sampling_params")
        raise MissingExtraError(
            f"the vLLM decoder needs {missing}; install vLLM as its manual says for your hardware ({TESTED} was tried)"
        ) from error
