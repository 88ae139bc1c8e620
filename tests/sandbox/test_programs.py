"""Programs scored by tests of each kind, with numbers worked out by hand."""

import json
from typing import Any

import pytest
from time_limit import at_most

from rollwise.errors import ConfigError, RewardError
from rollwise.sampling.rewards import load_reward
from rollwise.sampling.scorers.builtin import built_in
from rollwise.sandbox import Limits, probe
from rollwise.sandbox.programs import score_program
from rollwise.sandbox.programs.outputs import same_output
from rollwise.sandbox.programs.reading import program_of

LIMITS = Limits(seconds=5.0)


def score(program: str, **tests: Any) -> tuple[int, int, str]:
    return score_program(program, json.dumps(tests), limits=LIMITS)


pytestmark = pytest.mark.usefixtures("sandbox")

HELPED = 'def half(x):\n    return x / 2\n\n\ndef double(x):\n    """Twice x."""\n'
CHECK = """
def check(candidate):
    assert True, "a test for nothing"
    for x in range(3):
        assert half(candidate(x)) == x
    assert candidate(-1) == -2
"""


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("    return 2 * x\n\n\nprint(double(4))", 4),  # a continuation, up to what is no longer the function
        ("Here it is:\n```python\ndef double(x):\n    return x + x\n```\nand ```\ndouble(2)\n```", 4),
        ("<think>```python\ndef double(x): return 0\n```</think>def double(x): return 2 * x", 4),
        ("def double(x): return abs(2 * x)", 3),
        ("def double(x):\n    if x == 1: raise ValueError\n    return 2 * x", 3),
        ("def double(x):\n    if x == 1: exit()\n    return 2 * x", 3),
        ("def half(x): return 0\ndef double(x): return 0 if x < 2 else 1", 1),  # the data's own `half` counts
        ("It is 2x.", 0),
    ],
)
def test_a_function_with_its_check(text: str, passed: int) -> None:
    """HumanEval's form: 3 + 1 assertions run, and the constant one is no test."""
    found = score(text, kind="check", code=CHECK, function="double", start=HELPED)
    assert found[:2] == (passed, 4)
    assert (found[2] == "") == (passed == 4)


def test_assertions_with_objects_of_the_program() -> None:
    """MBPP's form: 3 of 4 pass."""
    program = """
from collections import Counter, deque
class Node:
    def __init__(self, value): self.value, self.next = value, None
def total(node): return node.value + (total(node.next) if node.next else 0)
def letters(text): return Counter(text)
def pairs(n): return ((i, {i}, 0.1 * i, 1j) for i in range(n))
def distinct(text): return Counter(text).keys()
def queue(text): return deque(text)
"""
    code = """
first = Node(1)
first.next = Node(2)
assert total(first) == 3 and first.next.value == 2
assert letters("aba") == {"a": 2, "b": 1}
assert list(pairs(2)) == [(0, {0}, 0.0, 1j), (1, {1}, 0.1, 1j)]
assert sorted(letters("aba")) == sorted(distinct("aba")) == list(queue("ab"))
assert math.isclose(total(Node(10**5000)), 0)
"""
    assert score(program, kind="asserts", code=code)[:2] == (4, 5)


def test_an_exception_that_a_test_wants() -> None:
    code = "try:\n    f()\n    ok = False\nexcept KeyError:\n    ok = True\nassert ok"
    assert score("def f(): raise KeyError('x')", kind="asserts", code=code) == (1, 1, "")


def test_an_exception_does_not_end_a_tests_loop_as_if_all_were_well() -> None:
    """`map` ends at StopIteration, so `all` of nothing was true."""
    program = "def f(x): return next(iter(())) if x else 0"
    code = "assert f(0) == 0\nassert all(map(lambda x: f(x) == 2 * x, [1, 2]))"
    assert score(program, kind="asserts", code=code)[:2] == (1, 2)
    assert score(program, kind="asserts", code="for y in map(f, [0, 1, 2]):\n    assert y == 0")[:2] == (1, 2)


def test_a_function_that_is_called_as_a_built_in_one() -> None:
    """MBPP 126. Where the tests call another function of the program, built-in names are Python's own."""
    program = "def f(a, b): return 7\ndef sum(a, b): return 6"
    assert score(program, kind="asserts", code="assert sum(10,15) == 6\nassert sum(4,6) == 3")[:2] == (1, 2)
    assert score(program, kind="asserts", code="assert sum([f(1, 2)]) == 7") == (1, 1, "")


def test_where_a_program_must_not_come_to() -> None:
    """`assert False` behind a call that should raise was taken for a test of nothing: no exception passed."""
    code = "try:\n    f(1)\n    assert False\nexcept KeyError:\n    pass\n"
    assert score("def f(x): raise KeyError(x)", kind="asserts", code=code) == (1, 1, "")
    assert score("def f(x): return x", kind="asserts", code=code)[:2] == (0, 1)
    assert score("def f(x): return x", kind="asserts", code=f"assert f(2) == 2\n{code}assert f(3) == 3")[:2] == (1, 2)


def test_what_follows_a_late_test_fails() -> None:
    code = "assert f(0) == 0\nassert f(1) == 1\nassert f(0) == 0"
    program = "def f(x):\n    while x: pass\n    return 0"
    found = score_program(program, json.dumps({"kind": "asserts", "code": code}), limits=Limits(seconds=0.5))
    assert found == (1, 3, "the program took more than 0.5 s")


@pytest.mark.parametrize(
    ("end", "reason"),
    [("os._exit(0)", "ended its process"), ("time.sleep(9)", "took more than 2 s"), ("os.closerange(0, 99)", "ended")],
)
def test_a_program_that_ends_fails_the_rest_of_a_loop(end: str, reason: str) -> None:
    """It got 2 of 3, as the loop ended with it: one that is wrong from there on gets 2 of 50."""
    tests = {"kind": "asserts", "code": "for x in range(50):\n    assert f(x) == x"}
    program = f"import os, time\ndef f(x):\n    return x if x < 2 else {end}"
    passed, run, why = score_program(program, json.dumps(tests), limits=Limits(seconds=2.0))
    assert (passed, run) == (2, 50)
    assert reason in why


PLUS = """
def assertion(out, exp):
    assert out == exp
def check(candidate):
    for x in range(50):
        assertion(candidate(x), 2 * x)
    assert candidate(50) == 100
"""


@pytest.mark.parametrize(
    ("otherwise", "passed"), [("1 / 0 if x == 5 else 2 * x", 50), ("1 / 0", 5), ("os._exit(0)", 5), ("0", 5)]
)
def test_a_program_that_crashes_on_an_input_fails_that_one(otherwise: str, passed: int) -> None:
    """In EvalPlus's form the call is no part of an assertion: the tests ended there, and it got 5 of 6."""
    program = f"import os\ndef f(x): return 2 * x if x < 5 else {otherwise}"
    assert score(program, kind="check", function="f", code=PLUS)[:2] == (passed, 51)


def test_an_exception_that_a_test_wants_is_caught_in_a_loop_too() -> None:
    code = "for x in (1, 2):\n    try:\n        f(x)\n        ok = False\n    except KeyError:\n        ok = True\n"
    assert score("def f(x): raise KeyError(x)", kind="asserts", code=f"{code}    assert ok") == (2, 2, "")
    run = "import asyncio\nasync def run():\n    for x in (1, 2):\n        found.append(await f(x))\nfound = []\n"
    assert score("async def f(x): return x", kind="asserts", code=f"{run}asyncio.run\nassert not found") == (1, 1, "")
    raising = "def same(a, b):\n    if a != b: raise ValueError\nfor x in (1, 2, 3):\n    same(f(x), x)"
    assert score("def f(x): return x", kind="asserts", code=raising) == (1, 1, "")
    assert score("def f(x): return 1", kind="asserts", code=raising)[:2] == (0, 2)


def test_standard_input() -> None:
    """2 of 3: the number is compared by value, and the last input ends in an error."""
    program = "import sys, threading\nthreading.Thread(target=lambda: print(1 / int(sys.stdin.readline()))).start()"
    assert score(program, kind="stdin", cases=[["1\n", "1\n"], ["4", "0.250"]])[:2] == (2, 2)
    cases = [["1", "1"], ["4", "0.25"], ["0", "0"]]
    assert score("print(1 / int(input()))", kind="stdin", cases=cases) == (2, 3, "ended with an error")


def test_a_method_of_a_solution() -> None:
    """LiveCodeBench's form, with an argument a line: a tuple equals the list of the same items."""
    program = "class Solution:\n    def add(self, xs, y):\n        return tuple(x + y for x in xs)"
    cases = [["[1, 2]\n3", "[4, 5]"], ["[]\n0", "[]"], ["[1]\n1", "[3]"], ['["\u2028"]\n"b"\n', '["\u2028b"]']]
    assert score(program, kind="functional", function="add", cases=cases) == (3, 4, "a test failed")


def test_inputs_and_outputs_longer_than_the_limit_of_output() -> None:
    """More than 1 MiB each, as LiveCodeBench has them; what a program writes beyond its tests is still limited."""
    longest = 300_000
    lines, limits = "100\n" * longest, Limits(seconds=100.0)

    def found(program: str, **tests: Any) -> tuple[int, int, str]:
        return score_program(program, json.dumps(tests), limits=limits)

    assert found("import sys\nprint(sys.stdin.read())", kind="stdin", cases=[[lines, lines]]) == (1, 1, "")
    assert found(f"print('{'x' * 7}' * {longest})", kind="stdin", cases=[["", "x"]])[2] == "wrote more than 1024 KiB"
    cases = [[str(longest), json.dumps(list(range(longest)))]]
    assert found("def f(n): return list(range(n))", kind="functional", function="f", cases=cases) == (1, 1, "")


def test_values_of_numpy_are_plain_values() -> None:
    program = """
import numpy as np
def positive(x): return np.all(np.array(x) > 0)
def half(x): return np.float32(x / 2)
"""
    code = """
assert positive([1]) == True and positive([-1]) == False
assert not positive([-1])
assert positive([1])
assert half(1) == 0.5
"""
    assert score(program, kind="asserts", code=code)[:2] == (4, 4)
    assert score(program, kind="asserts", code="assert positive([-1])")[:2] == (0, 1)


def test_tests_without_an_assertion_are_one_test() -> None:
    code = "if f(1) != 1: raise ValueError('no')"
    assert score("def f(x): return x", kind="asserts", code=code) == (1, 1, "")
    assert score("def f(x): return 0", kind="asserts", code=code) == (0, 1, "raised ValueError('no')")


def test_an_assertion_that_does_not_run_fails_and_is_named() -> None:
    code = "def test(): assert f(1) == 1"
    assert score("def f(x): return x", kind="asserts", code=code) == (0, 1, "an assertion did not run")
    assert score("def f(x): return x", kind="asserts", code=f"{code}\ntest()") == (1, 1, "")


def test_an_assertion_in_a_class_counts() -> None:
    code = "class Tests:\n    def one(self): assert f(1) == 1\nTests().one()"
    assert score("def f(x): return x", kind="asserts", code=code) == (1, 1, "")


def test_a_test_that_was_skipped_or_failed_in_parts() -> None:
    """Of four tests the second passes: a skipped one does not, and three failures in one test are one."""
    code = """
import unittest
class TestCases(unittest.TestCase):
    def test_parts(self):
        for x in range(1, 4):
            with self.subTest(x=x): self.assertEqual(task_func(x), 0)
    def test_right(self): self.assertEqual(task_func(2), 2)
    def test_skipped(self): raise unittest.SkipTest("")
    @unittest.expectedFailure
    def test_unexpected(self): pass
"""
    assert score("def task_func(x): return x", kind="unittest", code=code)[:2] == (1, 4)


def test_a_test_case_of_unittest() -> None:
    """BigCodeBench's form: 1 of 3 pass."""
    code = """
import unittest
from unittest.mock import patch
class TestCases(unittest.TestCase):
    def test_one(self): self.assertEqual(task_func(2), 4)
    def test_two(self): self.assertEqual(task_func(3), 7)
    @patch("__main__.helper", return_value=1)
    def test_three(self, _): self.assertEqual(task_func(3), 5)
"""
    program = "def helper(x): return 2 * x\ndef task_func(x): return helper(x)"
    assert score(program, kind="unittest", code=code)[:2] == (1, 3)
    assert score("import os; os._exit(0)", kind="unittest", code=code)[::2] == (0, "gave no verdict")


def test_what_a_model_writes_beside_its_function_is_no_test() -> None:
    """Its own TestCase counted as two tests that passed, and its last lines ended a right program."""
    code = "import unittest\nclass TestCases(unittest.TestCase):\n    def test(self): self.assertEqual(task_func(2), 4)"
    own = """
import unittest
class TestTaskFunc(unittest.TestCase):
    def test_a(self): pass
    def test_b(self): pass
if __name__ == "__main__":
    unittest.main()
"""
    assert score(f"def task_func(x): return 0\n{own}", kind="unittest", code=code)[:2] == (0, 1)
    assert score(f"def task_func(x): return 2 * x\n{own}", kind="unittest", code=code) == (1, 1, "")


def test_the_reward_is_the_share_or_all_or_nothing() -> None:
    tests = json.dumps({"kind": "asserts", "code": "assert f(1) == 1\nassert f(2) == 2\nassert f(0) == 0"})
    texts = ["def f(x): return x", "def f(x): return min(x, 1)", [{"role": "assistant", "content": "no"}], "no tests"]
    answer = [tests, tests, tests, None]
    assert load_reward("code")[0](completions=texts, answer=answer) == [1.0, 2 / 3, 0.0, None]
    assert load_reward("code:all")[0](completions=texts, answer=answer) == [1.0, 0.0, 0.0, None]


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        ("42", "needs tests as JSON text with a kind"),
        ('{"kind": "check", "code": "x"}', "'check' need function"),
        ('{"kind": "stdin", "cases": [["1", 1]]}', r"pairs of texts, an input and an output, got \['1', 1\]"),
        ('{"kind": "stdin", "cases": {"input": "1"}}', "pairs of texts, an input and an output"),
        ('{"kind": "functional", "function": "f", "cases": [[[1], 1]]}', "pairs of texts, an input and an output"),
        ('{"kind": "functional", "function": "f", "cases": [["1", "one"]]}', "can't be read: JSONDecodeError"),
        ('{"kind": "asserts", "code": "assert ("}', "can't be read: SyntaxError"),
        ('{"kind": "unittest", "code": "class T("}', "can't be read: SyntaxError"),
        ('{"kind": "unittest", "code": ["import unittest"]}', "can't be read: TypeError"),
    ],
)
def test_other_answers_are_refused(tests: str, said: str) -> None:
    with pytest.raises(RewardError, match=said):
        score_program("x", tests)


def test_the_reward_is_refused_without_a_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="unknown reward 'code:some'; give code "):
        built_in("code:some")
    monkeypatch.setattr(probe, "_reason", lambda: "bubblewrap (bwrap) is not installed; install it")
    with pytest.raises(ConfigError, match="only in a sandbox, and there is none here: bubblewrap"):
        built_in("code")


@pytest.mark.parametrize(
    ("given", "expected", "same"),
    [
        ("1 2 \n3\n\n", "1 2\n3", True),
        ("1e2", "100.0", True),
        ("0.1", "0.10000001", False),
        ("1 2", "1\n2", False),
        ("", "\n", True),
        ("YES", "yes", False),
        ("1e9999999", "1", False),
        ("11", "0011", False),  # bits, or the minutes of 9:05
        ("0011", "0011.0", False),
        ("0", "0.0", True),
        ("-.5", "-0.5", True),
    ],
)
def test_outputs_are_compared_by_words_and_numbers(given: str, expected: str, same: bool) -> None:
    assert same_output(given, expected) is same


def test_the_last_block_that_defines_the_function_is_the_program() -> None:
    text = "```py\ndef f(): pass\n```\nor\n```\ndef g(): pass\n```\n``` \nprint(f())"
    assert program_of(text, "f") == "def f(): pass\n"
    assert program_of(text, "g") == "def g(): pass\n"


def test_an_example_of_the_output_is_not_the_program() -> None:
    text = "```python\nprint(1)\n```\nbetter:\n```Python3\nprint(2)\n```\nIt prints\n```\n2\n```"
    assert program_of(text) == program_of(text, "f") == "print(2)\n"
    assert program_of(text.replace("Python3", "").replace("python", "")) == "2\n"


def test_a_block_within_a_list_is_indented_as_its_fence() -> None:
    text = "1. Add:\n\n   ```python\n   def f(x):\n       return x\n   ```\n"
    assert program_of(text) == program_of(text, "f") == "def f(x):\n    return x\n"


def test_a_program_is_read_in_time_by_its_length_alone() -> None:
    """Empty lines without an end took the square of their number."""
    with at_most(10):
        program_of(f"```python\n{chr(10) * 250_000}x\n```", "f")
