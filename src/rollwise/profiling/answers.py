"""Finds what looks answered among rollouts that earned nothing: answers misread by the reward, labels that are wrong.

Hints, not verdicts: each is shown with the text it rests on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
_SAID = re.compile(r"(?:final answer|answer is|answer:)\s*(?:is|:)?\s*\**\s*([^\n]+)", re.IGNORECASE)
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
    for pattern in (_TAGGED, _HASHED, _SAID):
        found = pattern.findall(text)
        if found and found[-1].strip():
            return str(found[-1]).strip().rstrip(".*")
    return None


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


def _value(number: str) -> float:
    numerator, _, denominator = number.partition("/")
    below = float(denominator) if denominator else 1.0
    return float(numerator) / below if below else float("nan")
