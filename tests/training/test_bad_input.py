"""Data, rewards and options that can't be used: `rollwise train` says so in one line and writes nothing."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from own import maths_rows, tiny_model

from rollwise.cli import main

REWARDS = """
import numpy as np

def good(completions, **_):
    return [float("1" in c) for c in completions]

def numpy(completions, **_):
    return np.array([float("1" in c) for c in completions], dtype=np.float32)

async def later(completions, **_):
    return [float("1" in c) for c in completions]

def raises(completions, **_):
    raise ValueError("no such thing")

def nothing(completions, **_):
    return None

def nan(completions, **_):
    return [float("nan")] * len(completions)

def few(completions, **_):
    return [1.0]

def text(completions, **_):
    return ["good"] * len(completions)

def graded(completions, answer, **_):
    return [float(a in c) for c, a in zip(completions, answer)]
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    tiny_model(folder / "tiny", window=64)
    return folder / "tiny"


def rows(n: int = 40) -> list[dict[str, Any]]:
    return [{"prompt": f"{row['problem'][:20]} {i}", "answer": row["answer"]} for i, row in enumerate(maths_rows(n))]


def train(folder: Path, model: Path, data: str, *more: str) -> int:
    """`rollwise train` in `folder`, and its exit status."""
    (folder / "r.py").write_text(REWARDS)
    arguments = [
        *("train", "--data", data, "--model", str(model), "--curriculum", "uniform", "--steps", "1"),
        *("--prompts_per_step", "4", "--num_generations", "2", "--eval_prompts", "0", "--max_completion_length", "2"),
        *("--out", "run", *([] if "--reward" in more else ["--reward", "r.py:good"]), *more),
    ]
    try:
        return main(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)


def lines(some: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in some)


CASES: dict[str, tuple[str, Callable[[], str], list[str], str]] = {
    "missing file": ("none.jsonl", str, [], "does not exist"),
    "empty file": ("a.jsonl", str, [], "has no rows"),
    "csv without rows": ("a.csv", lambda: "prompt,answer\n", [], "has no rows"),
    "missing column": ("a.jsonl", lambda: lines([{"q": "1"}] * 9), [], "no column 'prompt'"),
    "misspelt column": ("a.jsonl", lambda: lines(rows()), ["--prompt_column", "promt"], "did you mean 'prompt'?"),
    "nested column": ("a.jsonl", lambda: lines([{"e": {"q": "1"}}]), ["--prompt_column", "e.p"], "no column 'e.p'"),
    "empty prompt": (
        "a.jsonl",
        lambda: lines([*rows(), {"prompt": " "}]),
        [],
        "row 41: the prompt is empty; write it, or",
    ),
    "empty column": ("a.jsonl", lambda: lines([{"prompt": None}] * 9), [], "row 1: a prompt must be text"),
    "text and chat": (
        "a.jsonl",
        lambda: lines([*rows(), {"prompt": [{"role": "user", "content": "1"}]}]),
        [],
        "row 1 has a prompt of text, and ",
    ),
    "no chat template": (
        "a.jsonl",
        lambda: lines([{"prompt": [{"role": "user", "content": f"{i}"}]} for i in range(40)]),
        [],
        "no chat template",
    ),
    "image": (
        "a.jsonl",
        lambda: lines([{**row, "image": "a.png"} for row in rows()]),
        [],
        "row 1: column 'image' holds",
    ),
    "image in a message": (
        "a.jsonl",
        lambda: lines([{"prompt": [{"role": "user", "content": [{"type": "image"}]}]}] * 9),
        [],
        "row 1: the content of a chat message must be text, got {'type': 'image'}",
    ),
    "message without content": (
        "a.jsonl",
        lambda: lines([{"prompt": [{"role": "user"}]}] * 9),
        [],
        "row 1: the content of a chat message must be text, got None",
    ),
    "prompt beyond the window": ("a.jsonl", lambda: lines([*rows(), {"prompt": "9" * 90}]), [], "window of 64"),
    "one prompt repeated": ("a.jsonl", lambda: lines([{"prompt": "1+1="}] * 3), [], "a step needs 4 distinct prompts"),
    "repeated ids": ("a.jsonl", lambda: lines([{"prompt": f"{i}", "id": "a"} for i in range(9)]), [], "id 'a' is in"),
    "fewer rows than a batch": ("a.jsonl", lambda: lines(rows(3)), [], "a step needs 4 distinct prompts"),
    "solution, not answer": (
        "a.jsonl",
        lambda: lines([{"prompt": row["prompt"], "solution": row["answer"]} for row in rows()]),
        ["--reward", "r.py:graded"],
        "--answer_column solution",
    ),
    "reward file missing": ("a.jsonl", lambda: lines(rows()), ["--reward", "x.py:f"], "'x.py' does not exist"),
    "reward that raises": ("a.jsonl", lambda: lines(rows()), ["--reward", "r.py:raises"], "no such thing"),
    "reward None": ("a.jsonl", lambda: lines(rows()), ["--reward", "r.py:nothing"], "nothing"),
    "reward NaN": ("a.jsonl", lambda: lines(rows()), ["--reward", "r.py:nan"], "nan"),
    "too few rewards": ("a.jsonl", lambda: lines(rows()), ["--reward", "r.py:few"], "few"),
    "reward text": ("a.jsonl", lambda: lines(rows()), ["--reward", "r.py:text"], "text"),
    "hub id": ("nobody/nothing:train", str, [], "nobody/nothing"),
    "tracker": ("a.jsonl", lambda: lines(rows()), ["--report_to", "wandb"], "report_to 'wandb' is not installed"),
    "unknown key": ("a.jsonl", lambda: lines(rows()), ["--config", "my.yaml"], "my.yaml, line 2: train has no option"),
    "plugin": ("a.jsonl", lambda: lines(rows()), ["--curriculum", "broken.py:Mine"], "no_such_module"),
}


@pytest.mark.parametrize("case", CASES)
def test_one_line_and_nothing_written(
    case: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name, text, more, reason = CASES[case]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    if case != "missing file" and "/" not in name:
        (tmp_path / name).write_text(text())
    (tmp_path / "my.yaml").write_text("seed: 1\nstepz: 2\n")
    (tmp_path / "broken.py").write_text("import no_such_module\n")
    before = sorted(tmp_path.rglob("*"))
    assert train(tmp_path, model, name, *more) in (1, 2)
    out, err = capsys.readouterr()
    last = err.splitlines()[-1]
    assert last.startswith("rollwise: ")
    assert reason in last
    assert out == ""
    assert "Traceback" not in err
    assert [path for path in sorted(tmp_path.rglob("*")) if path not in before and path.name != "r.py"] == []


@pytest.mark.parametrize("command", ["train", "dry run", "profile"])
def test_a_template_that_refuses_the_messages_is_said_before_anything_is_written(
    command: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(model, "gemma")
    refusal = "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    Path("gemma/chat_template.jinja").write_text(f"{refusal}{{{{ messages[0].content }}}}")
    Path("a.jsonl").write_text(lines(rows()))
    if command == "profile":
        options = ["--system", "Be brief.", "--reward", "exact", "--model", "gemma", "--out", "run"]
        assert main(["profile", "a.jsonl", *options]) == 1
    else:
        more = ["--dry_run", "true"] if command == "dry run" else []
        assert train(tmp_path, Path("gemma"), "a.jsonl", "--system", "Be brief.", *more) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("rollwise: the model's chat template can't take [{'role': 'system'")
    assert "System role not supported; give other messages, or leave out --system" in last
    assert not list(Path("run").glob("*.jsonl"))


@pytest.mark.parametrize("reward", ["numpy", "later"])
def test_numpy_and_asynchronous_rewards_train_and_a_csv_may_have_a_bom(
    reward: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "".join(f"{row['prompt']},{row['answer']}\n" for row in rows())
    (tmp_path / "a.csv").write_text(f"prompt,answer\n{text}", encoding="utf-8-sig")
    assert train(tmp_path, model, "a.csv", "--reward", f"r.py:{reward}") == 0
    assert len((tmp_path / "run/rollouts.jsonl").read_text().splitlines()) == 4


def test_repeated_prompts_train_with_a_warning(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_text(lines([{"prompt": "1+1="}] * 40))
    assert train(tmp_path, model, "a.jsonl") == 0
    assert "all 40 prompts are the same text; is --prompt_column right?" in caplog.text


def test_the_same_command_trains_once_the_reward_is_mended(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.jsonl").write_text(lines(rows()))
    assert train(tmp_path, model, "a.jsonl", "--reward", "r.py:raises") == 1
    monkeypatch.setitem(globals(), "REWARDS", REWARDS.replace('raise ValueError("no such thing")', "return [1.0] * 8"))
    assert train(tmp_path, model, "a.jsonl", "--reward", "r.py:raises") == 0


@pytest.mark.parametrize("name", ["metrics.jsonl", "rollouts.jsonl", "evaluations.jsonl", "prompts.jsonl"])
def test_a_log_that_somebody_kept_is_no_place_for_a_new_run(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run begins with empty logs: a `rollouts.jsonl` that was kept for a replay was emptied without a word."""
    (tmp_path / name).write_text('{"step": 1, "rewards": [1]}\n')
    assert main(["train", "--task", "reversal", "--out", str(tmp_path)]) == 1
    assert f"there is no config.yaml, but '{tmp_path / name}' is there" in capsys.readouterr().err
    assert (tmp_path / name).read_text() == '{"step": 1, "rewards": [1]}\n'
    assert [path.name for path in tmp_path.iterdir()] == [name]
