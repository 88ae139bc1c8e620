"""When answers are one, and which are right: as text, as mathematics, by a reward function."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openai")

from fake_openai import FakeOpenAI

from rollwise.answers import maths
from rollwise.cli import main
from rollwise.errors import ConfigError, MissingColumnError, MissingExtraError, RewardError
from rollwise.inference.endpoint.answers import unified
from rollwise.inference.endpoint.config import EndpointConfig
from rollwise.inference.endpoint.run import run_consistency

HALVES = [r"\frac{1}{2}", r"\frac12", "0.5", r"\dfrac{1}{2}"]


def halves(prompt: str, i: int) -> str:
    return rf"so \boxed{{{HALVES[i % 4]}}}"


def config_of(fake: FakeOpenAI, folder: Path, **options: Any) -> EndpointConfig:
    data = folder / "data.jsonl"
    data.write_text(json.dumps({"id": "a", "prompt": "1/2?", "answer": ".5", "wanted": "0.5"}) + "\n")
    given = {"out": str(folder / f"{len(list(folder.iterdir()))}.jsonl"), "num_generations": 8, **options}
    return EndpointConfig(data=str(data), base_url=fake.base_url, model="tiny", **given)


def line_of(config: EndpointConfig) -> dict[str, Any]:
    found = run_consistency(config)
    assert found.failures == {}
    return found.lines[0]


def test_votes_as_mathematics(tmp_path: Path) -> None:
    """Four ways to write a half: four votes for one answer, or one for each."""
    with FakeOpenAI(halves) as fake:
        text, math = (line_of(config_of(fake, tmp_path, same=same)) for same in ("text", "math"))
    assert (text["why"], text["samples"], text["correct"]) == ("budget", 8, False)
    assert len(set(text["answers"])) == 4
    assert (math["why"], math["samples"], math["correct"]) == ("agreed", 4, True)
    assert math["answers"] == [HALVES[0]] * 4


def test_unified_as_mathematics() -> None:
    answers = [r"10\%", "10", None, r"\text{A}", "A", "no", "on", "1,2", "12"]
    assert unified(answers, "math") == [r"10\%", r"10\%", None, r"\text{A}", r"\text{A}", "no", "on", "1,2", "12"]
    assert unified(["0.5", r"\frac12"], "text") == ["0.5", r"\frac12"]


def test_the_recorded_answer_may_be_in_a_nested_column(tmp_path: Path) -> None:
    """A path was found in the data, and then nothing was judged."""
    with FakeOpenAI(lambda prompt, i: "so 0.5") as fake:
        config = config_of(fake, tmp_path, answer_column="extra_info.gold")
        row = {"prompt": "1/2?", "answer": "1/2", "extra_info": {"gold": "0.5"}}
        Path(config.data).write_text(json.dumps(row) + "\n")
        assert line_of(config)["correct"] is True


def test_the_summary_names_the_rule_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeOpenAI(halves) as fake:
        config = config_of(fake, tmp_path)
        command = ["consistency", config.data, "--base_url", fake.base_url, "--model", "tiny", "--out"]
        assert main([*command, str(tmp_path / "m.jsonl"), "--same", "math"]) == 0
        assert main([*command, str(tmp_path / "m.jsonl")]) == 1  # one file holds one way to vote
    captured = capsys.readouterr()
    said = " ".join(captured.out.split())
    assert "answers compared as math" in said
    assert "right 100.0% 1 of 1 by the recorded answer, compared as mathematics" in said
    assert "was begun with same='math', now it is 'text'" in captured.err


def test_without_math_verify_nothing_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maths.importlib.util, "find_spec", lambda name: None)
    with FakeOpenAI(halves) as fake:
        with pytest.raises(MissingExtraError, match=r"rollwise\[math\]"):
            run_consistency(config_of(fake, tmp_path, same="math"))
        assert fake.requests == []


REWARDS = """
def has_wanted(prompts, completions, wanted, **columns):
    return [float(one in text) for one, text in zip(wanted, completions)]

def chat(prompts, completions, **columns):
    return [float(one[0]["content"].startswith("so")) for one in completions]

def half(prompts, completions, **columns):
    return [0.5 for _ in completions]

def unsure(prompts, completions, **columns):
    return [None for _ in completions]

def lacking(prompts, completions, solution, **columns):
    return [1.0]

def broken(prompts, completions, **columns):
    raise ValueError("oh")
"""


@pytest.mark.parametrize(
    ("name", "options", "found"),
    [
        ("has_wanted", {}, {"correct": False, "reward": 0.0}),  # the first text with the answer says \frac{1}{2}
        ("half", {"solved_at": 0.5}, {"correct": True, "reward": 0.5}),
        ("half", {}, {"correct": False, "reward": 0.5}),
        ("half", {"reward_low": -1.0, "reward_high": 0.5}, {"correct": True, "reward": 0.5}),
        ("unsure", {}, {"reward": None}),
    ],
)
def test_a_reward_function_says_what_is_right(
    tmp_path: Path, name: str, options: dict[str, Any], found: dict[str, Any]
) -> None:
    file = tmp_path / "rewards.py"
    file.write_text(REWARDS)
    with FakeOpenAI(halves) as fake:
        line = line_of(config_of(fake, tmp_path, same="math", reward=f"{file}:{name}", **options))
    assert {key: line[key] for key in ("correct", "reward") if key in line} == found


def test_a_reward_in_the_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rewards.py"
    file.write_text(REWARDS)
    data = tmp_path / "chat.jsonl"
    data.write_text(json.dumps({"prompt": [{"role": "user", "content": "1/2?"}]}) + "\n")
    with FakeOpenAI(halves) as fake:
        command = ["consistency", str(data), "--base_url", fake.base_url, "--model", "tiny", "--out"]
        assert main([*command, str(tmp_path / "o.jsonl"), "--num_generations", "4", "--reward", f"{file}:chat"]) == 0
    said = "".join(capsys.readouterr().out.split())  # a long path is wrapped
    assert f"right100.0%1of1byreward{file}:chat" in said


def test_reward_functions_that_fail(tmp_path: Path) -> None:
    file = tmp_path / "rewards.py"
    file.write_text(REWARDS)
    with FakeOpenAI(halves) as fake:
        with pytest.raises(MissingColumnError, match="needs the column 'solution', but the data has id, prompt"):
            run_consistency(config_of(fake, tmp_path, reward=f"{file}:lacking"))
        with pytest.raises(ConfigError, match="has no 'none'"):
            run_consistency(config_of(fake, tmp_path, reward=f"{file}:none"))
        assert fake.requests == []
        config = config_of(fake, tmp_path, reward=f"{file}:broken")
        with pytest.raises(RewardError, match="oh"):
            run_consistency(config)
        asked = len(fake.requests)
        file.write_text(REWARDS.replace('raise ValueError("oh")', "return [1.0]"))
        with pytest.raises(ConfigError, match="was begun with reward_hash="):
            run_consistency(config)
        assert len(fake.requests) == asked


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"same": "maths"}, "same must be 'text' or 'math', got 'maths'"),
        ({"solved_at": 0.5}, "describe --reward; add it"),
        ({"reward": "r.py:f", "answer_column": "a"}, "both say what is right"),
        ({"reward": "r.py:f", "keep_texts": False}, "which keep_texts false does not keep"),
        ({"reward": "r.py:f", "solved_at": 2.0}, "solved_at must be in"),
    ],
)
def test_bad_options_are_named(option: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        EndpointConfig(**{"data": "x.jsonl", "base_url": "http://x/v1", "model": "m", **option})


def test_a_tasks_name_is_told_how_to_write_its_prompts_to_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with FakeOpenAI(halves) as fake:
        command = ["--base_url", fake.base_url, "--model", "tiny", "--num_generations", "4"]
        assert main(["consistency", "countdown", *command]) == 1
        error = capsys.readouterr().err
        assert "consistency takes a file of prompts, and 'countdown' is a task; write its prompts to a file:" in error
        assert error.count("\n") == 1
        advice = error.split("to a file: ")[1].strip().replace("python ", f"{sys.executable} ", 1)
        subprocess.run(advice, shell=True, check=True, cwd=tmp_path)
        assert main(["consistency", "countdown.jsonl", *command, "--num_prompts", "2"]) == 0
