"""Values that pass between a program and its tests as JSON: plain data by value, other objects by a number.

Pickle would let a program choose how its values compare. Here only built-in types can be made, so `==` in the tests is
Python's own.
"""

from __future__ import annotations

import itertools
import numbers
import sys
from collections import deque
from collections.abc import Callable, ItemsView, Iterator, KeysView, ValuesView
from decimal import Decimal
from fractions import Fraction
from typing import Any

_MOST_ITEMS = 10**6
_ITERATED = (range, Iterator, KeysView, ValuesView, ItemsView, deque)
_LARGE = 2**63
"""From here on a whole number is written in hexadecimal: in decimal, Python refuses more than 4,300 digits."""

_SEQUENCES: dict[str, Callable[..., Any]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "iterator": iter,
}
_TEXTS: dict[str, Callable[[str], Any]] = {
    "int": lambda text: int(text, 16),
    "complex": complex,
    "bytes": bytes.fromhex,
    "Decimal": Decimal,
    "Fraction": Fraction,
}


def to_plain(value: Any, other: Callable[[Any], int]) -> Any:
    """`value` as JSON. `other` gives the number of an object that is no plain data."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, numbers.Integral):
        number = int(value)
        return number if -_LARGE < number < _LARGE else ["int", hex(number)]
    if isinstance(value, str):
        return str.__str__(value)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.bool_):
        return bool(value)
    if isinstance(value, numbers.Real) and not isinstance(value, Fraction):  # numpy's among them
        return float(value)
    for kind in (complex, Decimal, Fraction):
        if isinstance(value, kind):
            return [kind.__name__, str(value)]
    if isinstance(value, bytes | bytearray):
        return ["bytes", value.hex()]
    if isinstance(value, dict):
        return ["dict", [[to_plain(key, other), to_plain(item, other)] for key, item in value.items()]]
    for sequence in (list, tuple, set, frozenset):
        if isinstance(value, sequence):
            return [sequence.__name__, [to_plain(item, other) for item in value]]
    if isinstance(value, _ITERATED):
        kind_name = "list" if isinstance(value, range) else "iterator"
        return [kind_name, [to_plain(item, other) for item in itertools.islice(value, _MOST_ITEMS)]]
    return ["object", other(value)]


def from_plain(value: Any, other: Callable[[int], Any]) -> Any:
    """The value of `to_plain`. `other` gives the object with a number.

    Raises:
        ValueError, TypeError, KeyError, ArithmeticError: It is not what `to_plain` makes.
    """
    if not isinstance(value, list):
        return value
    kind, content = value
    if kind == "object":
        return other(content)
    if kind == "dict":
        return {from_plain(key, other): from_plain(item, other) for key, item in content}
    if kind in _TEXTS:
        return _TEXTS[kind](content)
    return _SEQUENCES[kind]([from_plain(item, other) for item in content])
