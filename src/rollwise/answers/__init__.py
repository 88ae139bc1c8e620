"""Answers in text: the recorded one, the one given, and whether they are the same. For the preflight and for votes."""

from rollwise.answers.comparing import normalised, same_answer, stands_within
from rollwise.answers.hendrycks import hendrycks_equal
from rollwise.answers.maths import check_math, math_equal
from rollwise.answers.reading import boxed_answer, final_answer, marked_answer, recorded_answer, recorded_answers

__all__ = [
    "boxed_answer",
    "check_math",
    "final_answer",
    "hendrycks_equal",
    "marked_answer",
    "math_equal",
    "normalised",
    "recorded_answer",
    "recorded_answers",
    "same_answer",
    "stands_within",
]
