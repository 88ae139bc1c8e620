"""Words that tasks share: what stands before a question, and the tags in which a completion marks its answer."""

from __future__ import annotations

OPEN, CLOSE = "<answer>", "</answer>"

CONVERSATION = (
    "A conversation between User and Assistant. The user asks a question, and the Assistant solves it. The assistant "
    "first thinks about the reasoning process in the mind and then provides the user with the answer.\nUser: "
)
"""Before a question of TinyZero's (github.com/Jiayi-Pan/TinyZero, Apache-2.0) and of SEC's."""
SEC = CONVERSATION + "{question} Assistant: Let me solve this step by step."
"""A prompt of SEC's (appendix C)."""


def extract_answer(text: str) -> str | None:
    """What stands in the last complete pair of answer tags, stripped; None if there is no pair or it is blank.

    The whole completion is searched, where TinyZero looks at its last line only. A blank answer is no answer (the
    Frontier paper, appendix B.4, counts it as a format error), where TinyZero pays for empty tags.

    >>> extract_answer("<answer>1+2</answer> no: <answer> 2*3 </answer>")
    '2*3'
    """
    last_close = text.rfind(CLOSE)
    start = text.rfind(OPEN, 0, last_close) if last_close >= 0 else -1
    if start < 0:
        return None
    start += len(OPEN)
    return text[start : text.index(CLOSE, start)].strip() or None
