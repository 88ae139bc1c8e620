"""No command writes a control character of its data to the terminal, and nothing but `terminal.py` writes to one."""

import ast
import io
import json
import logging
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import pytest
import yaml
from fake_openai import FakeOpenAI
from lighter import without_figures

from rollwise.cli import main
from rollwise.terminal import guard_output, make_console, printable, say
from rollwise.watching.history import History

SOURCE = Path(__file__).parents[2] / "src/rollwise"
HOSTILE = "\x1b]0;x\x07\x1b[2J\x9b31m\u202e\x7f"
"""Sets a title, clears a screen, colours (as one C1 character), and turns the direction of writing."""

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
REWARDS = """
def longer(prompts, completions, least, **columns):
    return [float(len(c) > k) for c, k in zip(completions, least)]


def none(prompts, completions, **columns):
    return [0.0 for _ in completions]
"""
Run = Callable[..., str]


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy of random weights that writes control characters, prompts that hold some, and rewards."""
    from rollwise.models import EmbeddedConfig
    from rollwise.models.embedded import ALPHABET, build_policy

    folder = tmp_path_factory.mktemp("toy") / HOSTILE
    folder.mkdir()
    config = EmbeddedConfig(hidden_size=32, num_layers=1, num_heads=2, intermediate_size=32, max_length=96)
    alphabet = ALPHABET + "".join(sorted(set(HOSTILE) - set(ALPHABET)))
    model, tokenizer = build_policy(config, alphabet=alphabet)
    model.save_pretrained(folder / "policy")
    tokenizer.save_pretrained(folder / "policy")
    rows = [
        {"id": f"{i}{HOSTILE}", "prompt": f"{i}{HOSTILE}=", "least": i % 9, "kind": f"k{i % 2}{HOSTILE}", "answer": "1"}
        for i in range(36)
    ]
    for name, some in (("data", rows[:24]), ("others", rows[24:])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some))
    (folder / "rewards.py").write_text(REWARDS)
    return folder


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command as typed, and gives what it wrote, which holds no control character."""

    def run(*arguments: object, status: int = 0) -> str:
        capsys.readouterr()
        assert main([str(argument) for argument in arguments]) == status
        said = "".join(capsys.readouterr())
        assert said.strip()
        assert CONTROL.findall(said) == []
        return said

    return run


def rolled(toy: Path, out: Path, reward: str = "longer", data: str = "data") -> list[object]:
    """Options that `profile`, `rollouts` and `bestof` share."""
    return [
        toy / f"{data}.jsonl", "--model", toy / "policy", "--reward", f"{toy / 'rewards.py'}:{reward}",
        "--max_completion_length", 8, "--out", out,
    ]  # fmt: skip


@pytest.mark.parametrize("reward", ["longer", "none"])
def test_profile(reward: str, command: Run, toy: Path, tmp_path: Path) -> None:
    said = command(
        "profile", *rolled(toy, tmp_path / HOSTILE, reward), "--category", "kind", "--answer_column", "answer"
    )
    assert "k0]0;x[2J31m" in said
    assert ("is the final answer of a rollout" in said or "stands within" in said) == (reward == "none")


@pytest.mark.usefixtures("page_alone")
def test_rollouts_heads_and_best_of_n(command: Run, toy: Path, tmp_path: Path) -> None:
    fitted, out, head = (tmp_path / name for name in (f"f{HOSTILE}", HOSTILE, f"{HOSTILE}.safetensors"))
    assert "]0;x[2J31m: config.yaml" in command("rollouts", *rolled(toy, fitted))
    command("rollouts", *rolled(toy, out, data="others"))
    command("head", "fit", fitted, "--out", head)
    command("head", "score", out, "--head", head)
    command("head", "export", head, "--rollouts", out, "--out", tmp_path / f"s{HOSTILE}", "--resize")
    command("head", "evaluate", out, "--head", head, "--num_prompts", 6, "--num_generations", 2)
    command("bestof", *rolled(toy, tmp_path / f"b{HOSTILE}"), "--select", "majority", "--num_generations", 2)


def test_consistency(command: Run, toy: Path, tmp_path: Path) -> None:
    with FakeOpenAI(lambda prompt, before: f"{HOSTILE} {before}", faults={f"3{HOSTILE}=": [400] * 9}) as fake:
        said = command(
            "consistency", toy / "data.jsonl", "--base_url", fake.base_url, "--model", HOSTILE, "--num_generations", 3,
            "--out", tmp_path / f"{HOSTILE}.jsonl", status=1,
        )  # fmt: skip
    assert "1 prompt failed" in said


@pytest.mark.slow
@pytest.mark.usefixtures("page_alone")
def test_train_watch_and_report(command: Run, toy: Path, tmp_path: Path) -> None:
    out = tmp_path / HOSTILE
    with pytest.MonkeyPatch.context() as patch:
        without_figures(patch.setattr)  # `report` draws them
        command(
            "train", "--model", toy / "policy", "--task_options.style", "compact", "--task_options.levels", "[1]",
            "--steps", 1, "--eval_prompts", 4, "--num_generations_eval", 2, "--prompts_per_step", 2,
            "--num_generations", 2, "--num_prompts", 20, "--out", out,
        )  # fmt: skip
        drawn = (out / "report.html").stat().st_mtime_ns
        assert "is complete: 1 steps" in " ".join(command("train", "--resume", out).split())
        assert (out / "report.html").stat().st_mtime_ns == drawn  # it is there already
    group = {"step": 1, "lane": HOSTILE, "category": f"k{HOSTILE}", "purpose": "train", "rewards": [1.0, 0.0]}
    with (out / "rollouts.jsonl").open("a") as file:
        file.write(json.dumps({**group, "prompt": HOSTILE, "prompt_id": HOSTILE, "texts": [HOSTILE]}) + "\n")
    assert "[2J" in command("watch", out, "--once")
    assert "report.html" in command("report", out)


def test_simulate(command: Run, tmp_path: Path) -> None:
    methods = {HOSTILE: {"curriculum": "uniform"}, f"b{HOSTILE}": {"curriculum": "bots"}}
    sizes = {"num_prompts": 60, "steps": 2, "prompts_per_step": 4, "num_generations": 2, "seeds": 1, "jobs": 1}
    path = tmp_path / "my.yaml"
    path.write_text(yaml.safe_dump({**sizes, "baseline": HOSTILE, "methods": methods}))
    said = command("simulate", path, "--out", tmp_path / HOSTILE)
    assert said.count("]0;x[2J31m") > 3


def test_a_process_of_its_own(toy: Path, tmp_path: Path) -> None:
    """matplotlib warns of each control character that it has no glyph for, and Python writes the warning."""
    path = tmp_path / "my.yaml"
    sizes = {"num_prompts": 60, "steps": 2, "prompts_per_step": 4, "num_generations": 2, "seeds": 1, "jobs": 2}
    path.write_text(yaml.safe_dump({**sizes, "baseline": HOSTILE, "methods": {HOSTILE: {"curriculum": "uniform"}}}))
    command = [sys.executable, "-m", "rollwise", "simulate", path, "--out", tmp_path / HOSTILE]
    done = subprocess.run(command, capture_output=True, timeout=300, check=True)
    assert CONTROL.findall((done.stdout + done.stderr).decode()) == []


@pytest.mark.slow
@pytest.mark.usefixtures("forked_workers", "page_alone")
def test_compare(command: Run, toy: Path, tmp_path: Path) -> None:
    base = {
        "task_options": {"style": "compact", "levels": [1]}, "model": str(toy / "policy"), "steps": 1,
        "eval_prompts": 4, "num_generations_eval": 2, "prompts_per_step": 2, "num_generations": 2, "num_prompts": 20,
    }  # fmt: skip
    plan = {"name": HOSTILE, "seeds": [0], "baseline": HOSTILE, "base": base, "methods": {HOSTILE: {}}}
    path, out = tmp_path / "my.yaml", tmp_path / HOSTILE
    path.write_text(yaml.safe_dump(plan))
    said = command("compare", path, "--out", out)
    assert "done: ]0;x[2J31m seed 0" in said
    for log in (out / "logs").iterdir():
        assert CONTROL.findall(log.read_text()) == []


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["report", HOSTILE], 1),
        (["report", "a", HOSTILE], 1),
        (["watch", HOSTILE, "--once"], 1),
        (["train", "--resume", HOSTILE], 1),
        (["curricula", HOSTILE], 1),
        (["gates", HOSTILE], 1),
        (["tasks", HOSTILE], 1),
        (["simulate", "--replay", HOSTILE], 1),
        (["profile", HOSTILE], 1),
        (["head", "fit", HOSTILE, "--out", "x"], 1),
    ],
)
def test_errors(arguments: list[str], status: int, command: Run) -> None:
    command(*arguments, status=status)


def test_lists(command: Run) -> None:
    for listing in ("curricula", "gates", "tasks"):
        command(listing)


def test_an_option_that_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(yaml.safe_dump({"steps": HOSTILE, HOSTILE: 3}))
    with pytest.raises(SystemExit) as stop:
        main(["train", "--config", str(path)])
    assert stop.value.code == 2
    said = "".join(capsys.readouterr())
    assert said.startswith(f"rollwise: {path}, line ")
    assert said.count("\n") == 1
    assert CONTROL.findall(said) == []


def test_the_log_and_tracebacks() -> None:
    code = """
import logging, sys, warnings
from rollwise.cli import main
main(["tasks"])
logging.getLogger("rollwise.x").warning("category %s", sys.argv[1])
warnings.warn("glyph " + sys.argv[1])
raise OSError(sys.argv[1])
"""
    done = subprocess.run([sys.executable, "-c", code, HOSTILE], capture_output=True, timeout=120)
    said = done.stderr.decode()
    assert "WARNING rollwise.x: category ]0;x[2J31m" in said
    assert "UserWarning: glyph ]0;x[2J31m" in said
    assert "OSError: ]0;x[2J31m" in said
    assert CONTROL.findall(said) == []


def test_on_a_terminal_styles_stay_and_the_table_is_straight() -> None:
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

    def table(name: str) -> Any:
        made = Table("name", "number")
        made.add_row(Text(name, style="red"), "1")
        return made

    def drawn(name: str) -> str:
        file = io.StringIO()
        options: dict[str, Any] = {"force_terminal": True, "color_system": "standard", "legacy_windows": False}
        console = make_console(file=file, width=60, **options, _environ={"TERM": "xterm"})
        console.print(table(name))
        console.print(name, markup=False)
        with Live(table(name), console=console, auto_refresh=False):
            console.print("beside it")
        return file.getvalue()

    assert "\x1b[31m" in drawn("a")
    assert drawn(f"a{HOSTILE}") == drawn(f"a{CONTROL.sub('', HOSTILE)}")


def test_printable(capsys: pytest.CaptureFixture[str]) -> None:
    every = "".join(map(chr, range(0x110000)))
    assert CONTROL.findall(printable(every)) == []
    kept = "a\tb\n \u00a0é中🙂\u200d"
    assert printable(kept) == kept
    say(HOSTILE + "\ud800\n")
    say(HOSTILE + "\n", error=True)
    assert capsys.readouterr() == ("]0;x[2J31m?\n", "]0;x[2J31m\n")


def test_what_a_library_writes_itself_is_not_written_again() -> None:
    """huggingface_hub has a handler of its own and passes its records on to the root's."""
    handlers, logging.root.handlers = logging.root.handlers, []
    ours, theirs, library = io.StringIO(), io.StringIO(), logging.getLogger("a_library")
    try:
        with redirect_stderr(ours):
            guard_output()
        library.addHandler(logging.StreamHandler(theirs))
        logging.getLogger("a_library.http").warning("retrying")
        logging.getLogger("rollwise.models").warning("a note")
    finally:
        logging.root.handlers = handlers
        library.handlers.clear()
    assert (ours.getvalue(), theirs.getvalue()) == ("WARNING rollwise.models: a note\n", "retrying\n")


def test_watch_keeps_its_own_way() -> None:
    history = History()
    history.add_group({"step": 1, "rewards": [1.0], "category": HOSTILE, "prompt": HOSTILE, "texts": [HOSTILE]})
    assert [CONTROL.findall(text) for text in (*history.categories, history.groups[0].text)] == [[], []]


def writers(path: Path) -> list[str]:
    """Where a file writes to the terminal by itself: `Console(...)`, `print(...)`, `sys.stdout.write(...)`."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in ("print", "Console", "rich.print", "warnings.warn") or re.match(r"sys\.std\w+\.write", called):
                found.append(f"{path.relative_to(SOURCE)}:{node.lineno} {called}")
    return found


def test_nothing_else_writes_to_the_terminal() -> None:
    files = [path for path in SOURCE.rglob("*.py") if path.name not in ("terminal.py", "moved.py")]
    assert [place for path in files for place in writers(path)] == []
