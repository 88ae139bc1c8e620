r"""Whether two answers are the same after the normalisation of Hendrycks et al. (MATH, 2021): text, not algebra.

It is that of their scorer (github.com/hendrycks/math, `math_equivalence.py`), its oddities included: only so do scores
compare with those of others. `\sqrt 3` is not `\sqrt{3}` there, and dollar signs around an answer count.
"""

from __future__ import annotations

import re

_UNIT = "\\text{ "  # as in `10\text{ cm}`
_GONE = ("\\left", "\\right", "^{\\circ}", "^\\circ", "\\$")
_QUOTIENT = re.compile(r"(0|-?[1-9][0-9]*)/(0|-?[1-9][0-9]*)")


def hendrycks_equal(gold: str, answer: str) -> bool:
    r"""Whether two answers are equal once normalised as MATH's own scorer does; `math_equal` forgives more.

    >>> hendrycks_equal(r"\frac{1}{2}", "1/2"), hendrycks_equal("10", r"x = 10 \text{ cm}"), hendrycks_equal("2", "4/2")
    (True, True, False)
    """
    forms = hendrycks_normalised(gold), hendrycks_normalised(answer)
    return gold == answer if None in forms else forms[0] == forms[1]


def hendrycks_normalised(answer: str) -> str | None:
    r"""An answer without units, spaces, percent and degree signs, in one form of fractions and roots.

    None where MATH's scorer fails, and compares the answers as they are: two units, or a root or fraction of nothing.

    >>> [hendrycks_normalised(answer) for answer in (r"\dfrac 3{4}", "0.5", r"\sqrt3", ".25", r"\sqrt")]
    ['\\frac{3}{4}', '\\frac{1}{2}', '\\sqrt{3}', '0.25', None]
    """
    text = answer.replace("\n", "").replace("\\!", "").replace("\\\\", "\\")
    text = text.replace("tfrac", "frac").replace("dfrac", "frac")
    for part in _GONE:
        text = text.replace(part, "")
    if text.count(_UNIT) > 1:
        return None
    text = text.partition(_UNIT)[0].replace("\\%", "").replace("%", "")
    text = text.replace(" .", " 0.").replace("{.", "{0.")
    text = f"0{text}" if text.startswith(".") else text
    name, *values = text.split("=")
    if len(values) == 1 and len(name) <= 2:  # "k = 4"
        text = values[0]
    first, *roots = text.split("\\sqrt")
    if "" in roots:
        return None
    text = first + "".join(f"\\sqrt{_braced(own, 1)}" for own in roots)
    text = text.replace(" ", "")
    first, *fractions = text.split("\\frac")
    odd = next((own for own in fractions if len(own) < 2 and own != "{"), None)
    if odd == "":
        return None
    if odd is None:  # of a fraction with a single sign behind it all stay as they are
        text = first + "".join(f"\\frac{_braced(own, 2)}" for own in fractions)
    if text == "0.5":
        return "\\frac{1}{2}"
    quotient = _QUOTIENT.fullmatch(text)
    return f"\\frac{{{quotient[1]}}}{{{quotient[2]}}}" if quotient else text


def _braced(text: str, arguments: int) -> str:
    """A command's text with braces around its first arguments, single signs, as far as it has none: 12 is {1}{2}.

    >>> _braced("12x", 2), _braced("1{72}", 2), _braced("{1}2", 2)
    ('{1}{2}x', '{1}{72}', '{1}2')
    """
    if not arguments or text.startswith("{"):
        return text
    return f"{{{text[0]}}}{_braced(text[1:], arguments - 1)}"
