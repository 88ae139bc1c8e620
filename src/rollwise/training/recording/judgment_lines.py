"""The lines of `judgments.jsonl`: a sample of each step's judgments, with what came of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from rollwise.training.generation.groups import Groups
from rollwise.training.generation.messages import JudgedPrompt

LONGEST = 2000
"""Signs of a prompt or an answer that are kept; of an exemplar, a quarter of that."""

BEST, WORST, UNREADABLE, CHANCE = "best", "worst", "unreadable", "chance"


def judgment_lines(groups: Groups, most: int) -> list[dict[str, Any]]:
    """A line for each of at most `most` judgments: the best, the worst, one that can't be read, and an even sample.

    `sample` says why a line is there; those that say "chance" are an unbiased sample of the others. Candidates are
    drawn by chance, so that an even sample of them is one.
    """
    judged = groups.judged
    predictions = [prediction_of(one) for one in judged]
    chosen = sample_of(judged, predictions, most)
    return [
        {"step": groups.step, **_line(judged[row], predictions[row]), "sample": why, "asked": len(judged)}
        for row, why in sorted(chosen.items())
    ]


def prediction_of(one: JudgedPrompt) -> float | None:
    """The variance that an answer predicts; None where it can't be read."""
    judgment = one.judgment
    if judgment.prediction is not None:
        return None if math.isnan(judgment.prediction) else judgment.prediction
    return None if judgment.text is None else one.question.format.read(judgment.text)


def sample_of(judged: Sequence[JudgedPrompt], predictions: Sequence[float | None], most: int) -> dict[int, str]:
    """At most `most` rows, and why each is among them."""
    rewards = {
        row: one.lesson.reward
        for row, one in enumerate(judged)
        if one.lesson is not None and predictions[row] is not None
    }
    named: dict[int, str] = {}
    if rewards:
        named[max(rewards, key=lambda row: rewards[row])] = BEST
        named.setdefault(min(rewards, key=lambda row: rewards[row]), WORST)
    unread = next((row for row, value in enumerate(predictions) if value is None), None)
    if unread is not None:
        named[unread] = UNREADABLE
    named = dict(list(named.items())[:most])
    others = [row for row in range(len(judged)) if row not in named]
    wanted = min(most - len(named), len(others))
    even = np.linspace(0, len(others) - 1, max(wanted, 0)).round().astype(int).tolist()
    return named | {others[at]: CHANCE for at in even}


def _line(one: JudgedPrompt, prediction: float | None) -> dict[str, Any]:
    question, judgment, lesson = one.question, one.judgment, one.lesson
    shown = question.kept(judgment.exemplars)
    expected = {"readable": judgment.readable, "spread": judgment.spread} if question.expected else {}
    return {
        "question": question.id,
        "prompt_id": question.prompt_id,
        "prompt": cut(question.candidate, LONGEST),
        "exemplars": [{"prompt": cut(e.text, LONGEST // 4), "variance": e.variance} for e in shown],
        "answer": None if judgment.text is None else cut(judgment.text, LONGEST),
        "prediction": prediction,
        **expected,
        "realised": None if lesson is None else lesson.variance,
        "reward": None if lesson is None else lesson.reward,
        "chosen": one.chosen,
    }


def cut(text: str, longest: int) -> str:
    """A text with its middle left out where it is too long: an answer ends with its prediction.

    >>> cut("abcdefghijklmnop", 10)
    'abcd...nop'
    """
    if len(text) <= longest:
        return text
    end = (longest - 3) // 2
    return f"{text[: longest - 3 - end]}...{text[-end:]}"
