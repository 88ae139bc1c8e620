"""Why a Countdown completion failed: the taxonomy of the Frontier paper, appendix B.4, as a classifier.

The paper sorted by judgement and gives no thresholds; these rules are ours, and each names the sentence it stands for.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal, get_args

from rollwise.tasks.arithmetic import MAX_LENGTH, evaluate
from rollwise.tasks.base import Text, completion_text
from rollwise.tasks.tags import CLOSE, OPEN, extract_answer

Category = Literal["solved", "repetitive", "format", "other", "arithmetic", "invalid-number-use", "wrong-target"]
CATEGORIES: tuple[str, ...] = get_args(Category)
"""Every category, in the order of precedence."""

LOOP = 16
"""A loop is this many words and signs in the same order, ..."""
LOOPS = 3
"""... this many times without overlap. Shorter turns of phrase ("which is not 22. Let's try") recur in any search."""

_WORD = re.compile(r"\w+|[^\w\s]")
_END = re.compile(r"<\|[^<>|]*\|>|</s>|<pad>")  # end-of-turn marks, where they were not decoded away
_CODE = re.compile(
    r"```|\bdef \w+\(|\bimport \w+|\bprint\(|</?(?!think\b|answer\b|s>|pad>)[a-z][a-z0-9-]*(?: [^<>]*)?/?>",
    re.IGNORECASE,
)


def classify(completion: Text, nums: Sequence[int], target: int) -> Category:
    """The category of a completion for the puzzle `nums` to `target`; "solved" where the verifier's reward is full.

    Failures of the whole generation come before local ones: "repetitive", then "format". What stands in the last
    answer tags is judged by itself alone, so foreign text there is a format error and not corruption.

    - "repetitive" (or incoherent): see `incoherent`.
    - "format": no answer in tags, or one that is no expression.
    - "other": an expression that only this parser's limits refuse, of length or of depth.
    - "arithmetic": an expression without a value: it divides by zero.
    - "invalid-number-use": not each of `nums` exactly once, whatever the value.
    - "wrong-target": each number once, another value.

    >>> classify("<answer>3+5</answer>", [3, 5], 15), classify("<answer>3*5*1</answer>", [3, 5], 15)
    ('wrong-target', 'invalid-number-use')
    """
    text = completion_text(completion)
    answer = extract_answer(text)
    result = evaluate(answer or "")
    right_numbers = sorted(result.literals) == sorted(nums)
    if right_numbers and result.value == target:
        return "solved"
    if incoherent(text):
        return "repetitive"
    if answer is None:
        return "format"
    if result.valid:
        return "wrong-target" if right_numbers else "invalid-number-use"
    if _beyond_limits(answer, result.reason):
        return "other"
    # Division is the one operation without a value: with products in its place, the grammar alone decides.
    return "arithmetic" if evaluate(answer.replace("/", "*")).valid else "format"


def incoherent(text: str) -> bool:
    """Whether a completion is unstable as a whole: appendix B.4, "repetitive or incoherent".

    Any of: an answer tag twice ("repeated answer tags", "multiple inconsistent final answers"); words after the answer
    ("continued reasoning after a final answer"); a loop ("repeated verification loops"); code or markup; letters of
    other scripts than Latin and Greek, or broken characters ("corrupted multilingual fragments"). Text that "no longer
    follows the task" in other ways can't be told by rule.

    >>> incoherent("<answer>3+5</answer> Wait, that is 8."), incoherent("so <answer>3+5</answer>")
    (True, False)
    """
    if text.count(OPEN) > 1 or text.count(CLOSE) > 1:
        return True
    text = _END.sub(" ", text)
    before, opened, rest = text.partition(OPEN)
    after = rest.partition(CLOSE)[2]
    if opened and any(c.isalnum() for c in after):
        return True
    # An answer that was never closed is still part of the running text.
    outside = before if not opened or CLOSE in rest else f"{before} {rest}"
    return bool(_CODE.search(outside)) or _corrupted(outside) or _loops(outside)


def _corrupted(text: str) -> bool:
    return any(_strange(c) for c in set(text) if not c.isascii() or not (c.isprintable() or c in "\n\r\t"))


def _strange(c: str) -> bool:
    category = unicodedata.category(c)
    if category.startswith("L"):
        return not unicodedata.name(c, "").startswith(("LATIN", "GREEK", "MICRO", "MATHEMATICAL", "SCRIPT", "DOUBLE"))
    return c == "\N{REPLACEMENT CHARACTER}" or category in ("Cc", "Cn", "Co", "Cs")


def _loops(text: str) -> bool:
    words = _WORD.findall(text)
    last: dict[tuple[str, ...], tuple[int, int]] = {}
    for at in range(len(words) - LOOP + 1):
        gram = tuple(words[at : at + LOOP])
        times, free_from = last.get(gram, (0, 0))
        if at >= free_from:
            if times + 1 == LOOPS:
                return True
            last[gram] = times + 1, at + LOOP
    return False


def _beyond_limits(answer: str, reason: str) -> bool:
    return not re.search(r"[^-+*/() 0-9]", answer) and (len(answer) > MAX_LENGTH or reason.startswith("nested"))
