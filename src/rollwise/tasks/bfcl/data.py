"""The multi-turn items of the Berkeley Function Calling Leaderboard, read from the package `bfcl-eval`, not copied."""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args

from rollwise.errors import ConfigError
from rollwise.options import check_name

VERSION = "2026.3.23"
Category = Literal["base", "miss_func", "miss_param", "long_context", "composite"]
CATEGORIES: tuple[Category, ...] = get_args(Category)
_FILES = "BFCL_v4_multi_turn_{}.json"
# The package keeps the items of the fifth category, but no longer scores it.
_RETIRED = ("composite",)


@dataclass(frozen=True)
class Call:
    """One call of a reference: positional and named arguments are literals."""

    function: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True)
class Item:
    """One conversation.

    Attributes:
        id: the package's, such as `multi_turn_base_17`.
        category: one of `CATEGORIES`.
        scenario: its number in the category. The same number in another one is the same conversation, varied.
        requests: T user turns; "" where the user hands over withheld functions.
        reference: the T turns' calls; none where nothing can be done yet.
        apis: names of the simulated services.
        config: what state they begin in.
        withheld: functions that are not described before a turn, by its number from 0.
    """

    id: str
    category: str
    scenario: int
    requests: tuple[str, ...]
    reference: tuple[tuple[Call, ...], ...]
    apis: tuple[str, ...]
    config: Mapping[str, Any]
    withheld: Mapping[int, tuple[str, ...]]

    @property
    def long(self) -> bool:
        """Whether the services are to be filled with distracting content."""
        return self.category in ("long_context", "composite")


@functools.cache
def package_folder() -> Path:
    """Where the package lies.

    Raises:
        ConfigError: it is not installed, or another version is.
    """
    install = f"pip install --no-deps bfcl-eval=={VERSION} mpmath"
    try:
        found = metadata.version("bfcl-eval")
    except metadata.PackageNotFoundError:
        raise ConfigError(f"the BFCL tasks need the package bfcl-eval, which is not installed; {install}") from None
    if found != VERSION:
        raise ConfigError(
            f"the BFCL tasks need bfcl-eval {VERSION}, found {found}: other versions have other items; {install}"
        )
    spec = importlib.util.find_spec("bfcl_eval")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(f"bfcl-eval {found} is installed, but its module bfcl_eval can't be found; {install}")
    return Path(next(iter(spec.submodule_search_locations)))


def package_module(name: str) -> ModuleType:
    """A module of the package, such as `constants.executable_backend_config`.

    Raises:
        ConfigError: the package, or what this module needs, is not installed.
    """
    package_folder()
    try:
        return importlib.import_module(f"bfcl_eval.{name}")
    except ModuleNotFoundError as error:
        raise ConfigError(f"bfcl_eval.{name} needs {error.name}, which is not installed; install it") from error


@functools.cache
def items_of(category: str) -> dict[str, Item]:
    """A category's items by id. Those whose reference can't be read as Python calls are left out (16 of composite).

    Raises:
        ConfigError: no such category, or no such package.
    """
    check_name("BFCL category", category, CATEGORIES)
    data = package_folder() / "data"
    questions, answers = data, data / "possible_answer"
    if category in _RETIRED:
        questions, answers = data / "unused_datasets/question", data / "unused_datasets/possible_answer"
    name = _FILES.format(category)
    reference = {row["id"]: row["ground_truth"] for row in _json_lines(answers / name)}
    items = {}
    for row in _json_lines(questions / name):
        calls = [[parse_call(text) for text in turn] for turn in reference[row["id"]]]
        if all(call is not None for turn in calls for call in turn):
            items[row["id"]] = _item(category, row, calls)
    return items


def item(item_id: str) -> Item:
    """The item with this id.

    Raises:
        ConfigError: there is none, or no such package.
    """
    category = item_id.removeprefix("multi_turn_").rpartition("_")[0]
    found = items_of(category).get(item_id) if category in CATEGORIES else None
    if found is None:
        raise ConfigError(f"bfcl-eval {VERSION} has no readable multi-turn item {item_id!r}")
    return found


@functools.cache
def documentation(api: str) -> dict[str, dict[str, Any]]:
    """The package's documentation of a service's functions, by name."""
    files = package_module("constants.executable_backend_config").MULTI_TURN_FUNC_DOC_FILE_MAPPING
    return {doc["name"]: doc for doc in _json_lines(package_folder() / "data/multi_turn_func_doc" / files[api])}


def parse_call(text: str) -> Call | None:
    """A reference's call, read without being executed; None if it is not one call with literal arguments.

    >>> parse_call("mv('a.txt', destination='temp')")
    Call(function='mv', args=('a.txt',), kwargs={'destination': 'temp'})
    >>> parse_call("f(g())") is None
    True
    """
    try:
        node = ast.parse(text.strip(), mode="eval").body
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            return None
        args = tuple(ast.literal_eval(argument) for argument in node.args)
        named = {word.arg: ast.literal_eval(word.value) for word in node.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):  # the latter two: nested too deeply
        return None
    kwargs = {name: value for name, value in named.items() if name is not None}
    return Call(node.func.id, args, kwargs) if len(kwargs) == len(node.keywords) else None


def _item(category: str, row: dict[str, Any], calls: list[list[Any]]) -> Item:
    return Item(
        id=row["id"],
        category=category,
        scenario=int(row["id"].rpartition("_")[2]),
        requests=tuple("\n".join(message["content"] for message in turn) for turn in row["question"]),
        reference=tuple(tuple(turn) for turn in calls),
        apis=tuple(row["involved_classes"]),
        config=row["initial_config"],
        withheld={int(turn): tuple(names) for turn, names in row.get("missed_function", {}).items()},
    )


def _json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
