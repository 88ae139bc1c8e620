"""Whether two answers are the same, as a vote or a record of answers takes them."""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from fractions import Fraction

TEXT = re.compile(r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mbox)\s*\{([^{}\\]*)\}")
r"""Words as LaTeX has them: `\text{Alice}`."""

_NUMBER = re.compile(
    r"""(?:(?<![\w.)])[-+])?  # not that of 7-3 or COVID-19
    (?:\d+(?:\.\d+)?|(?<![\w.])\.\d+)(?:e[-+]?\d{1,4}(?!\w))?(?:/\d+)?""",
    re.IGNORECASE | re.VERBOSE,
)
_MINUS = "\N{MINUS SIGN}"
_THOUSANDS = re.compile(r"(?<![\d.])[1-9]\d{0,2}(?:,\d{3}(?!\d))+")
_SPACED_THOUSANDS = re.compile(r"(?<![\d.])[1-9]\d{0,2}(?:(?:, ?| )\d{3}(?!\d))+")
_BETWEEN_NUMBERS = re.compile(r"(?<=\d)(?:\s*,\s*(?=[-+]?\.?\d)|\s+(?=\.?\d))")
_TIMES = re.compile(r"(?<=\d)(?:\*+|\s+\*+\s+)(?=\.?\d)")
_LONGEST_NUMBER = 10_000
"""Characters of a number up to which its value is looked at; longer ones are compared as text."""


def same_answer(one: str, other: str) -> bool:
    """Whether two answers are the same, but for case, commas, spaces, dollar signs and a full stop; 4 is 4.0.

    Commas and spaces count between numbers, unless they mark thousands.

    >>> same_answer("1,005", "$1005."), same_answer("4", "4.0"), same_answer("4", "14"), same_answer("1,2", "12")
    (True, True, False, False)
    """
    first, second = normalised(one), normalised(other)
    if first == second:
        return True
    if not (_NUMBER.fullmatch(first) and _NUMBER.fullmatch(second)):
        return False
    return _value(first) == _value(second)


def normalised(answer: str) -> str:
    r"""An answer without case, spaces, `\text{}`, `$`, `*` and a full stop at its end; commas between numbers alone.

    >>> normalised("Paris, France."), normalised("1 2"), normalised("1,234"), normalised(r"\text{Alice}")
    ('parisfrance', '1,2', '1234', 'alice')
    """
    text = unicodedata.normalize("NFC", answer)  # an accent may be a sign of its own
    text = _SPACED_THOUSANDS.sub(_joined, TEXT.sub(r"\1", text).casefold().replace(_MINUS, "-"))
    text = _TIMES.sub(lambda sign: sign[0].strip().replace("*", "\N{MULTIPLICATION SIGN}"), text)
    parts = _BETWEEN_NUMBERS.split(text)
    return ",".join(re.sub(r"[\s,$*]", "", part) for part in parts).rstrip(".")


def stands_within(answer: str, text: str) -> bool:
    """Whether a number stands in the text as a number, or other text as it is, but for case, commas and spaces.

    >>> stands_within("14", "so 140"), stands_within("14", "14.0, then"), stands_within("new york", "in New  York.")
    (False, True, True)
    """
    wanted = normalised(answer)
    if _NUMBER.fullmatch(wanted):
        value = _value(wanted)
        return any(_value(number) == value for number in set(numbers_of(text)))
    return bool(wanted) and wanted in normalised(text)


def numbers_of(text: str) -> list[str]:
    """The numbers of a text in their order, without commas between thousands.

    >>> numbers_of("2 of 1,005, or 1/2"), numbers_of("7-3 is not -.5")
    (['2', '1005', '1/2'], ['7', '3', '-.5'])
    """
    found: list[str] = _NUMBER.findall(_THOUSANDS.sub(_joined, text.replace(_MINUS, "-")))
    return found


def _joined(thousands: re.Match[str]) -> str:
    return re.sub("[, ]", "", thousands[0])


def _value(number: str) -> Fraction | float:
    """Exactly, as all whole numbers from 2^53 on share a float with others; NaN for a division by 0, or a monster."""
    if len(number) > _LONGEST_NUMBER:
        return float("nan")
    numerator, _, denominator = number.partition("/")
    below = Fraction(Decimal(denominator or "1"))  # by Decimal: Python's whole numbers take 4,300 digits of text
    return Fraction(Decimal(numerator)) / below if below else float("nan")
