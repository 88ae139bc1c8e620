"""Whether a program's output is the expected one."""

from __future__ import annotations

import re
from decimal import Decimal

_NUMBER = re.compile(r"[-+]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,4})?")  # 0011 is a text of bits
_LONGEST = 100


def same_output(given: str, expected: str) -> bool:
    r"""Whether two outputs have the same words in the same lines. Numbers are compared by value.

    Spaces at the ends of lines and empty lines at the end do not count. A number with zeros before it is a text.

    >>> same_output("1 2.0\n\n", "1 2"), same_output("1\n2", "1 2"), same_output("yes", "Yes")
    (True, False, False)
    """
    ours, theirs = given.rstrip().splitlines(), expected.rstrip().splitlines()
    return len(ours) == len(theirs) and all(map(_same_line, ours, theirs))


def _same_line(given: str, expected: str) -> bool:
    if given == expected:
        return True
    ours, theirs = given.split(), expected.split()
    return len(ours) == len(theirs) and all(map(_same_word, ours, theirs))


def _same_word(given: str, expected: str) -> bool:
    if given == expected:
        return True
    numbers = all(len(word) <= _LONGEST and _NUMBER.fullmatch(word) for word in (given, expected))
    return numbers and Decimal(given) == Decimal(expected)
