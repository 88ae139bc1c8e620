"""Samples in flight, streams, silence and what they cost, over a real local HTTP server with latencies."""

import asyncio
import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openai")

from fake_openai import FakeOpenAI

from rollwise.cli import main
from rollwise.inference.endpoint.asking import seed_of
from rollwise.inference.endpoint.config import EndpointConfig
from rollwise.inference.endpoint.drawing import Slots
from rollwise.inference.endpoint.run import Outcome, run_consistency
from rollwise.inference.endpoint.summary import summarise
from rollwise.inference.policies.agreement import AdaptiveConsistency, replay


def seventy(prompt: str, i: int) -> str:
    """7 with probability .7, else 1, 2 or 3; always the same for a prompt's sample."""
    draw = random.Random(f"{prompt}/{i}")
    return f"so {7 if draw.random() < 0.7 else draw.randint(1, 3)}"


def sevens(prompt: str, i: int) -> str:
    return "so 7"


def exponential(mean: float, seed: int = 0) -> Any:
    draw = random.Random(seed)
    return lambda number: draw.expovariate(1 / mean)


def noted(latency: Any, latencies: list[float]) -> Any:
    """`latency`, whose seconds are added to the list."""

    def of(number: int) -> float:
        latencies.append(latency(number))
        return latencies[-1]

    return of


def config_of(fake: FakeOpenAI, folder: Path, prompts: int = 1, **options: Any) -> EndpointConfig:
    data = folder / "data.jsonl"
    data.write_text("".join(json.dumps({"id": f"p{i:02}", "prompt": f"p{i:02}"}) + "\n" for i in range(prompts)))
    given = {"out": str(folder / f"{len(list(folder.iterdir()))}.jsonl"), "seed": 0, **options}
    return EndpointConfig(data=str(data), base_url=fake.base_url, model="tiny", **given)


def run(config: EndpointConfig) -> Outcome:
    found = run_consistency(config)
    assert found.failures == {}
    return found


def one_at_a_time(id_: str, k: int = 40) -> tuple[int, str | None]:
    """What adaptive consistency draws and chooses when it asks for one sample after another."""
    first = seed_of(0, id_)
    found = replay(AdaptiveConsistency(), [seventy(id_, first + i)[3:] for i in range(k)])
    return found.samples, found.answer


@pytest.mark.slow
def test_adaptive_holds_slots_for_less_time_than_full_at_the_defaults(tmp_path: Path) -> None:
    """60 prompts, k = 40, the likeliest answer .7, exponential latencies; and not a sample more than one by one."""
    held, tokens = {}, {}
    for rule in ("full", "adaptive"):
        latencies: list[float] = []
        with FakeOpenAI(seventy, latency=noted(exponential(0.05), latencies), by_seed=True) as fake:
            config = config_of(fake, tmp_path, 60, rule=rule)
            found = run(config)
        held[rule], tokens[rule] = sum(latencies), fake.counted["total_tokens"]
        assert fake.most_samples <= config.concurrency == 64
    assert held["adaptive"] < held["full"] / 2
    assert tokens["adaptive"] < tokens["full"] / 2
    assert {line["id"]: (line["samples"], line["chosen"]) for line in found.lines} == {
        f"p{i:02}": one_at_a_time(f"p{i:02}") for i in range(60)
    }
    assert sum(fake.drawn.values()) == sum(fake.finished.values()) == sum(line["samples"] for line in found.lines)
    assert len(fake.requests) < sum(fake.drawn.values()) / 2  # each request sends the prompt again
    assert EndpointConfig(base_url="http://x", model="m").rule == "adaptive"


@pytest.mark.parametrize("options", [{"ahead": 5}, {"n": 1, "concurrency": 3}, {"n": 2, "ahead": 1}, {"stream": False}])
def test_the_result_does_not_depend_on_latencies(tmp_path: Path, options: dict[str, Any]) -> None:
    with FakeOpenAI(seventy, latency=exponential(0.01, seed=1), by_seed=True) as fake:
        found = run(config_of(fake, tmp_path, 8, num_generations=20, **options))
    for line in found.lines:
        first = seed_of(0, line["id"])
        assert (line["samples"], line["chosen"]) == one_at_a_time(line["id"], 20)
        assert line["texts"] == [seventy(line["id"], first + i) for i in range(line["samples"])]


def test_a_gateway_that_ends_its_samples_twice_takes_no_answer_away(tmp_path: Path) -> None:
    """OpenRouter repeats the end, without text, beside the usage."""
    with FakeOpenAI(seventy, by_seed=True, ends_twice=True) as fake:
        found = run(config_of(fake, tmp_path, 3, num_generations=12, n=4, concurrency=4))
    for line in found.lines:
        first = seed_of(0, line["id"])
        assert line["texts"] == [seventy(line["id"], first + i) for i in range(line["samples"])]
        assert (line["samples"], line["chosen"]) == one_at_a_time(line["id"], 12)
    assert fake.most_samples <= 4


def test_samples_in_flight_are_bounded(tmp_path: Path) -> None:
    with FakeOpenAI(sevens, latency=lambda number: 0.2) as fake:
        found = run(config_of(fake, tmp_path, 4, rule="full", num_generations=6, n=2, concurrency=6))
    assert [line["samples"] for line in found.lines] == [6] * 4
    assert fake.most_samples == 6
    assert max(body["n"] for _, body in fake.requests) == 2


def test_what_is_not_needed_is_cancelled_and_counted(tmp_path: Path) -> None:
    """4 alike come at once, the 3 asked for beyond them would take a minute."""
    first = seed_of(0, "p00")
    with FakeOpenAI(sevens, latency=lambda number: 60.0 if number >= first + 4 else 0.01, by_seed=True) as fake:
        found = run(config_of(fake, tmp_path, ahead=3))
        deadline = time.monotonic() + 5
        while not fake.closed and time.monotonic() < deadline:
            time.sleep(0.01)
    assert found.seconds < 10
    (line,) = found.lines
    assert (line["samples"], line["why"], line["unused"], line["requests"], line["uncounted"]) == (4, "agreed", 3, 2, 1)
    assert (line["prompt_tokens"], line["completion_tokens"]) == (2 * len("p00"), 4 * len("so 7"))
    assert fake.finished["p00"] == 4


class _RefusesTwo(FakeOpenAI):
    """Has no room for a request of two samples."""

    def begin(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> Any:
        reply = super().begin(path, body, headers)
        if body["n"] == 2:
            reply.fault = 429
        return reply


def test_a_failure_of_what_nobody_needs_yet_ends_no_prompt(tmp_path: Path) -> None:
    """The samples asked for ahead fail while those that are needed are drawn, which were thrown away."""
    first = seed_of(0, "p00")
    for script, drawn, asked in ((sevens, 4, [2, 4]), (lambda prompt, i: f"so {min(i - first, 1)}", 7, [2, 3, 4])):
        with _RefusesTwo(script, latency=lambda number: 0.3, by_seed=True) as fake:
            found = run(config_of(fake, tmp_path, ahead=2, num_generations=8, retries=0))
        assert [(line["samples"], line["why"]) for line in found.lines] == [(drawn, "agreed")]
        assert sorted(body["n"] for _, body in fake.requests) == asked
        assert fake.finished["p00"] == drawn


def test_tokens_are_those_that_the_server_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every third request is refused with 429 first: nothing is lost, nothing is counted twice."""
    with FakeOpenAI(seventy, by_seed=True, befall=lambda prompt, before: 429 if before % 3 == 0 else "fine") as fake:
        config = config_of(fake, tmp_path, 20, price_in=3, price_out=15, retries=50)
        found = run(config)
        numbers = summarise(found.lines, config)
        assert numbers["prompt_tokens"] == fake.counted["prompt_tokens"]
        assert numbers["completion_tokens"] == fake.counted["completion_tokens"]
        assert fake.drawn.total() == fake.finished.total() == numbers["samples"]
        # All 40 in one request each; every text has 4 letters, every prompt 3.
        spent, full = (3 * numbers["prompt_tokens"] + 15 * numbers["completion_tokens"], 20 * (3 * 3 + 15 * 40 * 4))
        assert numbers["money"] == pytest.approx(spent / 1e6)
        assert numbers["cost_ratio"] == pytest.approx(spent / full)
        command = ["consistency", config.data, "--base_url", fake.base_url, "--model", "tiny", "--seed", "0"]
        prices = ["--price_in", "3", "--price_out", "15", "--retries", "50", "--out", str(tmp_path / "o.jsonl")]
        assert main([*command, *prices]) == 0
    out = capsys.readouterr().out
    for part in ("tokens in ", "tokens out", "tokens in all", "money", "seconds", "(estimated)", "20 prompts asked"):
        assert part in out


def test_long_prompts_can_make_stopping_dearer_than_all(tmp_path: Path) -> None:
    """Asked for one by one, 40 times the prompt."""
    line = {"samples": 10, "why": "agreed", "prompt_tokens": 10 * 400, "completion_tokens": 10 * 100, "chosen": "4"}
    config = EndpointConfig(base_url="http://x", model="m", price_in=1, price_out=1)
    numbers = summarise([{**line, "requests": 10}], config)
    assert numbers["cost_ratio"] == pytest.approx(5000 / 4400)
    assert numbers["saved"] > 0
    assert numbers["verdict"] == (
        "adaptive cost 1.1 times what all 40 at once would have: 10 requests instead of 1 read 3,600 prompt tokens "
        "more, and saved only 3,000 answer tokens; take --rule full"
    )


def test_a_reply_that_goes_silent_is_given_up(tmp_path: Path) -> None:
    """The first sample had come and is kept: the second alone is asked for again."""
    with FakeOpenAI(sevens, faults={"p00": ["hang midway"]}, latency=lambda number: 0.2 * number) as fake:
        found = run(config_of(fake, tmp_path, rule="esc", window=2, num_generations=2, timeout=0.3, retries=1))
        deadline = time.monotonic() + 5
        while not fake.closed and time.monotonic() < deadline:
            time.sleep(0.01)
        assert fake.closed == ["p00"]  # the server was told
    assert [body["n"] for body in fake.bodies("p00")] == [2, 1]
    (line,) = found.lines
    assert (line["samples"], line["why"], line["requests"], line["uncounted"]) == (2, "agreed", 2, 1)
    assert found.seconds < 5


@pytest.mark.parametrize("fault", ["hang", "drop", "drop midway"])
def test_a_reply_that_never_comes_or_breaks_off_is_asked_for_again(tmp_path: Path, fault: str) -> None:
    with FakeOpenAI(sevens, faults={"p00": [fault]}) as fake:
        found = run(config_of(fake, tmp_path, timeout=0.3, retries=1))
    assert found.lines[0]["chosen"] == "7"
    assert found.lines[0]["samples"] == 4
    assert fake.closed == (["p00"] if fault == "hang" else [])  # what was given up does not run on


def test_a_slow_stream_is_not_silent(tmp_path: Path) -> None:
    with FakeOpenAI(sevens, latency=lambda number: 1.6) as fake:  # a chunk each 0.4 s
        found = run(config_of(fake, tmp_path, num_generations=1, timeout=1.0, retries=0))
    assert found.seconds > 1.6
    assert len(fake.requests) == 1


@pytest.mark.slow
def test_hanging_and_failing_requests_fail_their_prompt_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every second request of a prompt gets a 500, some of the others hang, and one prompt's hang always."""
    asked: Counter[str] = Counter()

    def befall(prompt: str, before: int) -> int | str:
        asked[prompt] += 1
        if prompt == "p07":
            return "hang"
        return 500 if asked[prompt] % 2 else "hang" if before % 10 == 4 else "fine"

    with FakeOpenAI(seventy, by_seed=True, befall=befall) as fake:
        config = config_of(fake, tmp_path, 20, num_generations=8)
        command = [
            "consistency",
            config.data,
            "--base_url",
            fake.base_url,
            "--model",
            "tiny",
            "--seed",
            "0",
            "--num_generations",
            "8",
        ]
        assert main([*command, "--timeout", "0.6", "--retries", "5", "--out", str(tmp_path / "o.jsonl")]) == 1
    said = capsys.readouterr()
    assert "1 prompt failed, for example 'p07': " in said.err
    assert "was silent for 0.6 s, 6 times" in said.err
    assert len((tmp_path / "o.jsonl").read_text().splitlines()) == 19


@pytest.mark.parametrize("stream", [True, False])
def test_servers_that_do_not_stream(tmp_path: Path, stream: bool) -> None:
    with FakeOpenAI(sevens, streams=False) as fake:
        found = run(config_of(fake, tmp_path, stream=stream))
    assert found.lines[0]["completion_tokens"] == fake.counted["completion_tokens"] == 16
    assert fake.requests[0][1].get("stream", False) is stream


def test_slots_go_to_the_oldest_and_large_requests_get_their_turn() -> None:
    async def take_all() -> list[str]:
        slots, order = Slots(3), []

        async def work(name: str, n: int, priority: int) -> None:
            await slots.take(n, priority)
            order.append(name)
            await asyncio.sleep(0.01)  # a cancelled one never comes here
            slots.give(n)

        first = asyncio.create_task(work("first", 2, 0))
        await asyncio.sleep(0)
        rest = [
            asyncio.create_task(work(*one))
            for one in (("young", 1, 3), ("later", 1, 2), ("large", 3, 1), ("gone", 1, 0))
        ]
        await asyncio.sleep(0)
        rest[-1].cancel()
        await asyncio.gather(first, *rest, return_exceptions=True)
        assert slots.free == 3
        return order

    # young has the slot that was free when it came; large is older than later, and waits for all three.
    assert asyncio.run(take_all()) == ["first", "young", "large", "later"]


def test_without_a_terminal_a_line_is_said_for_each_tenth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeOpenAI(sevens) as fake:
        run(config_of(fake, tmp_path, 19, rule="full", num_generations=1))
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("prompts answered: ")]
    assert len(said) == 10
    assert said[-1] == "prompts answered: 19 of 19, 1.0 samples each"
