"""Every `rollwise ...` that README and docs show is one: its command, its options and their number of values."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path

import pytest

import rollwise as rw
from rollwise.allocators import allocator_options
from rollwise.cli.commands import COMMANDS, SUBCOMMANDS, parser_of
from rollwise.cli.formatting import underscored
from rollwise.gates import gate_options
from rollwise.tasks import task_options

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NO_COMMAND = {"COMMAND", "..."}


def shown(page: Path) -> list[str]:
    """The commands in a page's blocks and in its text."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = [line.strip() for language, block in blocks if not language for line in block.splitlines()]
    inline = re.findall(r"`(rollwise [^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
    return [line for line in [*lines, *inline] if line.startswith("rollwise ")]


COMMAND_LINES = [(str(page.relative_to(ROOT)), line) for page in PAGES for line in shown(page)]


@cache
def options_of(name: str, subcommand: str | None) -> frozenset[str]:
    parser = parser_of(f"{name} {subcommand}" if subcommand else name)
    return frozenset(option for action in parser._actions for option in action.option_strings)


def known(option: str, options: frozenset[str]) -> bool:
    """Whether it is an option, or a key of one that holds several (`--curriculum_options.optimism`)."""
    parts = option.split(".")
    return any(".".join(parts[:n]) in options for n in range(len(parts), 0, -1))


def test_there_are_commands_to_read() -> None:
    assert len(COMMAND_LINES) > 100
    assert {name for name, _ in COMMAND_LINES} >= {"README.md", "docs/tutorial.md", "docs/howto/past-rollouts.md"}


def test_the_options_of_parts_that_the_help_of_train_shows_are_options() -> None:
    """Of the defaults, or where there is none, of what the pages show. `--curriculum_options.uniform` was refused."""
    parts = {
        "curriculum": rw.curricula.curriculum_options("recommended"),
        "gate": gate_options("mixed"),
        "allocator": allocator_options("knapsack"),
        "task": task_options("countdown"),
    }
    text = parser_of("train").format_help()
    for part, options in parts.items():
        (name,) = re.findall(rf"--{part}_options\.(\w+) ", text)
        assert name in options, part


@pytest.mark.parametrize(("page", "line"), COMMAND_LINES)
def test_a_command_that_is_shown_is_one(page: str, line: str) -> None:
    words = underscored(shlex.split(line, comments=True))[1:]
    if not words or words[0] in NO_COMMAND or words[0].startswith("-"):
        return
    name, rest = words[0], words[1:]
    assert name in COMMANDS, f"{page}: {line}"
    subcommand = None
    if name == "head" and rest and not rest[0].startswith("-"):
        subcommand, rest = rest[0], rest[1:]
        assert subcommand in SUBCOMMANDS, f"{page}: {line}"
    options = options_of(name, subcommand)
    for option in (word.partition("=")[0] for word in rest if re.match(r"--[a-z]", word)):
        assert known(option, options), f"{page}: {line}: {option}"
