"""Which rows of a user's data are used: conditions on columns, and strata of a sample."""

from __future__ import annotations

import bisect
import logging
import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rollwise.errors import ConfigError, MissingColumnError, PoolError
from rollwise.options import did_you_mean
from rollwise.sampling.suites.lookup import ABSENT, Row, lookup

logger = logging.getLogger(__name__)

PlacedRow = tuple[str, Row]
"""Where a row stands, for messages, and the row."""

STRATA = 20
"""Strata that the values of a column of numbers are cut into, where it has more."""

_ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_CONDITION = re.compile(r"\s*(?P<column>[^<>=!]+?)\s*(?P<op>==|!=|<=|>=|<|>|\s(?:not\s+)?in\s)\s*(?P<value>.+?)\s*")
_LISTED = re.compile(r"""(\s*'[^']*'\s*|\s*"[^"]*"\s*|[^,]+)(?:,|$)""")  # a comma in quotes is part of a value
_BRACKETED = re.compile(r"\[[^][]*\]|\([^()]*,[^()]*\)")  # [a, b] would be the values "[a" and "b]"
_WHOLE = re.compile(r"\s*[-+]?\d{1,4000}\s*")
_FORM = "write COLUMN OP VALUE with ==, !=, <, <=, >, >=, in or not in, for example 'difficulty >= 3'"


@dataclass(frozen=True)
class Condition:
    """One `COLUMN OP VALUE`.

    Attributes:
        text: as it was written.
        column: a column, or a path into nested ones.
        op: `==`, `!=`, `<`, `<=`, `>`, `>=`, `in` or `not in`.
        values: one, or those of the list behind `in`.
    """

    text: str
    column: str
    op: str
    values: tuple[str, ...]

    def holds(self, row: Row) -> bool:
        """Whether a row fulfils it. An absent value equals nothing and is not ordered.

        Raises:
            ConfigError: the value is of another kind than the column's.
        """
        cell = lookup(row, self.column)
        if cell is ABSENT or cell is None:
            return self.op in ("!=", "not in")
        if not isinstance(cell, str | int | float):
            raise ConfigError(
                f"where {self.text!r}: column {self.column!r} holds a {type(cell).__name__}; only text, numbers and "
                "true or false can be compared"
            )
        if self.op in _ORDERED:
            return _ORDERED[self.op](self._number(cell), self._number(self.values[0]))
        equal = any(self._equal(cell, value) for value in self.values)
        return equal == (self.op in ("==", "in"))

    def _equal(self, cell: str | float, value: str) -> bool:
        if isinstance(cell, str):
            return cell == value
        if isinstance(cell, bool):
            if value.lower() not in ("true", "false"):
                raise ConfigError(
                    f"where {self.text!r}: column {self.column!r} is true or false, so it can't be compared with "
                    f"{value!r}; write {self.column} == true or {self.column} == false"
                )
            return str(cell).lower() == value.lower()
        return self._number(value) == cell

    def _number(self, value: str | float) -> float:
        """A number as it is; a whole one exactly, as ids from 2^53 on share a float with others."""
        if not isinstance(value, str):
            return value
        try:
            return int(value) if _WHOLE.fullmatch(value) else float(value)
        except ValueError:
            raise ConfigError(
                f"where {self.text!r}: {value!r} is no number, so it can't be compared with one; {_FORM}"
            ) from None


def conditions(where: Sequence[str]) -> list[Condition]:
    """The conditions in `where`.

    >>> conditions(["level in 3, 4"])[0].values, conditions(["source == 'a b'"])[0].values
    (('3', '4'), ('a b',))

    Raises:
        ConfigError: one can't be read.
    """
    found = []
    for text in where:
        parts = _CONDITION.fullmatch(text)
        if parts is None:
            raise ConfigError(f"where {text!r} can't be read; {_FORM}")
        op = " ".join(parts["op"].split())
        if op.endswith("in") and _BRACKETED.fullmatch(parts["value"]):
            raise ConfigError(
                f"where {text!r}: brackets would be part of the values; write {parts['column']} {op} "
                f"{parts['value'][1:-1].strip()}, or put a value that has them in quotes"
            )
        values = [value.strip() for value in _LISTED.findall(parts["value"])] if op.endswith("in") else [parts["value"]]
        found.append(Condition(text, parts["column"], op, tuple(_unquoted(value) for value in values)))
    return found


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"" else value


def row_places(source: str, n: int) -> list[str]:
    """Where each of n rows of a source stands, for messages."""
    return [f"{source}, row {at}" for at in range(1, n + 1)]


def chosen_rows(rows: list[PlacedRow], where: Sequence[str], source: str) -> list[PlacedRow]:
    """The rows that fulfil every condition, each with its place.

    Raises:
        ConfigError: a condition can't be read, or compares a number with text.
        MissingColumnError: no row has a column that is named.
        PoolError: no row is left.
    """
    wanted = conditions(where)
    for condition in wanted:
        if all(lookup(row, condition.column) is ABSENT for _, row in rows):
            names = list(dict.fromkeys(name for _, row in rows for name in row))
            raise MissingColumnError(
                f"where {condition.text!r}: {source} has no column {condition.column!r}"
                f"{did_you_mean(condition.column, names)}; it has {', '.join(names)}"
            )
    kept = [placed for placed in rows if all(condition.holds(placed[1]) for condition in wanted)]
    if not kept:
        raise PoolError(
            f"where {', '.join(map(repr, where))} leaves none of the {len(rows)} rows of {source}; loosen it"
        )
    if wanted:
        logger.info("%s: %d of %d rows fulfil %s", source, len(kept), len(rows), " and ".join(where))
    return kept


def strata_of(rows: Sequence[Row], column: str, source: str) -> list[str]:
    """The stratum of each row (N,): the column's value; of more than `STRATA` numbers, which part by rank it is in.

    Numbers may be text, as those of a .csv file are, if all of the column's values are.

    Raises:
        MissingColumnError: no row has the column.
        PoolError: it holds neither text nor numbers.
    """
    values = [lookup(row, column) for row in rows]
    if all(value is ABSENT for value in values):
        raise MissingColumnError(
            f"{source} has no column {column!r} (--stratify){did_you_mean(column, rows[0])}; "
            f"it has {', '.join(rows[0])}"
        )
    values = [None if value is ABSENT else value for value in values]
    if wrong := [value for value in values if not isinstance(value, str | int | float | None)]:
        raise PoolError(f"{source}: stratify column {column!r} must hold text or numbers, got {wrong[0]!r:.80}")
    found = _as_numbers(values)
    numbers = sorted(value for value in found if isinstance(value, int | float) and not math.isnan(value))
    if len(set(numbers)) <= STRATA:
        return [str(value) for value in values]
    return [
        str(bisect.bisect_left(numbers, number) * STRATA // len(numbers))
        if isinstance(number, int | float) and not math.isnan(number)
        else str(value)
        for value, number in zip(values, found, strict=True)
    ]


def _as_numbers(values: list[Any]) -> list[Any]:
    try:
        return [value if value is None else float(value) for value in values]
    except (ValueError, OverflowError):
        return values
