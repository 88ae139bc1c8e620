"""The answer that a row of data records, and the one that a completion gives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rollwise.answers.comparing import numbers_of
from rollwise.answers.prose import answer_said

ANSWER_COLUMNS = ("answer", "ground_truth", "solution", "gold", "label", "expected_answer", "final_answer")
"""Where recorded answers usually are; and `reward_model.ground_truth`, as verl has it."""

_THOUGHT = "</think>"
_TAG = re.compile("</?answer>", re.IGNORECASE)
_HASHED = re.compile(r"(?<!#)####(?!#)\s*(.+)")
_BRACES = re.compile(r"\\{1,4}(?:boxed|fbox)\s*\{|\\.|[{}]", re.DOTALL)  # \\boxed too: escaped twice


def recorded_answer(row: Mapping[str, Any], column: str | None = None) -> str | None:
    """The recorded answer of a row, None where there is none or several; see `recorded_answers`.

    >>> recorded_answer({"answer": "18 - 4 = 14 eggs. #### 14"}), recorded_answer({"answer": ["Rome", "Roma"]})
    ('14', None)
    """
    found = recorded_answers(row, column)
    return found[0] if len(found) == 1 else None


def recorded_answers(row: Mapping[str, Any], column: str | None = None) -> list[str]:
    """The recorded answers of a row, each of which is right: of `column`, else of the first usual one that it has.

    A worked solution counts by its final answer, if it marks one.

    >>> recorded_answers({"answer": "18 - 4 = 14 eggs. #### 14"}), recorded_answers({"answer": ["Rome", "Roma"]})
    (['14'], ['Rome', 'Roma'])
    """
    names = ANSWER_COLUMNS if column is None else (column,)
    value = next((row[name] for name in names if row.get(name) is not None), None)
    if value is None and column is None and isinstance(row.get("reward_model"), Mapping):
        value = row["reward_model"].get("ground_truth")
    texts = map(_answer_text, value if isinstance(value, list | tuple) else [value])
    return [text for text in texts if text is not None]


def _answer_text(value: Any) -> str | None:
    if value is None or isinstance(value, Mapping) or value != value:  # NaN, which tables have for nothing
        return None
    text = str(int(value) if isinstance(value, float) and value.is_integer() else value)  # 4.0 of a column with gaps
    return (marked_answer(text) or text).strip() or None


def final_answer(text: str) -> str | None:
    r"""What a completion gives as its answer: what it marks as such, else its last number, else a short last line.

    >>> final_answer(r"so \boxed{\frac{1}{2}}."), final_answer("2 and 3 make 1,005."), final_answer("hm\nParis")
    ('\\frac{1}{2}', '1005', 'Paris')
    """
    marked = marked_answer(text)
    if marked is not None:
        return marked
    numbers = numbers_of(text)
    if numbers:
        return numbers[-1]
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines and len(lines[-1].strip()) <= 40 else None


def marked_answer(text: str) -> str | None:
    r"""The answer that a text marks as such: `\boxed{}`, `<answer>`, `####`, "the answer is"; None where it marks none.

    Of a text with `</think>` what stands behind it, if it marks one there.

    >>> marked_answer("4 and 5 are 9 #### 9"), marked_answer("Step 1: 4 and 5")
    ('9', None)
    """
    after_thought = text.rpartition(_THOUGHT)[2]
    if after_thought != text and (said := marked_answer(after_thought)) is not None:
        return said
    boxed = boxed_answer(text)
    if boxed is not None:
        return boxed
    for found in (_tagged(text), _hashed(text)):
        if found and found.strip():
            return (answer_said(found) or found).strip().rstrip(".*")
    return answer_said(text)


def _hashed(text: str) -> str | None:
    """What the last `####` marks: its line at the end of the text, or a number alone. Elsewhere it is a heading."""
    end = len(text.rstrip())
    for mark in reversed(list(_HASHED.finditer(text))):
        said = mark[1].strip()
        if mark.end() >= end or (" " not in said and any(map(str.isdigit, said))):
            return said
    return None


def _tagged(text: str) -> str | None:
    """What stands in the last pair of tags; one pass, as a model in a loop writes very many tags without an end."""
    last, start = None, None
    for tag in _TAG.finditer(text):
        if tag[0].startswith("</"):
            last, start = (last if start is None else text[start : tag.start()]), None
        elif start is None:
            start = tag.end()
    return last


def boxed_answer(text: str) -> str | None:
    r"""What stands in the last `\boxed{}` whose braces balance; None where there is none, or it is blank.

    >>> boxed_answer(r"\boxed{1}, no: \boxed{\frac{1}{2}} and \boxed{3"), boxed_answer("1/2")
    ('\\frac{1}{2}', None)
    """
    opened: list[tuple[bool, int]] = []  # one pass, as a model in a loop writes very many boxes without an end
    begin, last = -1, None
    for mark in _BRACES.finditer(text):
        if mark[0][-1] == "{" and mark[0] != "\\{":
            opened.append((mark[0] != "{", mark.end()))
        elif mark[0] == "}" and opened:
            boxed, start = opened.pop()
            if boxed and start > begin:
                begin, last = start, text[start : mark.start()]
    return (last or "").strip() or None
