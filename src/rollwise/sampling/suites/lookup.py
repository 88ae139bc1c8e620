"""A row's value by a column's name, or by a path into nested columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Row = dict[str, Any]
ABSENT = object()
"""In place of a value that is not there."""


def lookup(row: Mapping[str, Any], column: str) -> Any:
    """The value of a column, or of a path such as `extra_info.question`; `ABSENT` where there is none.

    >>> lookup({"a.b": 1, "a": {"b": 2, "c": {"d": 3}}}, "a.b"), lookup({"a": {"c": {"d": 3}}}, "a.c.d")
    (1, 3)
    """
    if column in row:
        return row[column]
    value: Any = row
    for part in column.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return ABSENT
        value = value[part]
    return value
