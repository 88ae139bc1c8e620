"""A stand-in for vLLM's V1 engine, with its call surface and its order of things, and a real model inside.

As vLLM 0.32 does, by its sources and documentation: raw log-probabilities are taken from the logits before bias and
temperature; a position's dictionary holds the drawn token and exactly the ids asked for (or the k most likely); bias
is added before temperature, top-k and top-p; the stop token is part of the output; outputs are cumulative, a request
output for each that got a token in this step; a request is drawn with its own seed; what does not fit into
`max_num_seqs` waits in order of arrival.

An abort takes effect after the step that is under way: one more output of an aborted request comes, then none.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import SimpleNamespace
from typing import Any

import torch


class RequestOutputKind(Enum):
    CUMULATIVE = 0
    DELTA = 1
    FINAL_ONLY = 2


@dataclass(kw_only=True)
class SamplingParams:
    """Those of vLLM's that the adapter may use, with its checks."""

    n: int = 1
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    max_tokens: int = 16
    seed: int | None = None
    stop_token_ids: list[int] | None = None
    stop: list[str] | None = None
    include_stop_str_in_output: bool = False
    logprobs: int | None = None
    logprob_token_ids: list[int] | None = None
    logit_bias: dict[int, float] | None = None
    detokenize: bool = True
    output_kind: RequestOutputKind = RequestOutputKind.CUMULATIVE

    def __post_init__(self) -> None:
        if len(self.logprob_token_ids or []) > 128:
            raise ValueError("too many logprob_token_ids")
        if len(self.logit_bias or {}) > 1024:
            raise ValueError("too many logit bias tokens")
        if any(not -100 <= bias <= 100 for bias in (self.logit_bias or {}).values()):
            raise ValueError("logit_bias out of range")
        if self.logprobs is not None and (self.logprobs > 20 or self.logprob_token_ids):
            raise ValueError("logprobs")


vllm = SimpleNamespace(SamplingParams=SamplingParams, RequestOutputKind=RequestOutputKind)


@dataclass
class Request:
    name: str
    prompt: list[int]
    params: SamplingParams
    generator: torch.Generator
    out: list[int] = field(default_factory=list)
    logprobs: list[dict[int, Any]] = field(default_factory=list)
    aborted: bool = False


class FakeEngine:
    """`LLMEngine`.

    Args:
        model: A causal language model of transformers.
        max_num_seqs: Requests that run at a time.
        tokens_per_step: More than one as speculative decoding yields.
        heed_bias: False for a server that ignores `logit_bias`.
        heed_ids: False for one too old for `logprob_token_ids`.
        logprobs_mode: As vLLM's option.
    """

    kind = RequestOutputKind.CUMULATIVE

    def __init__(
        self,
        model: Any,
        *,
        max_num_seqs: int = 64,
        tokens_per_step: int = 1,
        heed_bias: bool = True,
        heed_ids: bool = True,
        logprobs_mode: str = "raw_logprobs",
        max_model_len: int = 128,
    ) -> None:
        self.model, self.max_num_seqs, self.tokens_per_step = model, max_num_seqs, tokens_per_step
        self.heed_bias, self.heed_ids = heed_bias, heed_ids
        self.model_config = SimpleNamespace(logprobs_mode=logprobs_mode, max_model_len=max_model_len)
        self.requests: dict[str, Request] = {}
        self.seen_params: list[SamplingParams] = []
        self.steps = self.forwards = self.aborts = 0

    def add_request(self, request_id: str, prompt: dict[str, list[int]], params: SamplingParams) -> None:
        assert request_id not in self.requests
        assert params.output_kind is self.kind
        assert params.n == 1
        assert params.seed is not None
        generator = torch.Generator().manual_seed(params.seed)
        self.requests[request_id] = Request(request_id, prompt["prompt_token_ids"], params, generator)
        self.seen_params.append(params)

    def abort_request(self, request_ids: Sequence[str]) -> None:
        for name in request_ids:
            if name in self.requests:
                self.aborts += 1
                self.requests[name].aborted = True

    def has_unfinished_requests(self) -> bool:
        return any(not request.aborted for request in self.requests.values())

    def step(self) -> list[Any]:
        self.steps += 1
        outputs = []
        for request in list(self.requests.values())[: self.max_num_seqs]:
            reason = None
            for _ in range(self.tokens_per_step):
                reason = self._advance(request)
                if reason:
                    break
            outputs.append(self._output(request, reason))
            if reason or request.aborted:
                del self.requests[request.name]
        return outputs

    @torch.no_grad()
    def _advance(self, request: Request) -> str | None:
        self.forwards += 1
        params = request.params
        logits = self.model(torch.tensor([request.prompt + request.out])).logits[0, -1].float()
        raw = logits.log_softmax(-1)
        logits = logits.clone()
        for i, bias in (params.logit_bias or {}).items() if self.heed_bias else ():
            logits[i] += bias
        logits /= params.temperature
        if params.top_k:
            logits[logits < logits.topk(params.top_k).values[-1]] = -torch.inf
        if params.top_p < 1:
            order = logits.argsort(descending=True)
            mass = logits[order].softmax(-1).cumsum(-1) - logits[order].softmax(-1)
            logits[order[mass >= params.top_p]] = -torch.inf
        token = int(torch.multinomial(logits.softmax(-1), 1, generator=request.generator))
        ids = {token}
        if self.heed_ids:
            ids |= set(params.logprob_token_ids or [])
        if params.logprobs is not None:
            ids |= set(raw.topk(min(params.logprobs, len(raw))).indices.tolist())
        request.logprobs.append({i: SimpleNamespace(logprob=float(raw[i])) for i in ids})
        request.out.append(token)
        if token in (params.stop_token_ids or []):
            return "stop"
        return "length" if len(request.out) >= params.max_tokens else None

    def _output(self, request: Request, reason: str | None) -> Any:
        asked = request.params.logprobs is not None or request.params.logprob_token_ids
        completion = SimpleNamespace(
            token_ids=list(request.out), logprobs=list(request.logprobs) if asked else None, finish_reason=reason
        )
        return SimpleNamespace(request_id=request.name, outputs=[completion], finished=reason is not None)


class FakeAsyncLLM(FakeEngine):
    """`AsyncLLM`: runs while anybody listens, gives what is new since the last output, ends what nobody listens to.

    Args:
        model: As above.
        tokenizer: For texts and stop strings.
        **options: As above.
    """

    kind = RequestOutputKind.DELTA

    def __init__(self, model: Any, tokenizer: Any, **options: Any) -> None:
        super().__init__(model, **options)
        self.tokenizer = tokenizer

    async def generate(
        self, prompt: dict[str, list[int]], params: SamplingParams, request_id: str
    ) -> AsyncGenerator[Any, None]:
        self.add_request(request_id, prompt, params)
        request, said = self.requests[request_id], ""
        try:
            reason = None
            while reason is None:
                await asyncio.sleep(0)
                reason = self._advance(request)
                now = self.tokenizer.decode(request.out, skip_special_tokens=True)
                if any(stop in now for stop in params.stop or []):
                    reason = "stop"
                output = self._output(request, reason)
                output.outputs[0].token_ids = request.out[-1:]
                output.outputs[0].logprobs = output.outputs[0].logprobs and request.logprobs[-1:]
                output.outputs[0].text, said = now[len(said) :], now
                yield output
        finally:
            if reason is None:
                self.aborts += 1
            del self.requests[request_id]
