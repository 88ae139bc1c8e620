"""Finds what looks answered among rollouts that earned nothing: answers misread by the reward, labels that are wrong.

Hints, not verdicts: each is shown with the text it rests on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

Kind = Literal["answer-given", "answer-within", "all-agree"]

ANSWER_COLUMNS = ("answer", "ground_truth", "solution", "gold", "label", "expected_answer", "final_answer")
"""Where recorded answers usually are; and `reward_model.ground_truth`, as verl has it."""

MEANINGS: dict[Kind, str] = {
    "answer-given": "the recorded answer is the final answer of a rollout that earned nothing",
    "answer-within": "the recorded answer stands within a rollout that earned nothing",
    "all-agree": "all rollouts agree on another answer than the recorded one: a wrong label?",
}

_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:/\d+)?")
_TAGGED = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE)
_HASHED = re.compile(r"####\s*(.+)")
_SAID = re.compile(r"(?:final answer|answer is|answer:)\s*(?:is|:)?\s*\**\s*(?P<said>[^\n]+)", re.IGNORECASE)
_LONGEST_NUMBER = 10_000
"""Characters of a number up to which its value is looked at; longer ones are compared as text."""

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
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_LEAST_WITHIN = 3
"""An answer of fewer letters or digits stands in many a text by chance."""


@dataclass(frozen=True)
class Suspect:
    """A prompt no rollout of which was solved, though some look answered.

    Attributes:
        id: The prompt's.
        kind: What is suspicious; see `MEANINGS`.
        rollouts: How many of its rollouts show it.
        recorded: The recorded answer.
        text: The rollout that shows it.
        reward: That rollout's.
    """

    id: str
    kind: Kind
    rollouts: int
    recorded: str
    text: str
    reward: float | None


def recorded_answer(row: Mapping[str, Any], column: str | None = None) -> str | None:
    """The recorded answer of a row: of `column`, else of the first usual one that it has; None where there is none.

    A worked solution counts by its final answer, if it marks one.

    >>> recorded_answer({"answer": "18 - 4 = 14 eggs. #### 14"}), recorded_answer({"target": 5})
    ('14', None)
    """
    names = ANSWER_COLUMNS if column is None else (column,)
    value = next((row[name] for name in names if row.get(name) is not None), None)
    if value is None and column is None and isinstance(row.get("reward_model"), Mapping):
        value = row["reward_model"].get("ground_truth")
    if value is None or isinstance(value, Mapping) or (isinstance(value, list | tuple) and len(value) != 1):
        return None
    text = str(value[0] if isinstance(value, list | tuple) else value)
    return (_marked(text) or text).strip() or None


def final_answer(text: str) -> str | None:
    r"""What a completion gives as its answer: what it marks as such, else its last number, else a short last line.

    >>> final_answer(r"so \boxed{\frac{1}{2}}."), final_answer("2 and 3 make 1,005."), final_answer("hm\nParis")
    ('\\frac{1}{2}', '1005', 'Paris')
    """
    marked = _marked(text)
    if marked is not None:
        return marked
    numbers = _NUMBER.findall(_THOUSANDS.sub("", text))
    if numbers:
        return str(numbers[-1])
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines and len(lines[-1].strip()) <= 40 else None


def same_answer(one: str, other: str) -> bool:
    """Whether two answers are the same, but for case, commas, spaces, dollar signs and a full stop; 4 is 4.0.

    >>> same_answer("1,005", "$1005."), same_answer("4", "4.0"), same_answer("4", "14")
    (True, True, False)
    """
    first, second = normalised(one), normalised(other)
    if first == second:
        return True
    if not (_NUMBER.fullmatch(first) and _NUMBER.fullmatch(second)):
        return False
    return _value(first) == _value(second)


def normalised(answer: str) -> str:
    """An answer without case, commas, spaces, dollar signs, asterisks and a full stop at its end."""
    return re.sub(r"[\s,$*]", "", answer.casefold()).rstrip(".")


def stands_within(answer: str, text: str) -> bool:
    """Whether a number stands in the text as a number, or other text as it is, but for case, commas and spaces.

    >>> stands_within("14", "so 140"), stands_within("14", "14.0, then"), stands_within("new york", "in New  York.")
    (False, True, True)
    """
    wanted = normalised(answer)
    if _NUMBER.fullmatch(wanted):
        return any(_value(number) == _value(wanted) for number in _NUMBER.findall(_THOUSANDS.sub("", text)))
    return bool(wanted) and wanted in normalised(text)


def find_suspect(
    id_: str, recorded: str | None, texts: Sequence[str], rewards: Sequence[float | None]
) -> Suspect | None:
    """What is suspicious of a prompt none of whose n rollouts was solved; None if nothing is.

    >>> find_suspect("a", "7", ["I say 7.", "9"], [0.0, 0.0]).kind
    'answer-given'
    """
    if recorded is None:
        return None
    finals = [final_answer(text) for text in texts]
    given = [i for i, final in enumerate(finals) if final is not None and same_answer(final, recorded)]
    within = [
        i
        for i, text in enumerate(texts)
        if len(normalised(recorded)) >= _LEAST_WITHIN and stands_within(recorded, text)
    ]
    agreed = Counter("" if final is None else normalised(final) for final in finals)
    alike = len(agreed) == 1 and "" not in agreed and len(texts) > 1
    kind: Kind
    if given:
        kind, at = "answer-given", given
    elif within:
        kind, at = "answer-within", within
    elif alike:
        kind, at = "all-agree", list(range(len(texts)))
    else:
        return None
    return Suspect(id_, kind, len(at), recorded, texts[at[0]], rewards[at[0]])


def _marked(text: str) -> str | None:
    boxed = _boxed(text)
    if boxed is not None:
        return boxed
    for pattern in (_TAGGED, _HASHED):
        found = pattern.findall(text)
        if found and found[-1].strip():
            return str(found[-1]).strip().rstrip(".*")
    last = next(reversed(list(_SAID.finditer(text))), None)
    if last is None or not last["said"].strip():
        return None
    before = text[last.start() : last.start("said")]
    return _said(last["said"].strip(), may_be_list=":" in before or "\n" in before).strip().rstrip(".*")


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
        if re.search(r"(?:^|[^=\s])\s*\b1$", last):  # a list's first mark
            return said
        word = re.search("[A-Za-z]+$", last)
        if word is None or not _ABBREVIATION.fullmatch(word[0]):
            return said[: end.start()]
    return said


def _boxed(text: str) -> str | None:
    start = text.rfind("\\boxed{")
    if start < 0:
        return None
    depth, begin = 1, start + len("\\boxed{")
    for at in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[begin:at].strip() or None
    return None


def _value(number: str) -> Fraction | float:
    """Exactly, as all whole numbers from 2^53 on share a float with others; NaN for a division by 0, or a monster."""
    if len(number) > _LONGEST_NUMBER:
        return float("nan")
    numerator, _, denominator = number.partition("/")
    below = Fraction(Decimal(denominator or "1"))  # by Decimal: Python's whole numbers take 4,300 digits of text
    return Fraction(Decimal(numerator)) / below if below else float("nan")
