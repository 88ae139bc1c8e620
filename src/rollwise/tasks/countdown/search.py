"""Countdown demonstrations; and those that show their work: a few expressions tried in vain, then one accepted.

    7+3=10,10*5=50:22;7*3=21,21+5=26:22;3*5=15,15+7=22:22.<answer>3*5+7</answer>

A comma stands between the steps of one try. Its result is held against the target, `50:22`, as only what stands close
by is easily compared. Then comes a full stop, and the answer, if they are the same; a semicolon, and another try, if
not; or a question mark, where the demonstrator gives up and answers with what is wrong. So completions differ in
length, and what is written midway says something of how they will end.
"""

from __future__ import annotations

import ast
import itertools
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any

from rollwise.errors import ConfigError
from rollwise.tasks.arithmetic import evaluate
from rollwise.tasks.countdown.items import Item, random_expression
from rollwise.tasks.countdown.prompts import STYLES, render_completion
from rollwise.tasks.countdown.solver import Expr, combine, number, solve
from rollwise.tasks.tags import CLOSE, OPEN

FOUND, GAVE_UP = ".", "?"

MAX_TRIED = 4
"""Most tries before the accepted one."""

_DRAWS = 30  # for another expression of the wrong value: [1, 1] has two, [0, 0] to 0 has none
_HELD = re.compile(r"=(-?\d+(?:/\d+)?):(-?\d+)")
_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


def worked(expression: str) -> str:
    """An expression of the solver's kind step by step, operands first, each result in the place of what made it.

    Fractions and negative results stay exact, in parentheses where the next step needs them.

    Raises:
        ConfigError: the text is no expression of + - * / over whole numbers, or it divides by zero.

    >>> worked("(7+3)*5")
    '7+3=10,10*5=50'
    >>> worked("7-(1-3)*5")
    '1-3=-2,(-2)*5=-10,7-(-10)=17'
    """
    steps: list[str] = []
    try:
        _walk(ast.parse(expression, mode="eval").body, steps)
    except (SyntaxError, _NotWorkableError) as error:
        raise ConfigError(f"can't work out {expression!r}: it must be + - * / over whole numbers") from error
    return ",".join(steps)


class _NotWorkableError(Exception):
    """Something else than + - * / over whole numbers, or a division by zero."""


def _walk(node: ast.expr, steps: list[str]) -> Expr:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return number(node.value)
    operator = _OPERATORS.get(type(node.op)) if isinstance(node, ast.BinOp) else None
    if not isinstance(node, ast.BinOp) or operator is None:
        raise _NotWorkableError
    made = combine(_walk(node.left, steps), operator, _walk(node.right, steps))
    if made is None:
        raise _NotWorkableError
    steps.append(f"{made.text}={made.value}")
    return _result(made)


def _result(made: Expr) -> Expr:
    """A result as the operand of the next step."""
    text = str(made.value)
    return number(0)._replace(value=made.value, text=text if text.isdigit() else f"({text})")


def search_completion(tried: Sequence[str], accepted: str, target: int) -> str:
    """The completion that tries some expressions, accepts another, right or wrong, and answers with it.

    >>> search_completion(["5-2"], "5*2", 10), search_completion([], "5-2", 10)
    ('5-2=3:10;5*2=10:10.<answer>5*2</answer>', '5-2=3:10?<answer>5-2</answer>')
    """
    held = [f"{worked(expression)}:{target}" for expression in (*tried, accepted)]
    verdict = FOUND if evaluate(accepted).value == target else GAVE_UP
    return str(render_completion("search", accepted, work=";".join(held) + verdict))


def says_found(text: str) -> bool:
    """Whether the last result that the text holds against the target equals it: the text's own verdict, no head needed.

    It believes the text's arithmetic.

    >>> says_found("5-2=3:10;5*2=10:10.<answer>5*2</answer>"), says_found("5-2=3:10?<answer>5-2</answer>")
    (True, False)
    """
    held = _HELD.findall(text)
    return bool(held) and held[-1][0] == held[-1][1]


def demonstrated(style: str, item: Item, solved: bool, rng: random.Random) -> Any:
    """A noisy demonstrator's completion in any style: the solver's answer if `solved`, else a random expression."""
    if style == "search":
        return search_demonstration(item, solved, rng)
    answer = solve(item.nums, item.target) if solved else None
    return render_completion(style, next(_random(item, rng)).text if answer is None else answer)


def search_demonstration(item: Item, solved: bool, rng: random.Random) -> str:
    """A noisy demonstrator's completion: it tries up to four expressions in vain, and accepts the next one.

    One who solves accepts the solver's answer, and found it early: the less of two draws from 0 to 4 tries before.
    The other gives up late, after the greater of two such draws, and accepts what is wrong as well. So hope falls with
    the length, as it does for models that reason. Tries are fewer where they would not fit into the style's tokens,
    or where the numbers hold no other expression; where nothing is wrong, the expression accepted is right.
    """
    answer = solve(item.nums, item.target) if solved else None
    draws = rng.randint(0, MAX_TRIED), rng.randint(0, MAX_TRIED)
    vain = _wrong(item, max(draws) + 1 if answer is None else min(draws), rng)
    accepted = answer or (vain.pop() if vain else next(_random(item, rng)).text)
    while vain and tokens_of(search_completion(vain, accepted, item.target)) > STYLES["search"]:
        vain.pop()
    return search_completion(vain, accepted, item.target)


def tokens_of(completion: str) -> int:
    """The tokens of a completion for a tokenizer of characters: a tag is one, and the end of text is counted."""
    return len(completion.replace(OPEN, "<").replace(CLOSE, ">")) + 1


def _random(item: Item, rng: random.Random) -> Iterator[Expr]:
    """Well-formed random expressions over the numbers, without end."""
    while True:
        made = random_expression(item.nums, item.operators, rng)
        if made is not None:
            yield made


def _wrong(item: Item, count: int, rng: random.Random) -> list[str]:
    """Up to `count` random expressions that are not worth the target and differ in the work they show."""
    found: dict[str, str] = {}
    for made in itertools.islice(_random(item, rng), _DRAWS):
        if len(found) == count:
            break
        if made.value != item.target:
            found.setdefault(worked(made.text), made.text)
    return list(found.values())
