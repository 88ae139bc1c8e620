"""How a puzzle of reasoning-gym is put to a model, and where its answer stands in what the model wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rollwise.tasks.gym.items import Item
from rollwise.tasks.tags import CLOSE, OPEN, extract_answer

# Style -> how many new tokens are enough.
STYLES: dict[str, int] = {"line": 32, "tags": 512, "chat": 512}

_TAGS = "Give the final answer between <answer> and </answer>."


def render(style: str, question: str, shots: Sequence[Item]) -> str | list[dict[str, str]]:
    r"""The prompt of a question after worked examples: text, or messages for `chat`.

    >>> render("line", "2+2?", [Item("1+1?", "2")])
    'Question: 1+1?\nAnswer: 2\n\nQuestion: 2+2?\nAnswer:'
    """
    if style == "chat":
        turns = [(f"{shot.question}\n{_TAGS}", answered(style, shot.answer)) for shot in shots]
        made = [{"role": role, "content": text} for turn in turns for role, text in zip(_ROLES, turn, strict=True)]
        return [*made, {"role": "user", "content": f"{question}\n{_TAGS}"}]
    ask = "Question: {}\nAnswer:" if style == "line" else f"Question: {{}}\n{_TAGS}\nAnswer:"
    worked = [f"{ask.format(shot.question)} {answered(style, shot.answer)}\n\n" for shot in shots]
    return "".join(worked) + ask.format(question)


_ROLES = ("user", "assistant")


def answered(style: str, answer: str) -> str:
    """An answer as the style wants it."""
    return answer if style == "line" else f"{OPEN}{answer}{CLOSE}"


def completion(style: str, answer: str) -> Any:
    r"""The completion that gives this answer, in the form of the style's prompts.

    >>> completion("line", "4"), completion("tags", "4")
    (' 4\n', ' <answer>4</answer>')
    """
    if style == "chat":
        return [{"role": "assistant", "content": answered(style, answer)}]
    return f" {answered(style, answer)}" + ("\n" if style == "line" else "")


def answer_in(style: str, text: str) -> str | None:
    r"""The answer of a completion: its first line, or what stands in the last answer tags; None if that is blank.

    >>> answer_in("line", " 4\n\nQuestion:"), answer_in("tags", "so <answer>4</answer>"), answer_in("line", "\n")
    ('4', '4', None)
    """
    if style == "line":
        return text.lstrip(" ").split("\n", 1)[0].strip() or None
    return extract_answer(text)


def stop_texts(style: str) -> tuple[str, ...]:
    """Texts that complete an answer."""
    return ("\n",) if style == "line" else (CLOSE,)
