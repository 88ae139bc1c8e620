"""The verifier of expressions against trees whose value is known, and against hostile text."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.tasks.arithmetic import MAX_DEPTH, MAX_LENGTH, evaluate

# A tree's fully parenthesised text, its value (None: it divides by zero) and its numbers, computed side by side.
Tree = tuple[str, Fraction | None, tuple[int, ...]]


def _leaf(n: int) -> Tree:
    return str(n), Fraction(n), (n,)


def _join(parts: tuple[Tree, str, Tree, str]) -> Tree:
    (left, a, left_nums), op, (right, b, right_nums), space = parts
    text = f"({left}{space}{op}{space}{right})"
    if a is None or b is None or (op == "/" and b == 0):
        return text, None, left_nums + right_nums
    value = {"+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: a / b}[op]()
    return text, value, left_nums + right_nums


def _negate(tree: Tree) -> Tree:
    text, value, nums = tree
    return f"(-{text})", None if value is None else -value, nums


trees = st.recursive(
    st.integers(0, 99).map(_leaf),
    lambda sub: st.one_of(
        st.tuples(sub, st.sampled_from("+-*/"), sub, st.sampled_from(["", " "])).map(_join), sub.map(_negate)
    ),
    max_leaves=8,
)


@given(trees)
def test_agrees_with_the_tree_it_was_written_from(tree: Tree) -> None:
    text, value, nums = tree
    result = evaluate(text)
    if len(text) > MAX_LENGTH:
        assert not result.valid
    elif value is None:
        assert result.reason == "division by zero"
    else:
        assert (result.value, result.literals) == (value, nums)


@given(st.lists(st.integers(1, 99), min_size=2, max_size=6), st.data())
def test_precedence_agrees_with_python_on_plain_chains(nums: list[int], data: st.DataObject) -> None:
    text = str(nums[0]) + "".join(data.draw(st.sampled_from("+-*")) + str(n) for n in nums[1:])
    assert evaluate(text).value == eval(text)  # our own text, not a model's


@given(st.text(max_size=400))
def test_never_raises(text: str) -> None:
    result = evaluate(text)
    assert result.valid == (result.reason == "")


@given(st.text(alphabet="0123456789+-*/() ", max_size=300))
def test_never_raises_on_near_misses(text: str) -> None:
    result = evaluate(text)
    if result.valid:
        assert len(result.literals) >= 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "+",
        "()",
        "1+",
        "+1",
        "1 2",
        "(1",
        "1)",
        "2(3)",
        "1//2",
        "2**3",
        "6**6**6**6",
        "1.5",
        "1e3",
        "1_000",
        "007",
        "0x10",
        "1/0",
        "1/(2-2)",
        "1\n+2",
        "1\t+2",
        "\u0661+\u0662",
        "\uff11+1",
        "1\u00b2",
        "1\u00d72",
        "1\u00a0+2",
        "1\x00",
        "__import__('os')",
        "__import__('os').system('true')",
        "().__class__",
        "a",
        "1=1",
        "1,2",
        "[1]",
        "1<2",
        "~1",
        "1%2",
        "True",
        "lambda:1",
        "9" * 10_000,
        "1+" * 5_000 + "1",
        "(" * 500 + "1" + ")" * 500,
        "-" * 500 + "1",
        "(" * 10_000,
        "(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1),
    ],
)
def test_refuses_quickly(text: str) -> None:
    start = time.perf_counter()
    result = evaluate(text)
    assert time.perf_counter() - start < 0.1
    assert result.value is None
    assert result.literals == ()
    assert result.reason


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        (" 3 * ( 5 + 7 ) ", 36),
        ("-3+5", 2),
        ("2--3", 5),
        ("8/3/2", Fraction(4, 3)),
        ("8-3-2", 3),
        ("1/3*3", 1),
        ("(" * MAX_DEPTH + "1" + ")" * MAX_DEPTH, 1),
        ("*".join(["99"] * 80), 99**80),
    ],
)
def test_values_by_hand(text: str, value: Fraction | int) -> None:
    assert evaluate(text).value == value
