"""Evaluate an arithmetic expression written by a language model, exactly and without running it.

A model's answer is hostile text: `eval`, and parsers built on it, run whatever it says, and `6**6**6**6` never returns.
This parser knows six operators and nothing else, computes in fractions, and refuses long or deeply nested text first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

MAX_LENGTH = 256
MAX_DEPTH = 32

_TOKEN = re.compile(r" *(?:([0-9]+)|([-+*/()]))")


@dataclass(frozen=True)
class Evaluation:
    """What an expression is worth: its exact value and the numbers it names, or the reason why it is invalid.

    Attributes:
        value: The exact value, or None if the expression is invalid.
        literals: The numbers written in it, from left to right; empty if it is invalid.
        reason: Why it is invalid; empty if it is valid.
    """

    value: Fraction | None
    literals: tuple[int, ...] = ()
    reason: str = ""

    @property
    def valid(self) -> bool:
        """Whether the text is an expression that has a value."""
        return self.value is not None


def evaluate(text: str) -> Evaluation:
    """The exact value of an expression of + - * / and parentheses; never raises on any string.

    Literals are non-negative ASCII integers without leading zeros. Unary minus is allowed (`-3+5` is 2), as in
    TinyZero's verifier; unary plus, `**`, `//`, `_`, decimals, line breaks and every other character are not.
    Text of more than 256 characters, or nested (parentheses and unary minuses) more than 32 deep, is invalid.

    >>> evaluate("(1 + 2) / 4")
    Evaluation(value=Fraction(3, 4), literals=(1, 2, 4), reason='')
    >>> evaluate("6**6").reason
    "expected a number or '(', found '*'"
    """
    if len(text) > MAX_LENGTH:
        return Evaluation(None, reason=f"longer than {MAX_LENGTH} characters")
    try:
        parser = _Parser(_tokens(text))
        value = parser.whole()
    except _InvalidError as error:
        return Evaluation(None, reason=str(error))
    return Evaluation(value, tuple(parser.literals))


class _InvalidError(Exception):
    """The text is not an expression with a value."""


def _tokens(text: str) -> list[str]:
    text = text.rstrip(" ")
    tokens, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _InvalidError(f"unexpected character {text[at:].lstrip(' ')[0]!r}")
        token = match.group(1) or match.group(2)
        if len(token) > 1 and token[0] == "0":
            raise _InvalidError(f"leading zero in {token[:20]!r}")
        tokens.append(token)
        at = match.end()
    return tokens


class _Parser:
    """Recursive descent: `sum = product ((+|-) product)*`, `product = factor ((*|/) factor)*`."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self.literals: list[int] = []

    def whole(self) -> Fraction:
        value = self._sum()
        if self._peek():
            raise _InvalidError(f"unexpected {self._peek()!r} after a complete expression")
        return value

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _sum(self) -> Fraction:
        value = self._product()
        while self._peek() in ("+", "-"):
            value = value + self._product() if self._take() == "+" else value - self._product()
        return value

    def _product(self) -> Fraction:
        value = self._factor()
        while self._peek() in ("*", "/"):
            if self._take() == "*":
                value = value * self._factor()
                continue
            divisor = self._factor()
            if divisor == 0:
                raise _InvalidError("division by zero")
            value = value / divisor
        return value

    def _factor(self) -> Fraction:
        token = self._take()
        if token.isdigit():
            self.literals.append(int(token))
            return Fraction(int(token))
        if token not in ("(", "-"):
            raise _InvalidError(f"expected a number or '(', found {token or 'the end'!r}")
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _InvalidError(f"nested more than {MAX_DEPTH} deep")
        value = -self._factor() if token == "-" else self._sum()
        if token == "(" and self._take() != ")":
            raise _InvalidError("a '(' is never closed")
        self._depth -= 1
        return value
