"""A program whose functions are called by tests that run in another sandbox."""

from __future__ import annotations

import json
import sys
import types
from typing import IO, Any

from .lines import write_line
from .plain import from_plain, to_plain


def serve(settings: dict[str, Any], requests: IO[str], replies: IO[str]) -> None:
    """Load the program of the first line, name its functions and classes, and answer calls until the input ends."""
    sources = json.loads(requests.readline())
    module = types.ModuleType("program")
    sys.modules["program"] = module
    try:
        for source in sources:
            exec(compile(source, "program.py", "exec"), module.__dict__)
    except BaseException as error:
        write_line(replies, ["raised", type(error).__name__, str(error)[:200]])
        return
    write_line(replies, ["names", [name for name, value in vars(module).items() if callable(value)]])
    objects: dict[int, Any] = {}
    for line in requests:
        write_line(replies, _answer(json.loads(line), module, objects))


def _answer(request: list[Any], module: types.ModuleType, objects: dict[int, Any]) -> list[Any]:
    def number(value: Any) -> int:
        objects[id(value)] = value
        return id(value)

    def plain(value: Any) -> Any:
        return from_plain(value, objects.__getitem__)

    what, target, *rest = request
    try:
        if what == "call":
            args, kwargs = plain(rest[0]), plain(rest[1])
            function = _named(module, target) if isinstance(target, str) else objects[target]
            return ["value", to_plain(function(*args, **kwargs), number)]
        if what == "set":
            setattr(objects[target], rest[0], plain(rest[1]))
            return ["value", None]
        return ["value", to_plain(getattr(objects[target], rest[0]), number)]
    except BaseException as error:
        return ["raised", type(error).__name__, str(error)[:200]]


def _named(module: types.ModuleType, name: str) -> Any:
    """The program's function, or a method of its class `Solution`, as LeetCode has it."""
    if hasattr(module, name) or not hasattr(module, "Solution"):
        return getattr(module, name)
    return getattr(module.Solution(), name)
