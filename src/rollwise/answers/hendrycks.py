r"""Whether two answers are the same after the normalisation of Hendrycks et al. (MATH, 2021): text, not algebra."""

from __future__ import annotations

import re

_WITHOUT = ("\n", "\\!", "\\left", "\\right", "^{\\circ}", "^\\circ", "\\$", "\\%", "%", "$")
_FRACTION = re.compile(r"\\[td]frac")
_LETTERED = re.compile(r"\\frac(?P<up>[^{\\\s])(?P<down>\{[^{}]*\}|[^{}\\\s])")
_ROOT = re.compile(r"\\sqrt(?P<of>[^{\[\\\s])")
_POINT = re.compile(r"(?<![\d])\.(?=\d)")
_QUOTIENT = re.compile(r"(-?\d+)/(-?\d+)")


def hendrycks_equal(gold: str, answer: str) -> bool:
    r"""Whether two answers are equal once normalised as MATH's own scorer does; `math_equal` forgives more.

    >>> hendrycks_equal(r"\frac{1}{2}", "1/2"), hendrycks_equal("10", r"x = 10 \text{ cm}"), hendrycks_equal("2", "4/2")
    (True, True, False)
    """
    return hendrycks_normalised(gold) == hendrycks_normalised(answer)


def hendrycks_normalised(answer: str) -> str:
    r"""An answer without units, spaces, dollar, percent and degree signs, in one form of fractions and roots.

    >>> [hendrycks_normalised(answer) for answer in (r"\dfrac 3{4}", "0.5", r"\sqrt3", ".25")]
    ['\\frac{3}{4}', '\\frac{1}{2}', '\\sqrt{3}', '0.25']
    """
    text = answer.strip().rstrip(".").replace("\\\\", "\\")
    text = _FRACTION.sub(r"\\frac", text)
    text = text.split("\\text{ ")[0]  # a unit behind the number
    for part in _WITHOUT:
        text = text.replace(part, "")
    text = _POINT.sub("0.", text)
    name, equals, value = text.partition("=")
    if equals and "=" not in value and len(name.strip()) <= 2:  # "k = 4"
        text = value
    text = re.sub(r"\s", "", text)
    text = _ROOT.sub(r"\\sqrt{\g<of>}", text)
    text = _LETTERED.sub(lambda found: f"\\frac{{{found['up']}}}{{{found['down'].strip('{}')}}}", text)
    if text == "0.5":
        return "\\frac{1}{2}"
    quotient = _QUOTIENT.fullmatch(text)
    return f"\\frac{{{quotient[1]}}}{{{quotient[2]}}}" if quotient else text
