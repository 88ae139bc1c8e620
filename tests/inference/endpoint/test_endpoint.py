"""Self-consistency over a real local HTTP server that speaks the OpenAI routes, with faults; no network."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openai")

from fake_openai import FakeOpenAI, Script

from rollwise.cli import main
from rollwise.errors import ConfigError, RewardError
from rollwise.inference.endpoint.answers import Extractor
from rollwise.inference.endpoint.config import EndpointConfig
from rollwise.inference.endpoint.run import run_consistency
from rollwise.inference.endpoint.summary import summarise

ANSWERS = {
    "sure": "7777777777",  # agrees in its first window
    "late": "1234555555",  # in its second
    "never": "1212121212",
}


def scripted(prompt: str, i: int) -> str:
    digits = ANSWERS[prompt]
    return f"I think that \\boxed{{{digits[i % len(digits)]}}}."


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "math.jsonl"
    rows = [{"id": prompt, "prompt": prompt, "answer": "7"} for prompt in ANSWERS]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def config_of(fake: FakeOpenAI, data: Path, **options: Any) -> EndpointConfig:
    given = {
        "rule": "esc",
        "num_generations": 10,
        "window": 5,
        "concurrency": 10,
        "out": str(data.parent / "out.jsonl"),
        **options,
    }
    return EndpointConfig(data=str(data), base_url=fake.base_url, model="tiny", **given)


def lines_of(config: EndpointConfig) -> dict[str, dict[str, Any]]:
    path, lines, failures, *_ = run_consistency(config)
    assert failures == {}
    written = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(lines, key=lambda line: line["id"]) == sorted(written, key=lambda line: line["id"])
    return {line["id"]: line for line in lines}


def test_columns_rows_and_wording_of_ones_own_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "own.jsonl"
    rows = [{"problem": name, "answer": "7", "level": level} for level, name in enumerate(ANSWERS)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with FakeOpenAI(lambda prompt, i: "so 7") as fake:
        command = ["consistency", str(data), "--base_url", fake.base_url, "--model", "m"]
        assert main(command) == 1
        assert "--prompt_column problem names it" in capsys.readouterr().err
        options = ["--prompt_column", "problem", "--where", "level > 0", "--template", "{prompt}, level {level}"]
        assert main([*command, *options, "--out", str(tmp_path / "out.jsonl")]) == 0
    assert {prompt for prompt, _ in fake.requests} == {"late, level 1", "never, level 2"}


def test_esc_stops_where_a_window_agrees(data: Path) -> None:
    """sure: 5 samples of 31 letters, 1 request; late: [12345][55555], 5 six times; never: all 10, 1 came up first."""
    with FakeOpenAI(scripted) as fake:
        config = config_of(fake, data)
        lines = lines_of(config)
    assert {id_: (line["samples"], line["why"], line["chosen"], line["requests"]) for id_, line in lines.items()} == {
        "sure": (5, "agreed", "7", 1),
        "late": (10, "agreed", "5", 2),
        "never": (10, "budget", "1", 2),
    }
    sure = lines["sure"]
    assert sure["answers"] == ["7"] * 5
    assert sure["texts"] == ["I think that \\boxed{7}."] * 5
    assert (sure["prompt_tokens"], sure["completion_tokens"]) == (4, 5 * len("I think that \\boxed{7}."))
    assert [lines[id_]["correct"] for id_ in ANSWERS] == [True, False, False]
    body = fake.bodies("sure")[0]
    assert body["n"] == 5
    assert body["messages"] == [{"role": "user", "content": "sure"}]
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("tiny", 0.7, 1024)
    assert "seed" not in body
    assert summarise(list(lines.values()), config) == {
        "prompts": 3, "samples": 25, "samples_mean": 25 / 3, "unused": 0, "saved": pytest.approx(5 / 30), "requests": 5,
        "uncounted": 0, "prompts_counted": 3, "prompt_tokens": 4 + 2 * 4 + 2 * 5, "completion_tokens": 25 * 23,
        # All 30 in 3 requests: 13 + 30 * 23 tokens, against 22 + 25 * 23.
        "full": {"requests": 3, "prompt_tokens": 13, "completion_tokens": 690, "money": None}, "money": None,
        "cost_ratio": pytest.approx((22 + 575) / (13 + 690)), "verdict": None,
        "why": {"agreed": 2, "budget": 1}, "unanswered": 0, "judged": 3, "correct": 1,
        "judged_by": "the recorded answer, compared as text",
    }  # fmt: skip


def test_adaptive_asks_for_what_it_cannot_stop_without(data: Path) -> None:
    """It draws as many as one at a time, in fewer requests.

    sure: 4 alike. late: 1 2 3 4, so at least 2 against 1 ... 5 more for six against one: 10. never: 1 2 1 2, then at 2
    against 2 seven more would be needed: past 10.
    """
    with FakeOpenAI(scripted) as fake:
        lines = lines_of(config_of(fake, data, rule="adaptive", window=None))
    assert (lines["sure"]["samples"], lines["sure"]["requests"], lines["sure"]["why"]) == (4, 1, "agreed")
    assert (lines["late"]["samples"], lines["late"]["why"], lines["late"]["chosen"]) == (10, "agreed", "5")
    assert (lines["never"]["samples"], lines["never"]["why"]) == (10, "budget")
    assert {prompt: [body["n"] for body in fake.bodies(prompt)] for prompt in ANSWERS} == {
        "sure": [4], "late": [4, 5, 1], "never": [4, 6],
    }  # fmt: skip


def test_full_draws_all_in_one_request(data: Path) -> None:
    with FakeOpenAI(scripted, count_tokens=False) as fake:
        config = config_of(fake, data, rule="full", window=None, keep_texts=False)
        lines = lines_of(config)
    assert [line["samples"] for line in lines.values()] == [10, 10, 10]
    assert len(fake.requests) == 3
    assert "texts" not in lines["sure"]
    assert lines["sure"]["completion_tokens"] is None
    assert summarise(list(lines.values()), config)["completion_tokens"] is None


def test_faults_are_retried(data: Path) -> None:
    faults: dict[str, list[int | str]] = {"sure": [429, 500], "late": ["drop"], "never": [503]}
    with FakeOpenAI(scripted, faults=faults) as fake:
        lines = lines_of(config_of(fake, data))
    assert [lines[id_]["samples"] for id_ in ANSWERS] == [5, 10, 10]
    assert len(fake.requests) == 5 + 4
    assert fake.drawn == {"sure": 5, "late": 10, "never": 10}  # nothing is drawn twice


def test_a_prompt_that_fails_is_left_for_the_next_time(data: Path) -> None:
    with FakeOpenAI(scripted, faults={"late": [400]}) as fake:
        config = config_of(fake, data, concurrency=5)
        path, lines, failures, *_ = run_consistency(config)
        assert [line["id"] for line in lines] == ["sure", "never"]
        assert list(failures) == ["late"]
        assert "fault 400" in failures["late"]
        before = path.read_bytes()
        again = lines_of(config)  # the fault is gone
    assert path.read_bytes().startswith(before)
    assert again["late"]["samples"] == 10
    assert fake.drawn == {"sure": 5, "late": 10, "never": 10}


def test_it_goes_on_where_it_was_killed(data: Path) -> None:
    with FakeOpenAI(scripted) as fake:
        config = config_of(fake, data, num_prompts=1)
        assert list(lines_of(config)) == ["sure"]
        path = Path(str(config.out))
        with open(path, "ab") as file:
            file.write(b'{"id": "late", "answ')  # torn
        lines = lines_of(config_of(fake, data))
        assert list(lines) == ["sure", "late", "never"]
        assert fake.drawn["sure"] == 5
        sent = len(fake.requests)
        assert lines_of(config_of(fake, data)) == lines  # all is there: nothing is asked
        assert len(fake.requests) == sent
        with pytest.raises(
            ConfigError, match=r"was begun with num_generations=10, now it is 20; its answers can't be mixed"
        ):
            run_consistency(config_of(fake, data, num_generations=20))
        data.write_text(json.dumps({"prompt": "other"}) + "\n")
        with pytest.raises(ConfigError, match="was begun with data_hash="):
            run_consistency(config_of(fake, data))


def test_an_endpoint_that_ignores_n_is_asked_again(data: Path) -> None:
    with FakeOpenAI(scripted, ignore_n=True) as fake:
        lines = lines_of(config_of(fake, data))
    assert (lines["sure"]["samples"], lines["sure"]["requests"]) == (5, 5)
    assert [body["n"] for body in fake.bodies("sure")] == [5, 4, 3, 2, 1]
    assert lines["sure"]["prompt_tokens"] == 5 * 4  # each request reads the prompt
    assert {body["n"] for body in fake.bodies("late")[-5:]} == {1}  # by then it is known


def test_the_route_of_plain_completions_and_what_is_sent_along(data: Path) -> None:
    with FakeOpenAI(scripted) as fake:
        lines = lines_of(config_of(fake, data, route="completions", seed=3, extra={"top_k": 20}))
        bodies = fake.bodies("late")
    assert lines["late"]["chosen"] == "5"
    assert bodies[0]["prompt"] == "late"
    assert bodies[0]["top_k"] == 20
    # vLLM draws a request's samples with its seed, the next one, and so on; no sample repeats another.
    assert bodies[1]["seed"] == bodies[0]["seed"] + 5
    assert len({body["seed"] for _, body in fake.requests}) == len(fake.requests)


def test_system_message_key_and_chat_prompts(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "secret")
    data.write_text(json.dumps({"id": "a", "prompt": [{"role": "user", "content": "sure"}]}) + "\n")
    with FakeOpenAI(scripted) as fake:
        lines = lines_of(config_of(fake, data, system="Be brief.", api_key_env="MY_KEY"))
        assert fake.bodies("sure")[0]["messages"] == [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "sure"},
        ]
        assert fake.headers[0]["authorization"] == "Bearer secret"
        assert "correct" not in lines["a"]
        with pytest.raises(ValueError, match="prompt 'a' is chat messages; --route completions takes text"):
            run_consistency(config_of(fake, data, route="completions", out=str(data.parent / "b.jsonl")))


@pytest.mark.parametrize(
    ("script", "chosen", "answers"),
    [
        (lambda prompt, i: "the sum is 1,005" if i else "<answer>1005</answer>", "1005", ["1005"] * 5),
        (lambda prompt, i: ["4", "4.0", "so 4."][i % 3], "4", ["4"] * 5),  # one answer, as it came up first
        (lambda prompt, i: "it may be 3 or 4 ...", None, [None] * 5),  # cut off: no answer
        (lambda prompt, i: "x" * 99, None, [None] * 5),  # nothing that looks like an answer
    ],
)
def test_answers(data: Path, script: Script, chosen: str | None, answers: list[str | None]) -> None:
    with FakeOpenAI(script) as fake:
        line = lines_of(config_of(fake, data, num_prompts=1, num_generations=5))["sure"]
    assert line["chosen"] == chosen
    assert line["answers"] == answers
    assert line["why"] == ("agreed" if chosen else "budget")
    assert line["truncated"] == (5 if line["texts"][0].endswith("...") else 0)


def test_a_users_function_finds_answers(data: Path) -> None:
    file = data.parent / "answers.py"
    file.write_text("def word(text):\n    return text.split()[0]\ndef bad(text):\n    return [text]\n")
    with FakeOpenAI(scripted) as fake:
        line = lines_of(config_of(fake, data, num_prompts=1, answer_function=f"{file}:word"))["sure"]
        assert line["answers"] == ["I"] * 5
        with pytest.raises(RewardError, match="must give an answer as text, or None, got"):
            run_consistency(config_of(fake, data, answer_function=f"{file}:bad", out=str(data.parent / "b.jsonl")))
        file.write_text(file.read_text() + "\n")
        with pytest.raises(ConfigError, match="was begun with answer_hash"):
            run_consistency(config_of(fake, data, num_prompts=1, answer_function=f"{file}:word"))
    with pytest.raises(ConfigError, match=r"--answer_function: function file 'absent.py' does not exist"):
        Extractor("absent.py:f")
    with pytest.raises(ConfigError, match=r"--answer_function: .* has no 'none'"):
        Extractor(f"{file}:none")
    with pytest.raises(RewardError, match="raised IndexError"):
        Extractor(f"{file}:word")("")
    file.write_text("def number(text):\n    return float(text) if text.isdigit() else float('nan')\n")
    number = Extractor(f"{file}:number")
    assert [number("4"), number("four")] == ["4.0", None]  # NaN won the vote
    file.write_text("import sys\n\n\ndef leave(text):\n    sys.exit(text)\n")
    with pytest.raises(RewardError, match=r"raised SystemExit\('4'\) for the completion '4'"):
        Extractor(f"{file}:leave")("4")


def test_an_endpoint_that_refuses_ends_it_in_a_line(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "consistency",
        str(data),
        "--model",
        "tiny",
        "--out",
        str(data.parent / "o.jsonl"),
        "--num_generations",
        "5",
    ]
    with FakeOpenAI(scripted, faults={"sure": [401]}) as fake:
        assert main([*command, "--base_url", fake.base_url]) == 1
        assert "refuses: Error code: 401" in capsys.readouterr().err
        assert main([*command, "--base_url", fake.base_url + "/wrong"]) == 1
        error = capsys.readouterr().err
        assert "refuses: Error code: 404" in error
        assert error.count("\n") == 1
        gone = fake.base_url
    assert main([*command, "--base_url", gone, "--retries", "0", "--out", str(data.parent / "new.jsonl")]) == 1
    error = capsys.readouterr().err
    assert f"nothing but failures from {gone}" in error
    assert "Traceback" not in error


def test_as_a_command(data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(data.parent)
    with FakeOpenAI(scripted) as fake:
        command = ["consistency", str(data), "--base_url", fake.base_url, "--model", "tiny", "--num_generations", "10"]
        assert main([*command, "--rule", "adaptive", "--window", "2"]) == 0
        out = capsys.readouterr().out
        assert "consistency/math-adaptive.jsonl" in out
        assert "1 of 3 by the recorded answer, compared as text" in " ".join(out.split())
        assert main([*command, "--rule", "esc", "--threshold", "0.9"]) == 1
        assert "rule 'esc' has no option 'threshold'; it has window" in capsys.readouterr().err
    assert len((data.parent / "consistency/math-adaptive.jsonl").read_text().splitlines()) == 3


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["consistency", "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for part in ("DATA", "--rule", "--window", "--answer_function", "examples:", "goes on where it stopped"):
        assert part in text


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"model": ""}, "model is missing; for example"),
        ({"base_url": "localhost:8000"}, "base_url must begin with http"),
        ({"route": "chats"}, "route must be 'chat' or 'completions', got 'chats'"),
        ({"system": "x", "route": "completions"}, "a system message goes with --route chat"),
        ({"temperature": 0.0}, "temperature must be a number in"),
        ({"num_generations": 0}, "num_generations must be a whole number >= 1"),
        ({"concurrency": 0}, "concurrency must be a whole number >= 1"),
        ({"ahead": -1}, "ahead must be a whole number >= 0"),
        ({"price_in": 1.0}, "price_in and price_out go together"),
        ({"price_in": 1.0, "price_out": -1.0}, "price_out must be a number >= 0 or None, got -1.0"),
        ({"rule": "best"}, "rule must be 'adaptive', 'esc' or 'full', got 'best'"),
        (
            {"rule": "esc", "num_generations": 4, "window": 5},
            "window must be at most num_generations, else no window is ever whole: got window=5 and num_generations=4",
        ),
        ({"rule": "esc", "num_generations": 10, "window": 11}, "got window=11 and num_generations=10"),
    ],
)
def test_bad_options_are_named(option: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        EndpointConfig(**{"data": "x.jsonl", "base_url": "http://x/v1", "model": "m", **option})


def test_it_needs_neither_torch_nor_transformers(data: Path) -> None:
    with FakeOpenAI(scripted) as fake:
        code = f"""
            import sys
            for name in ("torch", "transformers", "trl", "datasets", "accelerate", "yaml"):
                sys.modules[name] = None
            from rollwise.inference.endpoint.run import run_consistency
            from rollwise.inference.endpoint.config import EndpointConfig
            path, lines, failures, *_ = run_consistency(EndpointConfig(
                data={str(data)!r}, base_url={fake.base_url!r}, model="tiny", num_generations=5,
                out={str(data) + ".out"!r}))
            assert len(lines) == 3 and not failures
        """
        subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
