"""How many samples are asked for at once, and what the summary says of the cost, against the server's own counts."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openai")

from fake_openai import FakeOpenAI
from rich.console import Console

from rollwise.cli import main
from rollwise.inference.endpoint.asking import seed_of
from rollwise.inference.endpoint.config import EndpointConfig
from rollwise.inference.endpoint.run import Outcome, run_consistency
from rollwise.inference.endpoint.samples import Drawn
from rollwise.inference.endpoint.sizing import AnswerLength, estimated_tokens, worth_asking
from rollwise.inference.endpoint.summary import show_summary, summarise

LONG = "p" * 40  # tokens, as the server counts letters; an answer has 4


def sevens(prompt: str, i: int) -> str:
    return "so 7"


def at_odds(prompt: str, i: int) -> str:
    """1 2 1 2 ..., so that adaptive consistency never stops."""
    return f"so {1 + i % 2}"


def config_of(fake: FakeOpenAI, folder: Path, *prompts: str, **options: Any) -> EndpointConfig:
    data = folder / "data.jsonl"
    data.write_text("".join(json.dumps({"id": f"p{i}", "prompt": one}) + "\n" for i, one in enumerate(prompts)))
    given = {
        "out": str(folder / f"{len(list(folder.iterdir()))}.jsonl"),
        "concurrency": 40,
        "num_generations": 20,
        **options,
    }
    return EndpointConfig(data=str(data), base_url=fake.base_url, model="tiny", **given)


def run(config: EndpointConfig) -> Outcome:
    found = run_consistency(config)
    assert found.failures == {}
    return found


# ---- how many at once ----


def test_as_many_more_as_cost_what_the_prompt_costs() -> None:
    assert worth_asking(500, 100, 1, 1) == 5
    assert worth_asking(500, 100, 0.15, 0.6) == pytest.approx(1.25)
    assert worth_asking(500, 100, 0, 1) == 0
    assert worth_asking(500, 100, 1, 0) == float("inf")


def test_lengths() -> None:
    length = AnswerLength()
    assert length.mean() == 256
    ended = {"chunks": 9, "completion_tokens": 30, "unfinished": 0}
    length.add(ended, 3)
    length.add({**ended, "unfinished": 2}, 1)  # cut short: says nothing
    assert length.mean() == 10
    length.add({**ended, "completion_tokens": None}, 3)
    assert length.mean() == 39 / 6
    line = {"id": "a", "request": 0, "prompt_tokens": 4, "asked": 2}
    drawn = Drawn({0: {"id": "a", "sample": 0, "request": 0}}, {0: {**line, **ended}})
    again = AnswerLength()
    again.add_drawn(drawn)
    assert again.mean() == 30
    assert estimated_tokens("p" * 40, "s" * 8) == 12
    picture = {"type": "image_url", "image_url": {"url": "data:" + "x" * 10_000}}
    chat = [{"role": "user", "content": [{"type": "text", "text": "p" * 40}, picture]}, {"role": "user"}]
    assert estimated_tokens(chat, None) == 10


def test_long_prompts_ask_for_more_at_once(tmp_path: Path) -> None:
    """40 tokens in, 4 out: 10 more than needed, once that is known. At first an answer is taken to have 256.

    2 against 2 are followed by at least 6 alike: 16 are asked for, all that are left.
    """
    with FakeOpenAI(at_odds) as fake:
        found = run(config_of(fake, tmp_path, LONG))
    assert [body["n"] for body in fake.bodies(LONG)] == [4, 16]
    (line,) = found.lines
    assert (line["samples"], line["requests"], line["unused"]) == (20, 2, 0)


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({"ahead": 0}, [4, 6, 7, 3]),  # 2:2, so at least 8:2; 5:5, so 12:5; 9:8, so past 20
        ({"window": 1}, [4, 6, 7, 3]),
        ({"price_in": 1, "price_out": 5}, [4, 8, 8]),  # 2 more than 6; 6:6, so 14:6
        ({"price_in": 1, "price_out": 0}, [20]),
        ({"n": 6}, [4, 6, 6, 4]),  # more only to fill a request: 6; 6 and 1 + 3, all that are left
        ({"rule": "esc", "window": 5}, [5, 5, 5, 5]),
        ({"rule": "esc"}, [5, 15]),
        ({"rule": "full"}, [20]),
    ],
)
def test_options_that_are_given_are_kept_exactly(tmp_path: Path, options: dict[str, Any], asked: list[int]) -> None:
    with FakeOpenAI(at_odds) as fake:
        found = run(config_of(fake, tmp_path, LONG, **options))
    assert sorted(body["n"] for body in fake.bodies(LONG)) == sorted(asked)
    assert found.lines[0]["samples"] == 20


def test_what_was_asked_for_in_vain_is_counted_and_does_not_vote(tmp_path: Path) -> None:
    """The first prompt tells that answers have 4 tokens. The second has 40 letters, some 10 tokens: 2 more than 4."""
    with FakeOpenAI(sevens, by_seed=True) as fake:
        config = config_of(fake, tmp_path, "first", LONG, concurrency=20, seed=0)
        run_consistency(EndpointConfig(**{**vars(config), "num_prompts": 1}))
        found = run(config)
    assert [body["n"] for body in fake.bodies(LONG)] == [6]
    line = found.lines[1]
    assert (line["samples"], line["answers"], line["unused"]) == (4, ["7"] * 4, 2)
    assert (line["prompt_tokens"], line["completion_tokens"]) == (40, 6 * 4)
    assert summarise(found.lines, config)["unused"] == 2


def test_a_reply_that_breaks_off_after_what_was_needed_is_not_asked_for_again(tmp_path: Path) -> None:
    first = seed_of(0, "p0")
    slow = {"latency": lambda number: 0.5 * (number >= first + 4), "faults": {LONG: ["drop midway"]}}
    with FakeOpenAI(sevens, by_seed=True, **slow) as fake:
        found = run(config_of(fake, tmp_path, LONG, seed=0, price_in=1, price_out=0))
    assert [body["n"] for body in fake.bodies(LONG)] == [20]
    assert found.lines[0]["samples"] == 4


# ---- what the summary says ----


def test_where_stopping_costs_more_the_summary_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Windows of 2 from prompts of 40 tokens, which never agree: 10 requests a prompt where 1 would do."""
    with FakeOpenAI(at_odds) as fake:
        config = config_of(fake, tmp_path, LONG, LONG + "q")
        prices = ["--price_in", "1", "--price_out", "2"]
        command = [
            "consistency",
            config.data,
            "--base_url",
            fake.base_url,
            "--model",
            "tiny",
            "--num_generations",
            "20",
            *prices,
        ]
        assert main([*command, "--rule", "esc", "--window", "2", "--out", str(config.out)]) == 0
        said = " ".join(capsys.readouterr().out.split())
        # [1 2] again and again: 10 requests a prompt, 81 tokens each time; 20 answers of 4 either way.
        assert (fake.counted["prompt_tokens"], fake.counted["completion_tokens"]) == (810, 160)
    assert "requests 20 2 900.0% more" in said
    assert "tokens in 810 81 900.0% more" in said
    assert "tokens out 160 160 the same" in said
    assert "tokens in all 970 241 302.5% more" in said
    assert "money 0.0011 0.0004 181.8% more" in said  # (810 + 2 * 160) / (81 + 2 * 160)
    assert (
        "esc cost 2.8 times what all 20 at once would have: 20 requests instead of 2 read 729 prompt tokens more, and "
        "saved only 0 answer tokens; leave out --window, or take --rule full"
    ) in said
    written = json.loads(Path(f"{config.out}.summary.json").read_text())
    assert written["cost_ratio"] == pytest.approx(1130 / 401)
    assert written["full"] == {"requests": 2, "prompt_tokens": 81, "completion_tokens": 160, "money": 401 / 1e6}


@pytest.mark.parametrize("rule", ["adaptive", "esc"])
def test_it_never_costs_twice_as_much(tmp_path: Path, rule: str) -> None:
    """Even where no prompt ever agrees. The first request, which does not know how long answers are, comes on top."""
    prompts = ["p" * length for length in (1, 4, 10, 20, 40, 100, 400)]
    with FakeOpenAI(at_odds) as fake:
        config = config_of(fake, tmp_path, *prompts, rule=rule)
        found = run(config)
    for prompt, line in zip(prompts, found.lines, strict=True):
        assert line["prompt_tokens"] == len(prompt) * len(fake.bodies(prompt))
        assert line["prompt_tokens"] + line["completion_tokens"] < 2 * (len(prompt) + 20 * 4) + len(prompt)
    assert summarise(found.lines, config)["completion_tokens"] == fake.counted["completion_tokens"]


def test_an_endpoint_that_gives_one_each_is_compared_with_itself(tmp_path: Path) -> None:
    """All 20 at once would be 20 requests there too."""
    with FakeOpenAI(sevens, ignore_n=True) as fake:
        config = config_of(fake, tmp_path, "first", "other")
        numbers = summarise(run(config).lines, config)
        assert numbers["requests"] == len(fake.requests) == 8
    assert numbers["full"]["requests"] == 40
    assert numbers["verdict"] is None
    assert numbers["prompt_tokens"] == fake.counted["prompt_tokens"]


def test_of_one_sample_nothing_is_compared() -> None:
    line = {"samples": 1, "why": "budget", "prompt_tokens": 4, "completion_tokens": 5, "chosen": "4", "requests": 1}
    config = EndpointConfig(base_url="http://x", model="m", num_generations=1, price_in=1, price_out=2)
    text = io.StringIO()
    show_summary(summarise([line], config), config, Console(file=text, width=120), seconds=1.0, asked=1)
    said = text.getvalue()
    assert "one sample: nothing to save" in said
    assert "fewer than" not in said
    assert "at once" not in said
