"""Tests of a program that runs in another sandbox. Expected values never leave this process."""

from __future__ import annotations

import ast
import builtins
import functools
import json
import math
import signal
from collections.abc import Callable
from typing import IO, Any

from .lines import write_line
from .remote import Program, ProgramEnded


class Verdicts:
    """Writes a line for each test: whether it passed, and a reason."""

    def __init__(self, to: IO[str]) -> None:
        self._to, self.said, self.ended = to, 0, False

    def say(self, passed: bool, reason: str = "") -> None:
        self.said += 1
        write_line(self._to, [passed, reason])

    def count(self, test: Callable[[], Any]) -> None:
        """Run an assertion's expression. A false value or an exception fails it, and the next assertion runs."""

        def counted() -> None:
            passed = bool(test())
            self.say(passed, "" if passed else "a test failed")

        self.run(counted)

    def run(self, work: Callable[[], Any]) -> None:
        """Do what tests do, and go on. An exception is a test that failed, also where the program has ended.

        So the rest of a loop is counted: its assertions are, as often as they run.
        """
        try:
            work()
        except ProgramEnded as error:
            self.ended = True
            self.say(False, f"the program {error}")
        except Exception as error:
            self.say(False, f"raised {error!r:.200}")


def check(settings: dict[str, Any], requests: IO[str], replies: IO[str]) -> None:
    """Test the program of the first line with the tests of the second.

    The first line written is the number of tests, as far as it can be counted before they run, or text: why the tests
    can't be read.
    """
    sources, tests = json.loads(requests.readline()), json.loads(requests.readline())
    verdicts = Verdicts(replies)
    program = Program(settings["to_program"], settings["from_program"], settings["output"] * 2**10)
    _end_after(settings["seconds"], program)
    try:
        cases = _cases(tests) if tests["kind"] == "functional" else None
        code, count = _counted(tests["code"]) if cases is None else (ast.Module([], []), len(cases))
    except Exception as error:
        write_line(replies, f"{error!r:.200}")
        return
    write_line(replies, count)
    try:
        program.load(sources)
        if cases is not None:
            _functional(program, tests["function"], cases, verdicts)
        else:
            _assertions(program, tests, code, verdicts)
            if not count:  # it raises by itself: one test, which got to its end
                if not verdicts.said:
                    verdicts.say(True)
            elif verdicts.said < count:  # they stand in a function that is not called, or behind a condition
                verdicts.say(False, "an assertion did not run")
    except ProgramEnded as error:
        if not verdicts.ended:
            verdicts.say(False, f"the program {error}")
    except Exception as error:
        verdicts.say(False, f"raised {error!r:.200}")


def _end_after(seconds: float, program: Program) -> None:
    def late(*_: object) -> None:
        program.end(f"took more than {seconds:g} s")

    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _cases(tests: dict[str, Any]) -> list[tuple[list[Any], Any]]:
    """Arguments and the expected value of each call."""
    texts = [(given.split("\n"), wanted) for given, wanted in tests["cases"]]  # JSON holds no line break of its own
    return [([json.loads(line) for line in lines if line.strip()], json.loads(wanted)) for lines, wanted in texts]


def _functional(program: Program, name: str, cases: list[tuple[list[Any], Any]], verdicts: Verdicts) -> None:
    function = program.function(name)
    for args, expected in cases:
        verdicts.count(functools.partial(_gives, function, args, expected))


def _gives(function: Callable[..., Any], args: list[Any], expected: Any) -> bool:
    value = function(*args)
    return bool((list(value) if isinstance(value, tuple) else value) == expected)


def _assertions(program: Program, tests: dict[str, Any], code: ast.Module, verdicts: Verdicts) -> None:
    tested = _tested_built_ins(code)
    space: dict[str, Any] = {
        name: program.function(name)
        for name in program.names
        if (name in tested or not hasattr(builtins, name)) and not name.startswith("__")
    }
    space |= {"__name__": "tests", "math": math}
    exec(compile(tests.get("start", ""), "start.py", "exec"), space)  # helpers that the tests use are the data's own
    space |= {_COUNT: verdicts.count, _RUN: verdicts.run}
    if (name := tests.get("function")) is not None:
        space[name] = program.function(name)
    exec(compile(code, "tests.py", "exec"), space)
    if tests["kind"] == "check":
        space["check"](space[tests["function"]])


def _tested_built_ins(code: ast.Module) -> set[str]:
    """The names that tests call, where all are those of built-in functions: MBPP has `assert sum(10,15) == 6`."""
    calls = [node.func for node in ast.walk(code) if isinstance(node, ast.Call)]
    called = {one.id for one in calls if isinstance(one, ast.Name)} - {_COUNT, _RUN}
    return called if all(hasattr(builtins, name) for name in called) else set()


_COUNT, _RUN = "__count__", "__run__"  # in a class, a name without the last two would become another
_LOOPS, _CATCHES = {ast.For, ast.While}, {ast.Try, ast.With, ast.AsyncFunctionDef}  # no await in a lambda


def _counted(source: str) -> tuple[ast.Module, int]:
    """The code with each assertion counted instead of raised, and the number of assertions in it."""
    counter = _Counter()
    tree = counter.visit(ast.parse(source))
    return ast.fix_missing_locations(tree), counter.assertions


class _Counter(ast.NodeTransformer):
    """`assert x` becomes a call that counts. `assert True`, which HumanEval has often, would be a test for nothing.

    A call that is a statement of a loop, as in EvalPlus's `assertion(candidate(*inp), exp, 0)`, becomes one after which
    the loop goes on, unless an exception of it is caught there.

    `assert False` stays: it stands where a program must not come to, and ends the tests.
    """

    assertions = 0
    _around: frozenset[type[ast.AST]] = frozenset()
    """What a node stands in, within its function."""

    def visit(self, node: ast.AST) -> Any:
        before = self._around
        self._around = frozenset() if isinstance(node, ast.FunctionDef) else before | {type(node)}
        found = super().visit(node)
        self._around = before
        return found

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        if isinstance(node.test, ast.Constant):
            return ast.copy_location(ast.Pass(), node) if node.test.value else node
        self.assertions += 1
        return _called(_COUNT, node, node.test)

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        goes_on = self._around & _LOOPS and not self._around & _CATCHES
        return _called(_RUN, node, node.value) if goes_on and isinstance(node.value, ast.Call) else node


def _called(name: str, node: ast.stmt, value: ast.expr) -> ast.stmt:
    """In place of `node`, a call of this name with what computes `value`."""
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    work = ast.Lambda(args=nothing, body=value)
    call = ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=[work], keywords=[])
    return ast.copy_location(ast.Expr(value=call), node)
