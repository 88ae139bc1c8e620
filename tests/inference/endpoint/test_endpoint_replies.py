"""Endpoints that answer oddly, slowly or not at all: a prompt's failure is its own, and nothing ends in a traceback."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openai")

from rollwise.cli import main
from rollwise.errors import ConfigError
from rollwise.inference.endpoint.answers import Extractor
from rollwise.inference.endpoint.client import Endpoint
from rollwise.inference.endpoint.config import EndpointConfig
from rollwise.inference.endpoint.drawing import Desk, Drawing, Slots
from rollwise.inference.endpoint.replies import BadReplyError, Reply, Sample, Watch, is_of_endpoint
from rollwise.inference.endpoint.run import run_consistency
from rollwise.inference.endpoint.samples import Drawn

Respond = Callable[[str], tuple[int, bytes]]
"""A prompt -> status and body."""

USAGE = {"prompt_tokens": 3, "completion_tokens": 10, "total_tokens": 13}
LONG = (400, b'{"error": {"message": "maximum context length is 4096 tokens"}}')


def completion(message: Any = None, n: int = 2, **more: Any) -> bytes:
    message = {"role": "assistant", "content": "the answer is 4"} if message is None else message
    choices = [{"index": i, "message": message, "finish_reason": "stop"} for i in range(n)]
    return json.dumps({"id": "x", "choices": choices, "usage": USAGE, **more}).encode()


def odd(body: bytes, status: int = 200) -> Respond:
    """Good answers, but for prompts that begin with "bad"."""
    return lambda prompt: (status, body) if prompt.startswith("bad") else (200, completion())


@contextmanager
def serving(respond: Respond) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, data = respond(body["messages"][-1]["content"])
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


def config_of(folder: Path, base_url: str, *prompts: str, **options: Any) -> EndpointConfig:
    data = folder / "data.jsonl"
    data.write_text("".join(json.dumps({"id": prompt, "prompt": prompt}) + "\n" for prompt in prompts))
    given = {
        "rule": "esc",
        "num_generations": 4,
        "window": 2,
        "retries": 0,
        "out": str(folder / "out.jsonl"),
        **options,
    }
    return EndpointConfig(data=str(data), base_url=base_url, model="tiny", **given)


def test_long_prompts_do_not_cancel_good_ones(tmp_path: Path) -> None:
    """Three of the first prompts are refused at once while the good ones take their time."""

    def respond(prompt: str) -> tuple[int, bytes]:
        if prompt.startswith("long"):
            return LONG
        time.sleep(0.3)
        return 200, completion()

    with serving(respond) as base_url:
        config = config_of(tmp_path, base_url, "long 1", "long 2", "long 3", "a", "b", concurrency=4)
        path, lines, failures, *_ = run_consistency(config)
        assert [line["id"] for line in lines] == ["a", "b"]
        assert len(path.read_text().splitlines()) == 2
        assert sorted(failures) == ["long 1", "long 2", "long 3"]
        assert "maximum context length" in failures["long 1"]


def test_a_result_is_shown_again_where_what_is_missing_fails_for_good(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(lambda prompt: LONG if prompt == "long" else (200, completion())) as base_url:
        config_of(tmp_path, base_url, "a", "long", "b")
        command = [
            "consistency",
            str(tmp_path / "data.jsonl"),
            "--base_url",
            base_url,
            "--model",
            "tiny",
            "--num_generations",
            "2",
        ]
        for _ in range(2):
            assert main([*command, "--rule", "full", "--out", str(tmp_path / "o.jsonl")]) == 1
            out, err = capsys.readouterr()
            assert "full, at most 2 samples" in out
            assert str(tmp_path / "o.jsonl") in out
            assert "1 prompt failed, for example 'long': Error code: 400" in err


def test_a_server_that_went_down_leaves_the_rest(tmp_path: Path) -> None:
    """At the second start some are done: their result is shown, and most of the rest is not even asked."""
    asked: list[str] = []
    down = False

    def respond(prompt: str) -> tuple[int, bytes]:
        asked.append(prompt)
        return (503, b"{}") if down else (200, completion())

    prompts = [f"p{i}" for i in range(30)]
    with serving(respond) as base_url:
        run_consistency(config_of(tmp_path, base_url, *prompts, num_prompts=1, concurrency=4))
        down, asked = True, []
        _, lines, failures, *_ = run_consistency(config_of(tmp_path, base_url, *prompts, concurrency=4))
        assert [line["id"] for line in lines] == ["p0"]
        assert sorted(failures) == sorted(prompts[1:])
        assert len(asked) <= 5  # three failures, and at most two under way
        assert f"not asked: nothing but failures from {base_url}, the last: Error code: 503" in failures["p29"]
        with pytest.raises(ConfigError, match="nothing but failures from .* Error code: 503.*; look at the server"):
            run_consistency(config_of(tmp_path, base_url, *prompts, concurrency=4, out=str(tmp_path / "b.jsonl")))


def test_when_an_endpoint_counts_as_down() -> None:
    own, its = BadReplyError("no sample"), BadReplyError("no JSON", of_endpoint=True)
    watch = Watch(9)
    for at in range(4):
        watch.begin(at)
    for at in range(3):
        watch.failed(at, its)
    assert not watch.down()  # 3 was under way at the first failure, and is
    watch.failed(3, own)
    assert watch.down()
    assert watch.last == "no JSON"
    watch.succeeded()
    assert not watch.down()
    watch = Watch(9)
    for at in range(9):
        watch.begin(at)
        watch.failed(at, own)
    assert not watch.down()
    for done, expected in ((False, True), (True, False)):
        watch = Watch(1, done=done)
        watch.begin(0)
        watch.failed(0, its)
        assert watch.down() is expected


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"choices": [', "answered with what is no JSON: Expecting value"),
        (b'{"choices": "\xff"}', "answered with what is no JSON: 'utf-8' codec"),
        (b"[1, 2]", "answered without a sample: [1, 2]; is it an OpenAI-compatible endpoint?"),
        (b"null", "answered without a sample: None"),
        (b'{"choices": []}', "answered without a sample"),
        (b'{"choices": {"a": 1}}', "answered without a sample"),
        (b'{"choices": ["4"]}', "with a sample without content: '4'; is it --route completions?"),
        (b'{"choices": [{"text": "4"}]}', "with a sample without content"),
        (completion(7), "with a sample without content"),
        (completion({"content": 7}), "with content that is no text: 7"),
        (b'{"error": {"message": "too long", "code": 400}}', "answered with an error: 'too long'"),
        (b'{"error": {"message": "overloaded", "code": 503}}', "answered with an error: 'overloaded'"),
    ],
)
def test_an_odd_reply_is_its_prompts_failure(tmp_path: Path, body: bytes, message: str) -> None:
    with serving(odd(body)) as base_url:
        config = config_of(tmp_path, base_url, "a", "bad", "b", "c", concurrency=2)
        _, lines, failures, *_ = run_consistency(config)
    assert [line["id"] for line in lines] == ["a", "b", "c"]
    assert list(failures) == ["bad"]
    assert message in failures["bad"]


@pytest.mark.parametrize(("code", "asked"), [(429, 2), (502, 2), (400, 1)])
def test_an_error_with_status_200_is_asked_again_if_it_may_pass(tmp_path: Path, code: int, asked: int) -> None:
    seen = []

    def reply(prompt: str) -> tuple[int, bytes]:
        seen.append(prompt)
        wrong = json.dumps({"error": {"message": "no", "code": code}}).encode()
        return 200, wrong if len(seen) == 1 else completion()

    with serving(reply) as base_url:
        config = config_of(tmp_path, base_url, "a", num_generations=2, retries=1)
        _, lines, failures, *_ = run_consistency(config)
    assert len(seen) == asked
    assert (len(lines), len(failures)) == ((1, 0) if asked == 2 else (0, 1))


def test_nothing_but_odd_replies_ends_it(tmp_path: Path) -> None:
    with serving(lambda prompt: (200, b"<html>hi</html>")) as base_url:
        config = config_of(tmp_path, base_url, *"abcdefgh", concurrency=4)
        with pytest.raises(ConfigError, match="nothing but failures .* no JSON: .*; is it an OpenAI-compatible"):
            run_consistency(config)


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        (completion({"content": [{"type": "text", "text": "the answer "}, {"type": "text", "text": "is 4"}]}), 10),
        (completion(usage={"prompt_tokens": "3", "completion_tokens": "10"}), None),
        (completion(usage=7), None),
    ],
)
def test_what_can_be_read_is_read(tmp_path: Path, body: bytes, tokens: int | None) -> None:
    with serving(odd(body)) as base_url:
        _, lines, failures, *_ = run_consistency(config_of(tmp_path, base_url, "bad"))
    assert failures == {}
    assert (lines[0]["texts"], lines[0]["chosen"]) == (["the answer is 4"] * 2, "4")
    assert lines[0]["completion_tokens"] == tokens


@pytest.mark.parametrize("reason", ["length", "content_filter", "abort"])
@pytest.mark.parametrize("streamed", [True, False])
def test_a_sample_that_the_server_cut_off_has_no_vote(reason: str, streamed: bool) -> None:
    """The last number of half a text was its answer, where a filter or an abort had ended it."""
    taken: list[Sample] = []
    reply = Reply(lambda place, sample: taken.append(sample))
    choice = {"index": 0, "finish_reason": reason, "text": "First, 3 of the"}
    add = reply.add_chunk if streamed else reply.add_whole
    add({"choices": [choice]}, 1, chat=False, base_url="http://x")
    assert [(one.text, one.truncated) for one in taken] == [("First, 3 of the", True)]


def test_half_a_character_in_a_prompt_is_its_failure(tmp_path: Path) -> None:
    with serving(odd(b"")) as base_url:
        endpoint = Endpoint(config_of(tmp_path, base_url, "a"))
        with pytest.raises(BadReplyError, match="the prompt can't be sent: 'utf-8' codec") as caught:
            asyncio.run(endpoint.ask("\ud83d", 1, None, Reply(lambda at, sample: None)))
    assert not is_of_endpoint(caught.value)


@pytest.mark.parametrize("key", ["secrét", "secret\n", "secret "])
def test_a_key_that_no_header_can_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("MY_KEY", key)
    with serving(odd(b"")) as base_url:
        config = config_of(tmp_path, base_url, "a", api_key_env="MY_KEY")
        with pytest.raises(ConfigError, match="the key in MY_KEY has what no HTTP header can hold") as caught:
            run_consistency(config)
    assert "secr" not in str(caught.value)


@pytest.mark.parametrize("option", [{"system": "\udcff"}, {"model": "a\udcff"}, {"extra": {"a": float("nan")}}])
def test_options_that_cannot_be_sent_are_named(option: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(option))} can't be sent to an endpoint: "):
        EndpointConfig(**{"data": "x.jsonl", "base_url": "http://x/v1", "model": "m", **option})


def test_an_option_that_is_no_utf8_is_kept(tmp_path: Path) -> None:
    """A column's name or a path may hold such bytes; the second start finds the same options."""
    with serving(odd(b"")) as base_url:
        config = config_of(tmp_path, base_url, id="\udcff")
        Path(config.data).write_text(json.dumps({"\udcff": "a", "prompt": "a"}) + "\n")
        path, lines, *_ = run_consistency(config)
        assert json.loads((tmp_path / f"{path.name}.options.json").read_bytes())["id"] == "\udcff"
        assert run_consistency(config)[1] == lines


def votes_of(*texts: str) -> dict[str, Any]:
    async def ask(prompt: Any, n: int, seed: int | None, reply: Reply) -> None:
        for at, text in enumerate(texts):
            reply.take(at, Sample(text))

    async def draw() -> dict[str, Any]:
        config = EndpointConfig(
            base_url="http://x", model="m", rule="esc", num_generations=len(texts), window=len(texts)
        )
        desk = Desk(config, config.stopping_rule(), ask, Extractor(), Slots(len(texts)), lambda line: None)
        return await Drawing(desk, "?", "?", Drawn()).run()

    return asyncio.run(draw())


def test_large_numbers_are_different_answers() -> None:
    line = votes_of(*(f"so {2**60 + i}" for i in range(5)))
    assert line["why"] == "budget"
    assert line["answers"] == [str(2**60 + i) for i in range(5)]


def test_units_and_reasons_are_no_part_of_a_number() -> None:
    said = ("18 dollars.", "18.", "18 dollars per day.", "$18$ since 3*6=18.", "18, as computed above.")
    line = votes_of(*(f"The answer is {one}" for one in said))
    assert (line["why"], line["chosen"]) == ("agreed", "18")


def test_what_every_prompt_is_refused_for_is_not_the_prompts() -> None:
    watch, again = Watch(500), Watch(500, done=True)
    for at in range(16):
        assert not watch.down()
        for one in (watch, again):
            one.begin(at)
            one.failed(at, BadReplyError("no field 'nn'"))
    assert watch.down()
    assert "no field 'nn'" in watch.last
    assert not again.down()  # others succeeded before


def test_the_default_window_is_no_larger_than_k() -> None:
    rules = {
        k: EndpointConfig(base_url="http://x", model="m", rule="esc", num_generations=k).stopping_rule()
        for k in (1, 3, 40)
    }
    assert {k: getattr(rule, "window", None) for k, rule in rules.items()} == {1: 2, 3: 3, 40: 5}


def test_stop_texts_are_sent_and_put_back(tmp_path: Path) -> None:
    """A server leaves them out; where it names the one it met (vLLM), or says there was none, that counts."""
    replies = {
        "plain": {"finish_reason": "stop"},
        "named": {"finish_reason": "stop", "stop_reason": "</a>"},
        "ended": {"finish_reason": "stop", "stop_reason": None},
        "long": {"finish_reason": "length"},
    }

    def respond(prompt: str) -> tuple[int, bytes]:
        message = {"role": "assistant", "content": "<answer>4"}
        choice = {"index": 0, "message": message, **replies[prompt]}
        return 200, json.dumps({"id": "x", "choices": [choice], "usage": USAGE}).encode()

    with serving(respond) as base_url:
        rows = [{"prompt": prompt, "id": prompt} for prompt in replies]
        data = tmp_path / "d.jsonl"
        data.write_text("".join(json.dumps(row) + "\n" for row in rows))
        config = EndpointConfig(
            data=str(data), base_url=base_url, model="m", rule="full", num_generations=1, stop=["</answer>", "</a>"],
            out=str(tmp_path / "out.jsonl"),
        )  # fmt: skip
        lines = {line["id"]: line for line in run_consistency(config).lines}
    assert {id_: line["texts"][0] for id_, line in lines.items()} == {
        "plain": "<answer>4</answer>",
        "named": "<answer>4</a>",
        "ended": "<answer>4",
        "long": "<answer>4",
    }
    assert lines["plain"]["chosen"] == "4"
