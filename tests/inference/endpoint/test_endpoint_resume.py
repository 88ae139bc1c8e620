"""What is drawn is kept by sample: through `kill -9`, a prompt that fails for good, and files of the version before."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openai")

from fake_openai import FakeOpenAI

from rollwise.errors import ConfigError, StateFileError
from rollwise.inference.endpoint.asking import seed_of
from rollwise.inference.endpoint.config import EndpointConfig
from rollwise.inference.endpoint.run import run_consistency
from rollwise.inference.endpoint.samples import SampleFile


def disagreeing(prompt: str, i: int) -> str:
    return f"so {i % 3}"


def data_of(folder: Path, *prompts: str) -> Path:
    data = folder / "data.jsonl"
    data.write_text("".join(json.dumps({"id": prompt, "prompt": prompt}) + "\n" for prompt in prompts))
    return data


def config_of(fake: FakeOpenAI, data: Path, **options: Any) -> EndpointConfig:
    given = {"num_generations": 12, "out": str(data.parent / "out.jsonl"), **options}
    return EndpointConfig(data=str(data), base_url=fake.base_url, model="tiny", **given)


def samples_of(path: Path) -> dict[tuple[str, int], dict[str, Any]]:
    lines = [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return {(line["id"], line["sample"]): line for line in lines if "sample" in line}


def test_after_kill_no_finished_sample_is_drawn_again(tmp_path: Path) -> None:
    prompts = [f"p{i}" for i in range(8)]
    data, out = data_of(tmp_path, *prompts), tmp_path / "out.jsonl"
    kept = tmp_path / "out.jsonl.samples.jsonl"

    def latency(number: int) -> float:
        return 0.05 + 0.1 * (number % 5)

    with FakeOpenAI(disagreeing, latency=latency, by_seed=True) as fake:
        command = [sys.executable, "-m", "rollwise", "consistency", str(data), "--base_url", fake.base_url]
        options = [
            "--model",
            "tiny",
            "--num_generations",
            "12",
            "--seed",
            "0",
            "--concurrency",
            "12",
            "--out",
            str(out),
        ]
        process = subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while fake.finished.total() < 30 and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        there = samples_of(kept)
        assert 20 <= len(there) < 12 * 8
        before = len(fake.requests)
        lines = run_consistency(config_of(fake, data, seed=0, concurrency=12)).lines
        again = fake.requests[before:]
    asked = [
        (prompt, number - seed_of(0, prompt)) for prompt, body in again
        for number in range(body["seed"], body["seed"] + body["n"])
    ]  # fmt: skip
    assert len(set(asked)) == len(asked)
    assert not set(asked) & set(there)
    assert set(asked) | set(there) == {(prompt, at) for prompt in prompts for at in range(12)}
    for line in lines:
        first = seed_of(0, line["id"])
        assert line["texts"] == [disagreeing(line["id"], first + at) for at in range(12)]


def test_a_prompt_that_fails_for_good_keeps_its_samples(tmp_path: Path) -> None:
    data = data_of(tmp_path, "a", "b")
    with FakeOpenAI(disagreeing, faults={"b": ["fine", 400]}) as fake:
        config = config_of(fake, data, rule="esc", window=4, num_generations=8)
        assert list(run_consistency(config).failures) == ["b"]
        assert fake.drawn["b"] == 4
        found = run_consistency(config)
        assert found.failures == {}
    assert fake.drawn["b"] == 8
    line = next(line for line in found.lines if line["id"] == "b")
    assert (line["samples"], line["requests"], line["unused"]) == (8, 2, 0)
    assert line["prompt_tokens"] == 2  # both starts' requests
    assert line["completion_tokens"] == 8 * len("so 0")
    assert found.asked == 1


def test_what_else_was_asked_for_is_kept_where_a_prompt_fails_for_good(tmp_path: Path) -> None:
    """One request of four is refused while the others are answered: they were closed, and drawn anew."""
    data = data_of(tmp_path, "a", "b")
    with FakeOpenAI(disagreeing, faults={"b": [400]}, latency=lambda i: 0.3) as fake:
        config = config_of(fake, data, rule="full", num_generations=4, n=1)
        assert list(run_consistency(config).failures) == ["b"]
        assert (fake.finished["b"], fake.closed) == (3, [])
        assert not run_consistency(config).failures
    assert fake.drawn["b"] == 4


def test_answers_alone_are_kept_where_texts_are_not_wanted(tmp_path: Path) -> None:
    data = data_of(tmp_path, "a")
    with FakeOpenAI(disagreeing, faults={"a": ["fine", 400]}) as fake:
        config = config_of(fake, data, rule="esc", window=4, num_generations=8, keep_texts=False)
        run_consistency(config)
        (line,) = run_consistency(config).lines
    assert "so 0" not in (tmp_path / "out.jsonl.samples.jsonl").read_text()
    assert line["answers"] == [str(i % 3) for i in range(8)]


def test_a_request_cut_by_a_kill_is_counted_as_far_as_it_came(tmp_path: Path) -> None:
    """Of 4 samples 2 had come: their request has no count. It read the prompt, and wrote the chunks that came."""
    data = data_of(tmp_path, "abc")
    with FakeOpenAI(disagreeing) as fake:
        config = config_of(fake, data, num_generations=8, rule="full")
        kept = SampleFile(Path(f"{config.out}.samples.jsonl"))
        for at in (0, 2):
            line = {"id": "abc", "sample": at, "request": 0, "answer": "1", "truncated": False, "chunks": 4}
            kept.append({**line, "text": "so 1"})
        kept.close()
        options = {**config.deciding(), "data_hash": "", "answer_hash": ""}
        with pytest.raises(StateFileError, match=r"has no readable out.jsonl.options.json"):
            run_consistency(config)
        Path(f"{config.out}.options.json").write_text(json.dumps(options))
        with pytest.raises(ConfigError, match="was begun with data_hash='', now it is '(.*)'") as caught:
            run_consistency(config)
        options["data_hash"] = str(caught.value).split("now it is '")[1].split("'")[0]
        Path(f"{config.out}.options.json").write_text(json.dumps(options))
        (line,) = run_consistency(config).lines
    assert sorted(body["n"] for body in fake.bodies("abc")) == [1, 5]
    assert (line["requests"], line["uncounted"]) == (3, 1)
    assert line["prompt_tokens"] == 3 * 3
    assert line["completion_tokens"] == 6 * 4 + 2 * 4


def test_after_a_refusal_other_options_begin_anew(tmp_path: Path) -> None:
    """A wrong --model draws nothing, so the file holds nothing that could be mixed."""
    data = data_of(tmp_path, "a", "b")
    with FakeOpenAI(disagreeing, befall=lambda prompt, before: 404 if before < 2 else "fine") as fake:
        with pytest.raises(ConfigError, match="look at --base_url, --model"):
            run_consistency(config_of(fake, data, rule="full", seed=1))
        lines = run_consistency(config_of(fake, data, rule="full")).lines
        assert [line["requests"] for line in lines] == [1, 1]  # those that were refused are not of this file
        with pytest.raises(ConfigError, match="was begun with seed=None, now it is 1"):
            run_consistency(config_of(fake, data, rule="full", seed=1))


def test_a_stop_text_that_is_left_out_is_another_option(tmp_path: Path) -> None:
    data = data_of(tmp_path, "a", "b")
    with FakeOpenAI(disagreeing) as fake:
        run_consistency(config_of(fake, data, rule="full", stop="</answer>", num_prompts=1))
        with pytest.raises(ConfigError, match=r"was begun with stop='</answer>', now it is None; its answers can't be"):
            run_consistency(config_of(fake, data, rule="full"))


def test_a_torn_sample_is_cut_off_and_a_damaged_one_named(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    file = SampleFile(path)
    file.append({"id": "a", "sample": 0, "request": 0, "answer": "4", "truncated": False, "chunks": 2})
    file.close()
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"id": "a", "sam')
    assert list(SampleFile(path).read()["a"].samples) == [0]
    assert path.read_bytes() == whole
    path.write_bytes(b'{"id": "a"}\n' + whole)
    with pytest.raises(StateFileError, match=r"s.jsonl', line 1 is damaged; delete that line"):
        SampleFile(path).read()


def test_a_file_of_the_version_before_is_gone_on_with(tmp_path: Path) -> None:
    """As `rollwise consistency` wrote it when it kept no samples, with the options that it had."""
    data, out = data_of(tmp_path, "a", "b"), tmp_path / "out.jsonl"
    with FakeOpenAI(disagreeing) as fake:
        hash_ = json.loads(_options_of(fake, data))["data_hash"]
        old = {
            "data": str(data), "model": "tiny", "rule": "adaptive", "k": 12, "window": None, "threshold": None,
            "answer": None, "route": "chat", "system": None, "temperature": 0.7, "top_p": 1.0, "max_tokens": 1024,
            "seed": None, "extra": {}, "id": "id", "answer_column": None, "keep_texts": True, "data_hash": hash_,
            "answer_hash": "",
        }  # fmt: skip
        line = {
            "id": "a", "answers": ["4"] * 4, "chosen": "4", "why": "agreed", "samples": 4, "requests": 4,
            "prompt_tokens": 4, "completion_tokens": 16, "truncated": 0, "texts": ["so 4"] * 4,
        }  # fmt: skip
        out.write_text(json.dumps(line) + "\n")
        Path(f"{out}.options.json").write_text(json.dumps(old))
        found = run_consistency(config_of(fake, data))
        assert found.lines[0] == line
        assert found.asked == 1
        assert set(fake.drawn) == {"b"}
        Path(f"{out}.options.json").write_text(json.dumps({**old, "rule": "esc"}))  # the default then
        with pytest.raises(ConfigError, match="was begun with rule='esc', now it is 'adaptive'; its answers can't be"):
            run_consistency(config_of(fake, data))


def _options_of(fake: FakeOpenAI, data: Path) -> str:
    other = data.parent / "other.jsonl"
    run_consistency(config_of(fake, data, out=str(other), num_prompts=1))
    fake.drawn.clear()
    return Path(f"{other}.options.json").read_text()
