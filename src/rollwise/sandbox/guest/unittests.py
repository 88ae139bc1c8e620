"""A program with a `unittest.TestCase` that needs the program's own objects: both in one process."""

from __future__ import annotations

import functools
import json
import os
import sys
import types
import unittest
from typing import IO, Any

from .forked import DONE, forked
from .lines import write_line


def run(settings: dict[str, Any], requests: IO[str], replies: IO[str]) -> None:
    """Write a line [how it ended, passed, tests, reason], or text: why the tests can't be read."""
    program, code = json.loads(requests.readline())
    try:
        tests = compile(code, "tests.py", "exec")
    except Exception as error:
        write_line(replies, f"{error!r:.200}")
        return
    work = functools.partial(_run, program, tests)
    ended, output = forked(work, seconds=settings["seconds"], most=settings["output"] * 2**10)
    try:
        passed, count, reason = json.loads(output) if ended == DONE else (0, 0, "")
    except (ValueError, TypeError):
        passed, count, reason = 0, 0, "gave no verdict"
    write_line(replies, [ended, passed, count, reason])


def _is_case(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, unittest.TestCase)


def _run(program: str, tests: types.CodeType, writable: int) -> None:
    module = types.ModuleType("program")  # its `if __name__ == "__main__":` is not run
    sys.modules["program"] = sys.modules["__main__"] = module  # patches of the tests name the latter
    reason = ""
    suite, result = unittest.TestSuite(), unittest.TestResult()
    try:
        exec(compile(program, "program.py", "exec"), module.__dict__)
        own = [value for value in vars(module).values() if _is_case(value)]  # tests that the model wrote are none
        exec(tests, module.__dict__)
        cases = [value for value in vars(module).values() if _is_case(value) and value not in own]
        suite.addTests(map(unittest.defaultTestLoader.loadTestsFromTestCase, cases))
        suite.run(result)
    except BaseException as error:
        reason = f"raised {error!r:.200}"
    notes = [*result.failures, *result.errors, *result.skipped]
    failed = {getattr(test, "test_case", test).id() for test, _ in notes}  # a test once, however many subtests failed
    failed |= {test.id() for test in result.unexpectedSuccesses}
    if failed and not reason:
        reason = ["a test failed", *(line for _, text in notes[:1] for line in text.strip().splitlines())][-1][:200]
    with os.fdopen(writable, "w") as file:
        json.dump([max(result.testsRun - len(failed), 0), result.testsRun, reason], file)
