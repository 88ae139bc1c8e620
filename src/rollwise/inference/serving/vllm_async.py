"""Best-of-N by a policy over vLLM's `AsyncLLM`, which may have other users beside.

The engine runs by itself and nobody owns it, as in a server: each candidate is a `generate` of its own, and closing it
aborts the request. Stop strings may end a candidate.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rollwise.inference.policies.selection import answer_key
from rollwise.inference.serving.streamed import Chunk, StreamedDecoder
from rollwise.inference.serving.vllm_engine import import_vllm
from rollwise.inference.serving.vllm_signals import Signal, VLLMRequest, check_engine, drawing_options


@dataclass(frozen=True)
class AsyncLLMSource:
    """Streams of an engine.

    Args:
        engine: A `vllm.v1.engine.async_llm.AsyncLLM`, or anything with its `generate`.
        options: Of `SamplingParams`, all but the seed.
        vllm: Module with `SamplingParams`.
    """

    engine: Any
    options: dict[str, Any]
    vllm: Any

    async def stream(self, request: VLLMRequest, index: int, seed: int) -> AsyncGenerator[Chunk, None]:
        """The chunks of one request; closed, the engine aborts it."""
        outputs = self.engine.generate(
            {"prompt_token_ids": list(request.prompt_ids)},
            self.vllm.SamplingParams(**self.options, seed=seed),
            f"rollwise-{uuid.uuid4().hex}",
        )
        try:
            async for output in outputs:
                one = output.outputs[0]
                yield Chunk(list(one.token_ids), one.logprobs, one.text, one.finish_reason)
        finally:
            await outputs.aclose()


def async_decoder(
    engine: Any,
    *,
    signal: Signal | None,
    max_new_tokens: int,
    unnamed_ids: Sequence[int] = (),
    stop_token_ids: Sequence[int] = (),
    stop: Sequence[str] = (),
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int = 0,
    slots: int = 64,
    answer: Callable[[str], str | None] = answer_key,
    vllm: Any = None,
) -> StreamedDecoder:
    """A decoder over an engine; `await decoder.decode(request, k, policy, seed)` for many prompts at once.

    Args:
        engine: An `AsyncLLM`, with `enable_prefix_caching=True`.
        signal: `HeadSlice`, `TopLogprobs`, or None for policies that need none.
        max_new_tokens: Most tokens of a candidate.
        unnamed_ids: Every row of the vocabulary that no token is named by; none is ever drawn.
        stop_token_ids: End a candidate, besides the model's end of text.
        stop: Texts that do, and stay in its text.
        temperature: Of the softmax.
        top_p: Nucleus sampling: draw from the smallest set of tokens with this total probability.
        top_k: Draw from this many of the most likely tokens; 0 for all.
        slots: Most candidates in flight, of all prompts together.
        answer: A candidate's text -> its final answer, for policies that vote.
        vllm: Module with `SamplingParams` and `RequestOutputKind`; by default vllm's own.

    Raises:
        ConfigError: options that contradict each other, or the engine's, or are beyond what vLLM takes.
        MissingExtraError: vLLM is not installed.
    """
    unnamed = frozenset(int(i) for i in unnamed_ids)
    vllm = import_vllm() if vllm is None else vllm
    check_engine(engine, signal, unnamed, stop_token_ids)
    options = {
        **drawing_options(signal, unnamed, max_new_tokens, temperature=temperature, top_p=top_p, top_k=top_k),
        "stop_token_ids": list(stop_token_ids) or None,
        "stop": list(stop) or None,
        "include_stop_str_in_output": bool(stop),
        "output_kind": vllm.RequestOutputKind.DELTA,
    }
    source = AsyncLLMSource(engine, options, vllm)
    return StreamedDecoder(
        source, signal=signal, max_new_tokens=max_new_tokens, slots=slots, unnamed_ids=unnamed, answer=answer
    )
