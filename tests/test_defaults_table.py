"""The table of defaults in docs/decisions.md says what the constructors do, and is complete in their numbers."""

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import rollwise as rw
from rollwise.models.value_model import ValueModelJudge

PAGE = Path(__file__).parents[1] / "docs/decisions.md"
HEADING = "## Defaults against the papers"
NOT_METHODS = {"ValueModelJudge": ValueModelJudge}
NOT_IN_PAPERS = {
    "BOTS": {"temperature"},  # of a draw that is not the default
    "MoPPS": {"prior"},
    "ValueModelJudge": {"forward_batch"},
}


def rows() -> list[tuple[str, str, str, str]]:
    """Method, the paper's value, ours, whether they are the same."""
    section = PAGE.read_text().split(HEADING)[1].split("\n## ")[0]
    found, method = [], ""
    for line in section.splitlines():
        if line.startswith("|") and not line.startswith(("| method", "|---")):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            method = cells[0].strip("` ") or method
            found.append((method, cells[1], cells[2].strip("` "), cells[3]))
    return found


def kind_of(method: str) -> Any:
    name = method.split("(")[0]
    return NOT_METHODS.get(name) or getattr(rw, name)


def defaults_of(method: str) -> dict[str, Any]:
    kind = kind_of(method)
    defaults = {name: option.default for name, option in inspect.signature(kind).parameters.items()}
    preset = re.search(r'preset="(.*)"', method)
    return defaults | dict(kind.presets[preset[1]]) if preset else defaults


def options_of(text: str) -> dict[str, Any]:
    call = ast.parse(f"f({text})", mode="eval").body
    assert isinstance(call, ast.Call)
    return {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}


def numbers_of(value: Any) -> list[float]:
    values = value if isinstance(value, tuple) else (value,)
    return [float(one) for one in values if isinstance(one, int | float) and not isinstance(one, bool)]


def test_the_table_is_read() -> None:
    assert len(rows()) > 35
    assert {"PrioritizedReplay", "BOTS", "SEC", "FrontierReplay", "METIS", "PCL", "ADCL"} <= {row[0] for row in rows()}


@pytest.mark.parametrize(("method", "paper", "ours", "same"), rows())
def test_the_column_of_ours_is_what_the_constructors_do(method: str, paper: str, ours: str, same: str) -> None:
    defaults = defaults_of(method)
    for name, value in options_of(ours).items():
        assert defaults[name] == value, f"{method}: {name}={defaults[name]!r}, the table says {value!r}"


@pytest.mark.parametrize(("method", "paper", "ours", "same"), [row for row in rows() if row[3].startswith("yes")])
def test_what_is_called_the_same_is_in_the_papers_column(method: str, paper: str, ours: str, same: str) -> None:
    said = {float(number) / (100 if percent else 1) for number, percent in re.findall(r"(\d[\d.e-]*\d|\d)( %)?", paper)}
    for value in options_of(ours).values():
        assert set(numbers_of(value)) <= said, (value, paper)


@pytest.mark.parametrize("method", sorted({row[0] for row in rows()}))
def test_every_number_of_a_constructor_is_in_the_table(method: str) -> None:
    listed = {name for row in rows() if kind_of(row[0]) is kind_of(method) for name in options_of(row[2])}
    numbers = {name for name, value in defaults_of(method).items() if numbers_of(value)}
    assert numbers <= listed | NOT_IN_PAPERS.get(method.split("(")[0], set()) | {"expire_after", "seed"}


def test_no_method_of_the_table_has_rails() -> None:
    for kind in {kind_of(row[0]) for row in rows()} - set(NOT_METHODS.values()):
        assert kind.default_rails is None, kind
