"""Commands where packages of an extra are not installed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOG = str(ROOT / "tests/simulation/data/uniform-run")
EXTRAS = ("accelerate", "datasets", "peft", "sklearn", "torch", "transformers", "trl")


def rollwise(folder: Path, *arguments: str, lacking: tuple[str, ...] = EXTRAS) -> subprocess.CompletedProcess[str]:
    code = (
        "import sys; sys.modules.update(dict.fromkeys({!r})); from rollwise.cli.main import main; sys.exit(main({!r}))"
    )
    command = [sys.executable, "-c", code.format(lacking, list(arguments))]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_simulate_needs_neither_torch_nor_scikit_learn(tmp_path: Path) -> None:
    shown = rollwise(tmp_path, "simulate", "--template")
    assert shown.returncode == 0, shown.stderr
    (tmp_path / "my.yaml").write_text("num_prompts: 20\nsteps: 2\nprompts_per_step: 4\nseeds: 1\njobs: 1\n")
    done = rollwise(tmp_path, "simulate", "my.yaml", "--out", "made")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "made/results.csv").exists()


def test_a_shadow_leaves_out_the_text_judge_without_scikit_learn(tmp_path: Path) -> None:
    done = rollwise(tmp_path, "simulate", "--replay", LOG, "--shadow", "--out", "made")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "made/shadow.json").read_text())
    assert 'pip install "rollwise[text]"' in found["left_out"]["judge text"]
    assert "MoPPS" in found["estimators"]


def test_a_method_that_needs_an_extra_is_named_before_anything_is_run(tmp_path: Path) -> None:
    method = "{curriculum: bots, curriculum_options: {implicit: 'judge:text'}}"
    (tmp_path / "my.yaml").write_text(
        f"num_prompts: 20\nsteps: 2\nmethods: {{uniform: {{curriculum: uniform}}, mine: {method}}}\n"
    )
    done = rollwise(tmp_path, "simulate", "my.yaml", "--out", "made")
    assert done.returncode == 1
    assert "method 'mine': the text judge needs sklearn" in done.stderr
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "command", [("train", "--task", "countdown"), ("compare", str(ROOT / "examples/compare/countdown-revisit.yaml"))]
)
def test_a_command_that_trains_names_the_extra(tmp_path: Path, command: tuple[str, ...]) -> None:
    done = rollwise(tmp_path, *command, "--out", "made")
    assert done.returncode == 1
    assert done.stderr.startswith("rollwise: the command needs t")  # torch, transformers or trl
    assert done.stderr.endswith(': pip install "rollwise[train,report]"\n')
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "command", [("train", "--task", "countdown"), ("compare", str(ROOT / "examples/compare/countdown-revisit.yaml"))]
)
def test_what_draws_the_page_at_the_end_is_looked_for_before_the_training(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    """It was named after hours, by a run that then seemed to have failed."""
    done = rollwise(tmp_path, *command, "--out", "made", lacking=("matplotlib",))
    assert done.returncode == 1
    assert done.stderr.endswith('needs matplotlib, which is not installed: pip install "rollwise[report]"\n')
    assert not (tmp_path / "made").exists()


def test_a_command_says_what_its_options_need(tmp_path: Path) -> None:
    done = rollwise(tmp_path, "simulate", "--template", lacking=("jsonargparse",))
    assert done.returncode == 1
    assert done.stderr.startswith('rollwise: the command needs jsonargparse: pip install "rollwise[report]"')


def test_an_adapter_names_an_extra_that_installs_peft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the embedded policy is warm-started, which took minutes on a new machine."""
    monkeypatch.setenv("ROLLWISE_CACHE", str(tmp_path / "cache"))
    done = rollwise(tmp_path, "train", "--task", "countdown", "--peft.r", "8", "--out", "made", lacking=("peft",))
    assert done.returncode == 1
    assert done.stderr.endswith('rollwise: training a LoRA adapter (--peft) needs peft; pip install "rollwise[peft]"\n')
    assert not list(tmp_path.iterdir())


def test_every_extra_that_a_message_names_is_there() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    sources = (path.read_text() for path in (ROOT / "src/rollwise").rglob("*.py"))
    named = {
        extra for text in sources for names in re.findall(r"rollwise\[([a-z,-]+)\]", text) for extra in names.split(",")
    }
    assert {"report", "text", "train"} <= named <= set(extras)
