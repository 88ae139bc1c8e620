"""The simulated services of a BFCL item: the package's own classes, called by name from a list of what is allowed.

The package runs a policy's calls with `eval`. Here nothing that a policy writes is evaluated: a call arrives as a name
and JSON values; the name must be one of the functions documented for the item's services, the values' names its
parameters. The services keep all state in memory: none of them opens a file, a socket or a process.
"""

from __future__ import annotations

import copy
import decimal
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rollwise.tasks.bfcl.data import Call, Item, documentation, package_module
from rollwise.tasks.tool_conversation import ToolError

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "float": (int, float),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "tuple": (list,),
    "dict": (dict,),
}
# Arithmetic can cost far more than it takes to write down (9**9999999, "x" * 10**9) and stop a run for hours. So where
# there is arithmetic the types are held to, and numbers are bounded everywhere. Elsewhere a wrong type is the service's
# own affair: one of the package's references has one.
_ARITHMETIC = "MathAPI"
_SMALL = {"exponent": 1000, "precision": 1000, "decimal_places": 1000}
_LARGEST = 10**15


class Services:
    """An item's services, fresh.

    Attributes:
        instances: the package's objects, by service; what its checker compares.
    """

    def __init__(self, item: Item) -> None:
        config = package_module("constants.executable_backend_config")
        self.instances: dict[str, Any] = {}
        self._docs: dict[str, tuple[str, dict[str, Any]]] = {}
        for api in item.apis:
            module = package_module(config.CLASS_FILE_PATH_MAPPING[api].removeprefix("bfcl_eval."))
            self.instances[api] = getattr(module, api)()
            if api not in config.STATELESS_CLASSES:
                self.instances[api]._load_scenario(copy.deepcopy(item.config.get(api, {})), long_context=item.long)
            self._docs |= {name: (api, doc) for name, doc in documentation(api).items()}

    def run(self, function: Any, arguments: Any) -> str:
        """Carry out a policy's call; what the service answers, in the package's own form.

        Raises:
            ToolError: no such function here, arguments that don't fit its documentation, or the service gave up.
        """
        if not isinstance(function, str) or function not in self._docs:
            raise ToolError(f"there is no function {function!r:.80}")
        api, doc = self._docs[function]
        try:
            check_arguments(doc, arguments, typed=api == _ARITHMETIC)
        except RecursionError:
            raise ToolError(f"the arguments of {function} are nested too deeply") from None
        try:
            return self._dispatch(function, (), arguments)
        except Exception as error:  # a simulator may fail in any way on what a policy makes up
            raise ToolError(f"{function} failed: {error}") from error

    def run_reference(self, call: Call) -> str:
        """Carry out a reference's call, as the package's checker does: a failure is an answer too."""
        try:
            return self._dispatch(call.function, call.args, call.kwargs)
        except Exception as error:
            return error_text(error)

    def _dispatch(self, function: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        api, _ = self._docs[function]
        with _numeric_contexts_kept():
            answer = getattr(self.instances[api], function)(*copy.deepcopy(args), **copy.deepcopy(dict(kwargs)))
        return answer_text(answer)


def check_arguments(doc: Mapping[str, Any], arguments: Any, *, typed: bool) -> None:
    """Raise `ToolError` unless `arguments` are what a function's documentation asks for.

    Numbers must be within 1e15, and exponents and precisions within 1000.

    Args:
        doc: the function's documentation.
        arguments: what the policy gave.
        typed: whether the values must be of the types that the documentation names; integers pass for a float.
    """
    if not isinstance(arguments, Mapping):
        raise ToolError(f"arguments must be an object with a value for each parameter, got {arguments!r:.80}")
    known, required = doc["parameters"]["properties"], doc["parameters"].get("required", [])
    missing = [name for name in required if name not in arguments]
    if missing:
        raise ToolError(f"{doc['name']} needs a value for {missing[0]!r}")
    for name, value in arguments.items():
        if name not in known:
            raise ToolError(f"{doc['name']} has no parameter {name!r:.80}; it has: {', '.join(known) or 'none'}")
        if typed and not _is_of(known[name], value):
            raise ToolError(f"{name} must be of type {known[name]['type']}, got {value!r:.80}")
        _check_numbers(name, value, _SMALL.get(name, _LARGEST))


def _is_of(parameter: Mapping[str, Any], value: Any) -> bool:
    kinds = _TYPES.get(parameter["type"], (object,))
    inner = parameter.get("items") if isinstance(value, list) else None
    whole = isinstance(value, kinds) and not (isinstance(value, bool) and bool not in kinds)
    return whole and (inner is None or all(_is_of(inner, part) for part in value))


def _check_numbers(name: str, value: Any, most: int) -> None:
    if isinstance(value, int | float) and not abs(value) <= most:
        raise ToolError(f"{name} must be a number within {most:g}, got {value!r:.80}")
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for part in inner:
        _check_numbers(name, part, most)


def answer_text(answer: Any) -> str:
    """A service's answer as the package writes it: JSON for an object that allows it, else Python's text.

    >>> answer_text({"ok": True}), answer_text("as it is"), answer_text(None)
    ('{"ok": true}', 'as it is', 'None')
    """
    if isinstance(answer, str):
        return answer
    if isinstance(answer, dict):
        try:
            return json.dumps(answer)
        except (TypeError, ValueError):
            pass
    return str(answer)


def error_text(error: Exception) -> str:
    """A failed call's result, as the package's checker writes it, so that two failures compare as they do there."""
    return f"Error during execution: {error}"


def failed(answer: str) -> bool:
    """Whether a call's result is a failure of ours or an error that the service answers.

    >>> failed('{"error": "no such file"}'), failed('{"result": 3}')
    (True, False)
    """
    return answer.startswith(error_text(Exception(""))) or '"error"' in answer


@contextmanager
def _numeric_contexts_kept() -> Iterator[None]:
    """The MathAPI sets the precision of `decimal` and `mpmath` for the whole process; undo that."""
    mpmath = sys.modules.get("mpmath")
    before = mpmath.mp.dps if mpmath else None
    with decimal.localcontext():
        try:
            yield
        finally:
            if mpmath:
                mpmath.mp.dps = before
