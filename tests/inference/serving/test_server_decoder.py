"""`rollwise bestof --base_url`: on a streaming server with a real model inside, against the same candidates in full."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fake_openai import FakeOpenAI, Reply
from fake_vllm_server import FakeVLLMServer
from processes import Command
from tiny import random_head, tiny

from rollwise.errors import ConfigError, StateFileError
from rollwise.inference import BestOfN, Policy, Sequential, SuccessHead
from rollwise.inference.bestof.config import BestOfConfig
from rollwise.inference.bestof.job import read_job
from rollwise.inference.bestof.run import run_bestof
from rollwise.inference.bestof.server import server_decoder
from rollwise.inference.head.verdict import Verdict
from rollwise.inference.head.viability_file import note_viability
from rollwise.inference.policies.candidate_group import ABANDONED, Result
from rollwise.inference.policies.until import Until
from rollwise.inference.serving import export_run
from rollwise.inference.serving.export import export_head
from rollwise.inference.serving.export_config import HEAD_FILE, ExportConfig
from rollwise.models import load_policy

pytest.importorskip("openai")

LIMIT = 12
PROMPTS = ["1+2=", "3*4+5=", "7-7=", "2*2=", "9-1=", "8+8="]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random policy with a random head and verdict in its rows, and `data.jsonl` beside it."""
    folder = tmp_path_factory.mktemp("served")
    model, tokenizer = tiny("llama")
    plain = random_head(model, tokenizer)
    verdict = Verdict(torch.randn(3, 2, 32, generator=torch.Generator().manual_seed(5)), torch.tensor([0.2, -0.2]))
    head = SuccessHead(plain.weight, plain.spec, plain.model, verdict=verdict)
    texts = [[*tokenizer(text)["input_ids"], 5, 6, 7] for text in PROMPTS]
    export_head(model, tokenizer, head, folder / "exported", sequences=texts, resize=True)
    (folder / "data.jsonl").write_text("".join(json.dumps({"prompt": text}) + "\n" for text in PROMPTS))
    return folder


@pytest.fixture(scope="module")
def policy_of(exported: Path) -> tuple[Any, Any]:
    return load_policy(str(exported / "exported"))


def config(exported: Path, server: FakeVLLMServer, **options: Any) -> BestOfConfig:
    given = {
        "data": str(exported / "data.jsonl"), "model": "m", "base_url": server.base_url, "num_generations": 4,
        "retries": 2, "head": str(exported / "exported"), "transfer": True, "max_completion_length": LIMIT, "slots": 6,
    }  # fmt: skip
    return BestOfConfig(**{**given, **options})


def test_a_head_that_failed_the_viability_gate_is_refused_on_a_server_too(
    tmp_path: Path, exported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An export carries the verdict that `head evaluate` left beside the head's file."""
    model, tokenizer = tiny("llama")
    head = random_head(model, tokenizer)
    file = head.save(tmp_path / "head.safetensors")
    told = {"k": 4, "prompts": 9, "value": 0.5, "random": 0.6, "gain": -0.1, "low": -0.2, "high": 0.1}
    note_viability(file, head.digest, {**told, "verdict": "failed"})
    monkeypatch.setattr(export_run, "_model", lambda config, bar: (model, tokenizer, []))
    out = tmp_path / "served"
    export_run.run_export(
        ExportConfig(head=str(file), out=str(out), resize=True), lambda what: lambda done, total: None
    )
    given: dict[str, Any] = {"data": str(exported / "data.jsonl"), "model": "m", "head": str(out), "policy": "until"}
    given["base_url"] = "http://127.0.0.1:9/v1"
    with pytest.raises(ConfigError, match=r"Viability gate failed: value@4 0.500 .* add --unviable"):
        read_job(BestOfConfig(**given))
    assert read_job(BestOfConfig(**given, unviable=True)).head is not None


def decode(exported: Path, server: FakeVLLMServer, policy: Policy, **options: Any) -> tuple[list[Result], Any]:
    made = config(exported, server, policy="until", **options)
    decoder = server_decoder(made, LIMIT, made.stop or ())
    ids = [str(i) for i in range(len(PROMPTS))]
    results = {result.id: result for result in decoder.decode(ids, PROMPTS, policy, k=[4] * len(ids))}
    return [results[id_] for id_ in ids], decoder


InFull = tuple[list[Result], Any, FakeVLLMServer]


@pytest.fixture(scope="module")
def in_full(exported: Path, policy_of: tuple[Any, Any]) -> InFull:
    """Four whole candidates of each prompt, with the decoder and the server that they came from."""
    with FakeVLLMServer(*policy_of) as server:
        return *decode(exported, server, BestOfN()), server


def test_values_and_verdicts_are_the_offline_ones(exported: Path, policy_of: tuple[Any, Any], in_full: InFull) -> None:
    model, tokenizer = policy_of
    head = SuccessHead.load(exported / "exported" / HEAD_FILE, without_facts=True)
    results, decoder, server = in_full
    assert head.verdict is not None
    for text, result in zip(PROMPTS, results, strict=True):
        prompt = tokenizer(text)["input_ids"]
        for candidate in result.candidates:
            ids = torch.tensor([[*prompt, *candidate.token_ids]])
            with torch.no_grad():
                hidden = model.model(input_ids=ids).last_hidden_state[0, len(prompt) - 1 : -1]
            assert candidate.values == pytest.approx(head.value(hidden).numpy(), abs=1e-4)
            assert candidate.value_end == pytest.approx(head.verdict.chances(head.verdict.read(hidden))[1], abs=1e-4)
            assert candidate.text == tokenizer.decode(candidate.token_ids, skip_special_tokens=True)
    assert server.generated == sum(result.row_forwards for result in results) == decoder.stats.tokens_out
    assert decoder.stats.tokens_in == 4 * sum(len(tokenizer(text)["input_ids"]) for text in PROMPTS)
    assert (decoder.stats.requests, decoder.stats.uncounted, server.closed) == (24, 0, 0)


@pytest.mark.parametrize("threshold", [0.4, 0.5, 0.6])
def test_until_is_a_replay_by_hand(
    exported: Path, policy_of: tuple[Any, Any], in_full: InFull, threshold: float
) -> None:
    """One candidate after another until one's verdict reaches the threshold, read off the same four candidates."""
    with FakeVLLMServer(*policy_of) as server:
        found, _ = decode(exported, server, Until(threshold=threshold))
    for before, after in zip(in_full[0], found, strict=True):
        last = 0
        while last < 3:  # one that was cut off is good enough only where none finished
            drawn = before.candidates[: last + 1]
            whole = [candidate for candidate in drawn if candidate.state == "finished"] or drawn
            if max(candidate.value_end for candidate in whole) >= threshold:
                break
            last += 1
        assert [c.token_ids for c in after.complete] == [c.token_ids for c in before.candidates[: last + 1]]
        assert after.row_forwards == sum(len(c.token_ids) for c in before.candidates[: last + 1])


def test_sequential_saves_tokens_of_the_same_candidates(
    exported: Path, policy_of: tuple[Any, Any], in_full: InFull
) -> None:
    whole, _, full = in_full
    with FakeVLLMServer(*policy_of) as server:
        found, decoder = decode(exported, server, Sequential(beta=0.2))
    for one, other in zip(whole, found, strict=True):
        assert [c.token_ids for c in other.complete] == [c.token_ids for c in one.candidates[: len(other.complete)]]
    spent = sum(result.row_forwards for result in found)
    assert server.generated == decoder.stats.tokens_out == spent < full.generated


class _GiveUp:
    """All four begin; after the first one's third token the others are given up."""

    name, needs_signal = "give-up", True

    def first(self, k: int) -> int:
        return k

    def due(self, step: int) -> bool:
        return True

    def decide(self, candidates: Any) -> Any:
        from rollwise.inference.policies.candidates import CARRY_ON, Decision

        if candidates.tokens[0] < 3 or not candidates.running[1:].any():
            return CARRY_ON
        return Decision(abandon=tuple(1 + np.flatnonzero(candidates.running[1:])), stop=True)


def test_a_closed_stream_ends_generation_and_late_tokens_are_charged(
    exported: Path, policy_of: tuple[Any, Any]
) -> None:
    with FakeVLLMServer(*policy_of, pause=0.1) as server:
        results, decoder = decode(exported, server, _GiveUp(), slots=64)
        deadline = time.monotonic() + 10
        while server.closed + server.whole < len(server.requests) and time.monotonic() < deadline:
            time.sleep(0.01)
        settled = server.generated
        time.sleep(0.2)
        assert server.generated == settled  # nothing goes on behind the client's back
    gone = [c for result in results for c in result.candidates if c.state == ABANDONED]
    assert len(gone) == server.closed == decoder.stats.uncounted > 6
    late = sum(result.late_tokens for result in results)
    assert 0 < late <= len(gone)  # a chunk that was under way
    charged = sum(result.row_forwards for result in results)
    assert charged == decoder.stats.tokens_out
    assert charged <= settled <= charged + len(gone)  # the server was at most a token further
    assert settled < 24 * LIMIT / 2


def test_a_stop_string_ends_a_candidate(exported: Path, policy_of: tuple[Any, Any], in_full: InFull) -> None:
    texts = [c.text for result in in_full[0] for c in result.candidates]
    stop = max((char for text in texts for char in text[:-1] if char.isdigit()), key="".join(texts).count)
    with FakeVLLMServer(*policy_of) as server:
        found, _ = decode(exported, server, BestOfN(), stop=[stop])
    assert server.requests[-1]["stop"] == [stop]
    assert server.requests[-1]["include_stop_str_in_output"] is True
    ended = [c.text for result in found for c in result.candidates if stop in c.text]
    assert len(ended) > 2
    assert all(text.index(stop) == len(text) - 1 for text in ended)


def test_failures_are_tried_again_and_a_broken_stream_is_drawn_anew(
    exported: Path, policy_of: tuple[Any, Any], in_full: InFull
) -> None:
    with FakeVLLMServer(*policy_of, befall=lambda i: {2: 429, 5: 500, 9: "drop"}.get(i, "")) as server:
        found, decoder = decode(exported, server, BestOfN())
    assert [[c.token_ids for c in r.candidates] for r in found] == [
        [c.token_ids for c in r.candidates] for r in in_full[0]
    ]
    assert not decoder.failures


def test_a_server_that_is_down_or_lacks_the_rows_is_one_line(exported: Path, policy_of: tuple[Any, Any]) -> None:
    with (
        FakeVLLMServer(*policy_of, befall=lambda i: 500) as server,
        pytest.raises(ConfigError, match="nothing but failures from http"),
    ):
        decode(exported, server, BestOfN(), retries=0)
    with (
        FakeVLLMServer(*policy_of, knows_rows=False) as server,
        pytest.raises(ConfigError, match="gave no log-probability of row"),
    ):
        decode(exported, server, BestOfN())


def test_policies_without_a_head_run_on_any_server(exported: Path, policy_of: tuple[Any, Any], tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text("def has_seven(text):\n    return '7' in text\n")
    more = {"head": None, "transfer": False, "out": str(tmp_path / "out")}
    with FakeVLLMServer(*policy_of) as server:
        answers = run_bestof(
            config(
                exported, server, policy="check", check=f"{tmp_path}/checks.py:has_seven", route="completions", **more
            )
        )
        assert "logprob_token_ids" not in server.requests[0]
    assert len(answers.lines) == len(PROMPTS)
    for line in answers.lines:
        assert ("7" in line["answer"]) == (line["complete"] < 4) or line["complete"] == 4


def test_a_gateway_that_ends_a_stream_twice_takes_no_text_away(exported: Path, tmp_path: Path) -> None:
    more = {"head": None, "transfer": False, "policy": "none", "select": "majority", "out": str(tmp_path / "out")}
    with FakeOpenAI(lambda prompt, i: f"{prompt} is it", ends_twice=True) as fake:
        answers = run_bestof(config(exported, fake, **more))
    assert [line["answer"] for line in answers.lines] == [f"{line['prompt']} is it" for line in answers.lines]


def test_a_prompt_that_is_filtered_fails_alone(exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Azure and others end a completion by "content_filter"; the other prompts keep their answers."""
    monkeypatch.setattr(Reply, "_reason", lambda reply, text: "content_filter" if "9-1=" in text else "stop")
    more = {"head": None, "transfer": False, "policy": "none", "select": "majority", "out": str(tmp_path / "out")}
    with FakeOpenAI(lambda prompt, i: f"{prompt} is it") as fake:
        answers = run_bestof(config(exported, fake, **more))
    assert len(answers.lines) == len(PROMPTS) - 1
    assert list(answers.failures.values()) == ["a candidate was ended by 'content_filter', not by itself"]


def test_a_server_that_went_down_leaves_the_rest(exported: Path, tmp_path: Path) -> None:
    """As `consistency` does: the answers that are there are shown. It ended in an error."""
    given = {"head": None, "transfer": False, "policy": "none", "select": "majority", "retries": 0, "slots": 1}
    more = {**given, "num_generations": 1, "out": str(tmp_path / "out")}
    with FakeOpenAI(lambda prompt, i: "it", befall=lambda prompt, before: 503 if before else "fine") as fake:
        assert len(run_bestof(config(exported, fake, **more)).lines) == 1
        asked = len(fake.requests)
        answers = run_bestof(config(exported, fake, **more))
        assert len(answers.lines) == 1
        assert len(answers.failures) == len(PROMPTS) - 1
        assert len(fake.requests) == asked + 3
        left = [why for why in answers.failures.values() if why.startswith("not asked: nothing but failures from http")]
        assert len(left) == 2
        with pytest.raises(ConfigError, match="nothing but failures from http"):
            run_bestof(config(exported, fake, **{**more, "out": str(tmp_path / "other")}))


def test_the_command_answers_and_says_what_the_server_counted(
    exported: Path, policy_of: tuple[Any, Any], tmp_path: Path, command: Callable[..., tuple[int, str, str]]
) -> None:
    with FakeVLLMServer(*policy_of) as server:
        status, said, _ = command(
            "bestof", exported / "data.jsonl", "--base_url", server.base_url, "--model", "m", "--head",
            exported / "exported", "--transfer", "true", "--policy", "sequential", "--num_generations", "4",
            "--max_completion_length", LIMIT, "--out", tmp_path / "out",
        )  # fmt: skip
    lines = [json.loads(line) for line in (tmp_path / "out/answers.jsonl").read_text().splitlines()]
    assert status == 0
    assert len(lines) == len(PROMPTS)
    assert f"{len(server.requests)} requests" in said
    assert f"{sum(line['row_forwards'] for line in lines)} out" in said
    assert sum(line["row_forwards"] for line in lines) == server.generated


@pytest.mark.slow
def test_killed_it_goes_on_with_the_prompts_that_are_missing(
    exported: Path, policy_of: tuple[Any, Any], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with FakeVLLMServer(*policy_of, pause=0.05) as server:
        words = [
            "bestof", str(exported / "data.jsonl"), "--base_url", server.base_url, "--model", "m", "--head",
            str(exported / "exported"), "--transfer", "true", "--num_generations", "2",
            "--max_completion_length", str(LIMIT), "--slots", "2", "--out", str(out),
        ]  # fmt: skip
        process, answers = Command(*words), out / "answers.jsonl"
        process.wait_until(lambda: answers.exists() and answers.read_bytes().count(b"\n") >= 2)
        process.send(signal.SIGKILL)
        process.wait()
        before = [json.loads(line) for line in answers.read_text().splitlines(keepends=True) if line.endswith("\n")]
        asked = len(server.requests)
        found = run_bestof(config(exported, server, num_generations=2, slots=2, out=str(out)))
    assert {line["id"]: line for line in found.lines} | {line["id"]: line for line in before} == {
        line["id"]: line for line in found.lines
    }
    assert len(found.lines) == len(PROMPTS)
    assert len(server.requests) - asked == 2 * (len(PROMPTS) - len(before))


def test_options_that_do_not_fit_are_refused(exported: Path, tmp_path: Path) -> None:
    class Nowhere:
        base_url = "http://127.0.0.1:9/v1"

    for wrong, match in (
        ({"model": "embedded"}, "add --model NAME"),
        ({"mean_k": 2}, "leave it out"),
        ({"route": "chat"}, "need --route completions"),
        ({"head": None, "select": "majority", "keep_texts": "all"}, "keep_texts 'all'"),
        ({"base_url": None, "route": "chat"}, "add --base_url"),
        ({"base_url": None, "timeout": 9.0}, "timeout 9.0 is a server's: add --base_url"),
        ({"base_url": None, "retries": 0}, "retries 0 is a server's"),
    ):
        with pytest.raises(ConfigError, match=match):
            config(exported, Nowhere(), **wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="no folder of `rollwise head export`"):
        run_bestof(config(exported, Nowhere(), head=str(tmp_path), out=str(tmp_path / "o")))  # type: ignore[arg-type]
    (tmp_path / "success_head").mkdir()
    (tmp_path / HEAD_FILE).write_bytes((exported / "exported" / HEAD_FILE).read_bytes())
    for text, said in (('{"spec": {', "can't be read"), ("[]", "does not say where"), ('{"start": 3}', "does not say")):
        (tmp_path / "serving.json").write_text(text)
        with pytest.raises(StateFileError, match=f"{said}.*export the head anew"):
            run_bestof(config(exported, Nowhere(), head=str(tmp_path), out=str(tmp_path / "o")))  # type: ignore[arg-type]
