"""Candidates from an OpenAI-compatible server: a streamed request each, its log-probabilities read chunk by chunk."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from rollwise.errors import ConfigError
from rollwise.inference.endpoint.client import Endpoint
from rollwise.inference.endpoint.replies import BrokenReplyError, choices_of, counts_of, taken_away, text_of
from rollwise.inference.serving.streamed import Chunk
from rollwise.inference.serving.vllm_signals import MASK, Signal, TopLogprobs, VLLMRequest

_TOKEN = "token_id:"
"""How vLLM names a token with `return_tokens_as_token_ids`."""


def request_options(
    signal: Signal | None, unnamed_ids: Sequence[int], stop: Sequence[str], top_k: int
) -> dict[str, Any]:
    """What a request carries besides the usual: vLLM's way to ask for the head's rows, and to mask them.

    >>> request_options(None, (), ("</answer>",), 20)
    {'top_k': 20}
    """
    options: dict[str, Any] = {"top_k": top_k} if top_k else {}
    if signal is None:
        return options
    if stop:
        options["include_stop_str_in_output"] = True  # as the decoder does, and the tag is a part of the answer
    if unnamed_ids:
        options["logit_bias"] = {str(i): MASK for i in sorted(unnamed_ids)}
    # `logprobs` must be there; with `logprob_token_ids` its number counts for nothing.
    return {**options, "logprobs": 0, **signal.options(), "return_tokens_as_token_ids": True, "return_token_ids": True}


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

    def words(self) -> str:
        """A line on all of it."""
        closed = f" ({self.uncounted:,} closed before the server counted: as they came)" if self.uncounted else ""
        return (
            f"server: {self.wall_s:.1f} s, {self.requests:,} requests, {self.tokens_in:,} tokens in, "
            f"{self.tokens_out:,} out{closed}\n"
        )


@dataclass
class ServerSource:
    """Streams of an endpoint, for `StreamedDecoder`.

    Args:
        endpoint: Where, with the options of `request_options` as its `extra`.
        prompts: Prompt id -> text, chat messages or token ids.
        signal: What is read.
        spent: Counted into.
    """

    endpoint: Endpoint
    prompts: Mapping[str, Any]
    signal: Signal | None
    spent: Spent

    async def stream(self, request: VLLMRequest, index: int, seed: int) -> AsyncGenerator[Chunk, None]:
        """The chunks of one request; closed, the server stops generating."""
        usage: dict[str, int] = {}
        came, said, last, ended = 0, "", None, False
        limit, url = self.endpoint.config.max_completion_length, self.endpoint.config.base_url
        self.spent.requests += 1
        raw = await self.endpoint.open(self.prompts[request.id], 1, seed)
        chunks = self.endpoint.chunks(raw)
        try:
            if "text/event-stream" not in raw.headers.get("content-type", ""):
                list(choices_of(await self.endpoint.whole(raw), url, least=0))  # some gateways send errors so
                raise ConfigError(f"{url} does not stream its replies; bestof needs streams")
            async for given in chunks:
                usage |= counts_of(given)
                chunk = self._chunk(given, room=limit - came)
                if chunk is None or ended:  # some gateways end a stream twice
                    continue
                came, said, ended = came + len(chunk.tokens), said + chunk.text, chunk.finish is not None
                if self.signal is None and ended:
                    # Held back until the server has counted: a chunk of text may be many tokens.
                    away = taken_away(said, given["choices"][0], self.endpoint.config.stops)
                    last = replace(chunk, text=chunk.text + away)
                else:
                    yield chunk
        except BrokenReplyError:
            if not ended:
                raise  # what is whole stays good
        finally:
            await chunks.aclose()
            await raw.http_response.aclose()
            self.spent.uncounted += "completion_tokens" not in usage
            self.spent.tokens_in += usage.get("prompt_tokens", len(request.prompt_ids))
            self.spent.tokens_out += usage.get("completion_tokens", came)
        if last is not None:
            more = min(usage.get("completion_tokens", came), limit) - came
            yield replace(last, tokens=[*last.tokens, *[0] * more])

    def _chunk(self, given: Any, *, room: int) -> Chunk | None:
        """What a chunk says of the candidate; None if nothing. Text without token ids is a token, if there is room."""
        config = self.endpoint.config
        chat = config.route == "chat"
        choices = list(choices_of(given, config.base_url, least=0))
        if not choices:
            return None
        choice = choices[0]
        text = text_of(choice, "delta" if chat else "", base_url=config.base_url)
        finish = choice.get("finish_reason") or None
        if self.signal is None:
            return Chunk([0] if text and room > 0 else [], None, text, finish)
        tokens, found = choice.get("token_ids") or [], (choice.get("logprobs") or {}).get("top_logprobs")
        if tokens and (not isinstance(found, list) or len(found) != len(tokens)):
            raise ConfigError(
                f"{config.base_url} gave no log-probabilities with its tokens; a head, and policy deepconf, need "
                "vLLM's `logprob_token_ids` and `return_token_ids` (0.32 was tried)"
            )
        if text and not tokens:
            raise ConfigError(f"{config.base_url} does not say its tokens; a head needs vLLM's `return_token_ids`")
        named = isinstance(self.signal, TopLogprobs)
        return Chunk(tokens, [_position(one, any_name=named) for one in found or []], text, finish)


def _position(found: Mapping[str, float], *, any_name: bool) -> dict[Any, Any]:
    """Token id -> an object with `logprob`, as vLLM's own. DeepConf's needs no ids."""
    return {
        name if any_name else int(name.removeprefix(_TOKEN)): SimpleNamespace(logprob=value)
        for name, value in found.items()
        if any_name or name.startswith(_TOKEN)
    }
