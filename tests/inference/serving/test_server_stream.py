"""`rollwise bestof --base_url` without a head, on servers that count, end and break off their streams as they like."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from fake_openai import FakeOpenAI, Reply

from rollwise.inference.bestof.config import BestOfConfig
from rollwise.inference.bestof.run import Answers, run_bestof

pytest.importorskip("openai")

PROMPTS = ["1+2=", "2+2="]
LIMIT = 8


def answer(tmp_path: Path, fake: FakeOpenAI, **options: Any) -> Answers:
    """Two candidates of each of two prompts."""
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps({"prompt": prompt}) + "\n" for prompt in PROMPTS))
    given: dict[str, Any] = {
        "num_generations": 2,
        "retries": 2,
        "max_completion_length": LIMIT,
        "out": str(tmp_path / "out"),
    }
    return run_bestof(
        BestOfConfig(data=str(data), model="m", base_url=fake.base_url, select="majority", **(given | options))
    )


def test_a_server_that_counts_no_completion_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`"completion_tokens": null` was a TypeError."""
    monkeypatch.setattr(Reply, "usage", lambda reply: {"usage": {"prompt_tokens": 3, "completion_tokens": None}})
    with FakeOpenAI(lambda prompt, i: "4 it is!") as fake:
        answers = answer(tmp_path, fake)
    assert [line["row_forwards"] for line in answers.lines] == [2 * FakeOpenAI.PIECES] * 2  # as many as chunks
    assert answers.spent is not None
    assert (answers.spent.tokens_in, answers.spent.tokens_out, answers.spent.uncounted) == (4 * 3, 16, 4)


def test_an_error_with_status_200_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It came as JSON, not as a stream: "does not stream its replies" ended the run."""
    error = {"error": {"message": "slow down", "code": 429}}
    monkeypatch.setattr(Reply, "streamed", property(lambda reply: len(reply.fake.requests) > 1))
    monkeypatch.setattr(Reply, "whole", lambda reply: error)
    with FakeOpenAI(lambda prompt, i: "4 it is!") as fake:
        answers = answer(tmp_path, fake, num_generations=1, slots=1)
    assert [line["answer"] for line in answers.lines] == ["4 it is!"] * 2
    assert len(fake.requests) == 3


def test_a_last_chunk_of_the_usage_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `choices`, or with null, it was "answered without a sample"; `consistency` takes it."""
    frame = Reply._frame
    monkeypatch.setattr(Reply, "_frame", lambda reply, choices: frame(reply, choices) | {"choices": choices or None})
    with FakeOpenAI(lambda prompt, i: "4 it is!") as fake:
        answers = answer(tmp_path, fake)
    assert [line["row_forwards"] for line in answers.lines] == [2 * len("4 it is!")] * 2


@pytest.mark.parametrize(("pieces", "text"), [(4, "a text of 21 letters!"), (21, "a text of 21 letters!")])
def test_a_server_that_counts_or_sends_more_than_the_limit(
    pieces: int, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chunk of text need not be a token, and some servers count the end too: "more than max_tokens" ended the run."""
    monkeypatch.setattr(FakeOpenAI, "PIECES", pieces)
    with FakeOpenAI(lambda prompt, i: text) as fake:
        answers = answer(tmp_path, fake)
    assert [line["answer"] for line in answers.lines] == [text] * 2
    assert [line["row_forwards"] for line in answers.lines] == [2 * LIMIT] * 2
    assert answers.spent is not None
    assert answers.spent.tokens_out == 4 * len(text)  # as the server counted


def test_a_stream_that_breaks_off_after_its_candidate_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The candidate is whole: it was thrown away, and its prompt drawn anew until it failed."""
    monkeypatch.setattr(FakeOpenAI, "PIECES", 1)  # the end is in the first chunk, the usage in the second
    with FakeOpenAI(lambda prompt, i: f"{prompt}4", befall=lambda prompt, before: "drop midway") as fake:
        answers = answer(tmp_path, fake)
    assert [line["answer"] for line in answers.lines] == [f"{line['prompt']}4" for line in answers.lines]
    assert len(answers.lines) == 2
    assert len(fake.requests) == 4
    assert not answers.failures


def test_waits_before_a_prompt_is_drawn_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `consistency` does: an error that may pass, in a stream, used up all retries at once."""
    waits: list[float] = []

    async def note(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("rollwise.inference.endpoint.replies.LONGEST_WAIT", 8.0)  # its own, see conftest.py
    monkeypatch.setattr(asyncio, "sleep", note)
    faults: dict[str, list[int | str]] = {PROMPTS[0]: ["drop midway", "drop midway", "fine"]}
    with FakeOpenAI(lambda prompt, i: "4 it is!", faults=faults) as fake:
        answers = answer(tmp_path, fake, num_generations=1, slots=1)
    assert not answers.failures
    assert [seconds for seconds in waits if seconds] == [0.5, 1.0]
