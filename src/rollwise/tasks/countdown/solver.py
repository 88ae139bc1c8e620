"""Solve Countdown exactly: every number once, + - * / and parentheses, fractions allowed on the way.

For each sub-multiset of the numbers a table holds the values it can reach, built once. The whole multiset's table is
never built: for each split, one side's values say which value the other side must reach.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from rollwise.errors import ConfigError

MAX_NUMBERS = 6

Value = int | Fraction
_SUM, _PRODUCT, _ATOM = 1, 2, 3
_STRENGTH = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT}


class Expr(NamedTuple):
    """An expression: its exact value, its text with as few parentheses as it needs, how tightly the text binds."""

    value: Value
    text: str
    strength: int


_Tables = dict[tuple[int, ...], dict[Value, Expr]]


def number(value: int) -> Expr:
    """The expression that is one number."""
    return Expr(value, str(value), _ATOM)


def combine(left: Expr, operator: str, right: Expr) -> Expr | None:
    """`left operator right`, or None for a division by zero."""
    value = _apply(left.value, operator, right.value)
    if value is None:
        return None
    strength = _STRENGTH[operator]
    left_text = left.text if left.strength >= strength else f"({left.text})"
    # a-(b+c) and a/(b*c) need their parentheses; a+(b-c) and a*(b/c) don't.
    bare = right.strength > strength or (right.strength == strength and operator in "+*")
    return Expr(value, f"{left_text}{operator}{right.text if bare else f'({right.text})'}", strength)


def solve(nums: Sequence[int], target: int) -> str | None:
    """An expression over all of `nums` worth `target`, or None if there is none; the same one every time.

    Sums and differences are preferred to products and quotients, roughly.

    Raises:
        ConfigError: `nums` is empty, longer than 6, or holds something other than non-negative whole numbers.

    >>> solve([7, 3, 5], 22)
    '7+3*5'
    >>> solve([1, 1], 5) is None
    True
    """
    key = _checked(nums)
    if len(key) == 1:
        return str(key[0]) if key[0] == target else None
    tables: _Tables = {}
    for left, right in _splits(key):
        # The smaller side is the one walked; the larger side is only looked up.
        expression = _meet(_reachable(left, tables), _reachable(right, tables), target)
        if expression is not None:
            return expression.text
    return None


def _checked(nums: Sequence[int]) -> tuple[int, ...]:
    bad = [n for n in nums if isinstance(n, bool) or not isinstance(n, int) or n < 0]
    if bad:
        raise ConfigError(f"nums must be non-negative whole numbers, got {bad[0]!r} in {list(nums)!r}")
    if not 1 <= len(nums) <= MAX_NUMBERS:
        raise ConfigError(f"nums must hold 1 to {MAX_NUMBERS} numbers for the solver, got {len(nums)}")
    return tuple(sorted(nums))


def _apply(a: Value, operator: str, b: Value) -> Value | None:
    if operator == "+":
        return a + b
    if operator == "-":
        return a - b
    if operator == "*":
        return a * b
    return _quotient(a, b)


def _quotient(a: Value, b: Value) -> Value | None:
    if b == 0:
        return None
    if isinstance(a, int) and isinstance(b, int) and a % b == 0:
        return a // b
    return Fraction(a) / b


def _combinations(a: Expr, b: Expr) -> Iterator[Expr]:
    for left, operator, right in ((a, "+", b), (a, "-", b), (b, "-", a), (a, "*", b), (a, "/", b), (b, "/", a)):
        made = combine(left, operator, right)
        if made is not None:
            yield made


@lru_cache(maxsize=20_000)
def _splits(key: tuple[int, ...]) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """The ways to part a sorted multiset in two, the smaller side first, each once."""
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], None] = {}
    for size in range(1, len(key) // 2 + 1):
        for chosen in itertools.combinations(range(len(key)), size):
            left = tuple(key[i] for i in chosen)
            right = tuple(key[i] for i in range(len(key)) if i not in chosen)
            if (right, left) not in found:
                found[left, right] = None
    return tuple(found)


def _reachable(key: tuple[int, ...], tables: _Tables) -> dict[Value, Expr]:
    """Each value that the multiset can reach, with the first expression found for it; `tables` is added to."""
    if len(key) <= 2:
        return _small(key)
    if key not in tables:
        table: dict[Value, Expr] = {}
        for left, right in _splits(key):
            for a in _reachable(left, tables).values():
                for b in _reachable(right, tables).values():
                    for made in _combinations(a, b):
                        table.setdefault(made.value, made)
        tables[key] = table
    return tables[key]


# Shared between calls: small tables come again and again. Larger ones rarely do, and would fill the memory.
@lru_cache(maxsize=20_000)
def _small(key: tuple[int, ...]) -> dict[Value, Expr]:
    if len(key) == 1:
        return {key[0]: number(key[0])}
    table: dict[Value, Expr] = {}
    for made in _combinations(number(key[0]), number(key[1])):
        table.setdefault(made.value, made)
    return table


def _meet(left: dict[Value, Expr], right: dict[Value, Expr], target: int) -> Expr | None:
    """Two expressions, one from each table, that an operator joins to `target`."""
    for a in left.values():
        v = a.value
        if v == 0 and target == 0:  # 0*b is 0 for every b, which no single partner value expresses
            return combine(a, "*", next(iter(right.values())))
        # For each operator and order, the one partner value that would do.
        for partner, operator, partner_first in (
            (target - v, "+", False),
            (v - target, "-", False),
            (target + v, "-", True),
            (_quotient(target, v), "*", False),
            (_quotient(v, target), "/", False),
            (target * v, "/", True),
        ):
            b = None if partner is None else right.get(partner)
            if b is None:
                continue
            made = combine(b, operator, a) if partner_first else combine(a, operator, b)
            if made is not None and made.value == target:
                return made
    return None
