"""Every name in the last column of docs/papers.md exists, and each equation, table and figure of a paper has a row."""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import rollwise as rw
from rollwise.cli.commands import COMMANDS
from rollwise.evaluation.run_measures import PHASE_MEASURES
from rollwise.training.config import TrainConfig

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/papers.md").read_text(encoding="utf-8")
NOT_NAMES = {"inf", r"\boxed{}"}
NUMBERED = {
    "METIS": {"equation": 10, "Table": 7, "Figure": 10},
    "BOTS": {"equation": 11, "Table": 13, "Figure": 20},
    "Prioritized replay": {"Figure": 3},
    "SEC": {"equation": 6, "Table": 2, "Figure": 4},
    "Frontier-Curriculum RLOO and ZIP-RC-Lite": {"Table": 8, "Figure": 8},
}
"""How many of each the papers have."""


def rows() -> list[tuple[str, list[str]]]:
    """Paper and cells of each row."""
    found, paper = [], ""
    for line in PAGE.splitlines():
        if line.startswith("## "):
            paper = line[3:]
        elif line.startswith("| ") and not line.startswith("| in the paper"):
            found.append((paper, [cell.strip() for cell in line.strip("|").split("|")]))
    return found


@cache
def sources(folder: str) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / folder).rglob("*.py")))


def found(name: str) -> Any:
    """The object of a dotted name: `rw.BOTS`, `rollwise.evaluation.pass_at_k`, also a method of a class."""
    parts = name.replace("rw.", "rollwise.", 1).split(".") if name.startswith("rw.") else name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            value: Any = import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        for part in parts[n:]:
            value = getattr(value, part)
        return value
    raise AssertionError(f"{name} is nowhere")


def check_call(code: str) -> None:
    """`rw.BOTS(target=0.5)`: a method is built with these options, of anything else they must be parameters."""
    call = ast.parse(code, mode="eval").body
    if not isinstance(call, ast.Call):
        assert found(code) is not None
        return
    kind = found(ast.unparse(call.func))
    options = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    if kind is rw.make_curriculum or (inspect.isclass(kind) and issubclass(kind, rw.Curriculum)):
        kind(*map(ast.literal_eval, call.args), **options)
    else:
        assert options.keys() <= inspect.signature(kind).parameters.keys(), code


def check_name(code: str) -> None:
    """A column, metric or value stands in the sources in quotes; an option is one of `rollwise train`."""
    name = code.removeprefix("--").split(".")[0].strip('"').removesuffix("/NAME")
    known = name in TrainConfig.__dataclass_fields__ or hasattr(rw.Curriculum, name) or hasattr(rw.Judge, name)
    known = known or name in PHASE_MEASURES  # put together from the phases
    assert known or f'"{name}"' in sources("src/rollwise"), code


def check(code: str) -> None:
    if code in NOT_NAMES:
        return
    if code.startswith("rollwise "):
        assert code.split()[1] in COMMANDS  # its options: tests/test_docs_commands.py
    elif code.startswith(("rw.", "rollwise.")):
        check_call(code)
    elif re.fullmatch(r"[\w./-]+\.(py|yaml|md)", code):
        assert (ROOT / code).exists(), code
    else:
        check_name(code)


@pytest.mark.parametrize("row", [pytest.param(cells, id=f"{paper[:8]} {cells[0]}") for paper, cells in rows()])
def test_what_a_row_names_exists(row: list[str]) -> None:
    assert len(row) == 3
    where = row[2]
    for code in re.findall(r"`([^`]+)`", where):
        check(code)
    for title in re.findall(r"\*([^*]+)\*", where):
        assert f'"{title}"' in sources("src/rollwise/reports"), title


@pytest.mark.parametrize(
    "wrong", ["rw.Bots", "rw.BOTS(rho=1)", "rw.SEC(choice='best')", "examples/none.yaml", "judge/no"]
)
def test_a_name_that_does_not_exist_is_found(wrong: str) -> None:
    with pytest.raises((AssertionError, AttributeError, rw.ConfigError, TypeError)):
        check(wrong)


def numbers(cell: str, kind: str) -> set[int]:
    """`Figures 9 to 20, Tables 8, 9`: the numbers of one kind."""
    said: set[int] = set()
    for part in re.findall(rf"{kind}s? ((?:\d+(?:, | to )?)+)", cell):
        for one in part.strip(", ").split(", "):
            first, _, last = one.partition(" to ")
            said |= set(range(int(first), int(last or first) + 1))
    return said


@pytest.mark.parametrize("paper", NUMBERED)
def test_every_equation_table_and_figure_has_a_row(paper: str) -> None:
    cells = [row[0] for name, row in rows() if name == paper]
    for kind, most in NUMBERED[paper].items():
        said = set().union(*(numbers(cell, kind) for cell in cells))
        assert said == set(range(1, most + 1)), f"{paper}: {kind}"
