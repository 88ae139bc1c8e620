"""How a Countdown puzzle is put to a model, and how its answer is found in what the model wrote."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rollwise.answers import boxed_answer
from rollwise.answers.comparing import TEXT
from rollwise.tasks.tags import CLOSE, CONVERSATION, OPEN, SEC

# The wording is TinyZero's (github.com/Jiayi-Pan/TinyZero, Apache-2.0), kept as it is so that results compare.
_QUESTION = (
    "Using the numbers {nums}, create an equation that equals {target}. You can use basic arithmetic operations "
    "(+, -, *, /) and each number can only be used once. Show your work in <think> </think> tags. And return the final "
    "answer in <answer> </answer> tags, for example <answer> (1 + 2) / 3 </answer>."
)
_CONVERSATION = CONVERSATION + "{question}\nAssistant: Let me solve this step by step.\n<think>"
_SYSTEM = (
    "You are a helpful assistant. You first think about the reasoning process in the mind and then provide the user "
    "with the answer."
)

# SEC's wording (appendix C).
_BOXED = SEC.format(
    question="Using the numbers {nums}, create an equation that equals {target}. You can only use basic arithmetic "
    "operations (+, -, *, /) and each number should be used exactly once. Return the final answer in \\boxed{{}}, for "
    "example \\boxed{{(1 + 2) / 3}}."
)
_SIGNS = {"\\times": "*", "\\cdot": "*", "\\div": "/", "\u00d7": "*", "\u00f7": "/", "\u2212": "-"}
_LATEX = {**_SIGNS, "\\left": "", "\\right": "", "\\ ": " ", "\\,": " ", "$": ""}
_FRACTION = re.compile(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}")

# Style -> how many new tokens are enough. Compact: four two-digit numbers, three operators, four parentheses, two
# tags, end of text. Search: four tries of three numbers to 9, or one of four two-digit numbers. TinyZero: the paper's
# responses stay below 300.
STYLES: dict[str, int] = {"compact": 18, "search": 80, "tinyzero": 512, "tinyzero-chat": 512, "boxed": 512}

BARE = ("compact", "search")
"""Styles whose prompt is the puzzle alone."""


def longest_answer(nums: Sequence[int]) -> int:
    """Tokens of the longest answer of a bare style: digits, operators, parentheses, two tags, end of text.

    >>> longest_answer([10, 20, 30, 40]), longest_answer([25, 50, 75, 100, 3, 6])
    (18, 27)
    """
    return sum(len(str(n)) for n in nums) + (len(nums) - 1) + 2 * max(0, len(nums) - 2) + 3


def render_prompt(style: str, nums: Sequence[int], target: int) -> str | list[dict[str, str]]:
    """The prompt of a puzzle: text, or messages for `tinyzero-chat`.

    >>> render_prompt("compact", [7, 3, 5], 22)
    '7,3,5:22='
    """
    if style in BARE:
        return f"{','.join(map(str, nums))}:{target}="
    if style == "boxed":
        return _BOXED.format(nums=list(nums), target=target)
    question = _QUESTION.format(nums=list(nums), target=target)
    if style == "tinyzero":
        return _CONVERSATION.format(question=question)
    return [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": question}]


def render_completion(style: str, expression: str, *, work: str = "") -> Any:
    """The completion that answers with `expression`, in the same form as the style's prompts.

    The `work` shown before the answer is that of `compact` and `search`; the other styles have words of their own.

    >>> render_completion("compact", "3*5+7")
    '<answer>3*5+7</answer>'
    """
    if style in BARE:
        return f"{work}{OPEN}{expression}{CLOSE}"
    if style == "boxed":
        return f" I try {expression}.\nThe answer is \\boxed{{{expression}}}"
    answer = f" I try {expression}. </think>\n{OPEN} {expression} {CLOSE}"
    if style == "tinyzero":
        return answer
    return [{"role": "assistant", "content": f"<think>{answer}"}]


def with_tags(style: str, text: str) -> str:
    r"""A completion of any style with its answer in answer tags: of `boxed`, what stands in the last `\boxed{}`.

    >>> with_tags("boxed", r"so \boxed{2 \times 3}."), with_tags("boxed", r"\boxed{\frac{4 + 2}{3}}")
    ('so <answer>2 * 3</answer>', '<answer>((4 + 2)/(3))</answer>')
    """
    if style != "boxed":
        return text
    text = text.replace(OPEN, "").replace(CLOSE, "")
    answer = boxed_answer(text)
    if answer is None:
        return text
    before = text[: text.rfind(answer)].rpartition("\\")[0]
    answer = TEXT.sub(r"\1", answer)
    for written, plain in _LATEX.items():
        answer = answer.replace(written, plain)
    answer = _FRACTION.sub(r"((\1)/(\2))", answer)
    return f"{before}{OPEN}{answer}{CLOSE}"
