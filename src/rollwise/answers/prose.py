"""What a sentence such as "The answer is 18 dollars, since ..." gives as its answer."""

from __future__ import annotations

import re

# No two \s* beside one another: many newlines after "answer is" would take the cube of their number.
_SAID = re.compile(
    r"""(?:final\ answers?(?!\w|[.,;!?]|[^\S\n]+(?!(?:is|are)\b)(?-i:[a-z]))  # not "the final answer by ..."
    |answer\ is(?![^\W\d_])|answer(?=\**:))\**\s*(?:(?:is|are)\b\s*(?::\s*)?|:\s*)?(?:\*+\s*)?
    (?:the\ (?:final\ )?answer\ is\b\s*(?::\s*)?)?  # "Final Answer: The final answer is $5$"
    (?:(?:\\\[|\$\$)[^\S\n]*\n\s*)?  # the mark of a formula, alone on its line
    (?P<said>[^\n]+)""",
    re.IGNORECASE | re.VERBOSE,
)
_FIRST_NUMBER = re.compile(
    r"""(?:\\[(\[$]|[$*\s])*  # $18$, **18**, \(18\)
    (?P<number>[-+]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:e[-+]?\d+)?(?:/\d+)?
    (?:\s*(?:\\?%|percent\b|per\ cent\b))?)
    (?:\\[)\]]|[$*])*""",
    re.IGNORECASE | re.VERBOSE,
)
_AFTER_NUMBER = re.compile(
    r"""(?P<unit>(?:\s{1,9}[A-Za-z][A-Za-z'-]{0,29}(?:/[A-Za-z]+)?(?:\^\{?[23]\}?|[²³])?){0,8}?)
    (?:\s{0,9}(?:[.!*$)]|\\[)\]])*$  # nothing but marks
    |(?P<stop>[*$]*[.!])[*$]*\s{1,9}(?=[A-Z])  # the sentence's end
    |[*$]*,?\s{1,9}(?:since|because|given|which\s+is|as(?!\s+(?:well|many|much)))\b)  # a reason""",
    re.VERBOSE,
)
_SHORT_UNIT = re.compile(r"[cm]m|k[gm]|m[gil]|ft|in|oz|lbs?|hrs?|y[dr]|yrs|k[bw]|[gm]b|[km]ph|usd", re.IGNORECASE)
_NO_UNIT = re.compile(
    r"""\b(?:and|or|nor|to|by|times|plus|minus|over|through|between|until|than|less|negative|below|under|point|with
    |without|remainder|mod|modulo|choose|if|unless|when|where|while|but|not|except|otherwise|either|is|are|was|were|be
    |has|have|equals?|more|fewer|early|earlier|late|later|before|after|ago|doubled|tripled|alpha|beta|gamma|delta
    |epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|omicron|pi|rho|sigma|tau|upsilon|phi|chi|psi|omega
    |sqrt|root|squared|cubed|factorial|sin|cos|tan|log|exp|power|base|binary|octal
    |hexadecimal|abc|half|halves|(?:third|quarter|fourth|fifth|sixth|seventh|eighth|ninth|tenth)s?
    |(?:hundred|thousand)(?:th)?s?|[mbt]r?illions?|dozens?|score|couple|mille|as|well|[ap]m|bce?|ad
    |zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve
    |(?:thir|four|fif|six|seven|eigh|nine)teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty)\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""After a number it makes another one of it, or may: then all is left as it stands."""

_SENTENCE_END = re.compile(r"(?<=[^\s.!?])(?:\.|(?<=[A-Za-z])[!?])(?=[)\"'*$]*\s+[A-Z])")
_ABBREVIATION = re.compile(
    r"[a-z]|mrs?|ms|dr|prof|[sm]t|gen|col|capt|lt|sgt|rev|hon|[js]r|vs|no|fig|eq|approx|inc|co", re.IGNORECASE
)


def answer_said(text: str) -> str | None:
    """What the last "the answer is", "answer:" or "final answer" of a text says; None where there is none.

    >>> answer_said("First 12. The answer is 18 dollars."), answer_said("18 dollars")
    ('18', None)
    """
    last = next(reversed(list(_SAID.finditer(text))), None)
    if last is None or not last["said"].strip():
        return None
    before = text[last.start() : last.start("said")]
    return _said(last["said"].strip(), may_be_list=":" in before or "\n" in before).strip().rstrip(".*") or None


def _said(said: str, *, may_be_list: bool) -> str:
    """What "the answer is ..." says: a number without its unit or reason, else its first sentence; in doubt, all.

    A vote counts equal answers, so to cut too little costs samples, and to cut too much makes different ones equal.

    Args:
        said: The rest of the line.
        may_be_list: Whether a list may begin here, of which "1." would be the first mark.
    """
    number = _FIRST_NUMBER.match(said)
    if number is None:
        return _first_sentence(said)
    after = _AFTER_NUMBER.match(said, number.end())
    if after is None or not _is_unit(after["unit"]):
        return _first_sentence(said)
    factorial = said[number.end() :].lstrip().startswith("!")
    first_mark = may_be_list and number[0] == "1" and not after["unit"] and after["stop"]
    return said if factorial or first_mark else str(number["number"])


def without_unit(answer: str) -> str:
    """The number of an answer that is a number and a unit in words; any other answer as it is.

    >>> without_unit("18 dollars"), without_unit("3 dozen"), without_unit("2 x")
    ('18', '3 dozen', '2 x')
    """
    number = _FIRST_NUMBER.match(answer)
    after = None if number is None else _AFTER_NUMBER.match(answer, number.end())
    if number is None or after is None or after.end() < len(answer) or not after["unit"]:
        return answer
    return number["number"] if _is_unit(after["unit"]) else answer


def _is_unit(text: str) -> bool:
    """Whether the words after a number are a unit, as far as one can tell; none are."""
    first, *more = (re.split(r"[/^²³]", word)[0] for word in text.split() or [""])
    if _NO_UNIT.search(text) or any(len(word) == 1 and word != "a" for word in more):
        return False
    if not first or _SHORT_UNIT.fullmatch(first):
        return True
    return len(first) > 2 and not first.isupper() and bool(re.search("[aeiou]", first))  # of 3 xy and 3 AB who knows


def _first_sentence(said: str) -> str:
    for end in _SENTENCE_END.finditer(said):
        last = said[max(0, end.start() - 20) : end.start()]
        if last.endswith("1") and re.search(r"(?:^|[^=\s])\s*\b1$", last):  # a list's first mark
            return said
        word = re.search("[A-Za-z]+$", last)
        if word is None or not _ABBREVIATION.fullmatch(word[0]):
            return said[: end.start()]
    return said
