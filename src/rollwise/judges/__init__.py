"""Judges: what predicts how a prompt will fare before any rollout. The policy itself, a value model, or your own."""

from rollwise.judges.asking import InContextJudge
from rollwise.judges.base import MAX_VARIANCE, Judge, Predicts, Prompts
from rollwise.judges.formats import FORMATS, CompactFormat, Exemplar, JudgmentFormat, WordsFormat
from rollwise.judges.questions import Answer, Lesson, Question, plain_text

__all__ = [
    "FORMATS",
    "MAX_VARIANCE",
    "Answer",
    "CompactFormat",
    "Exemplar",
    "InContextJudge",
    "Judge",
    "JudgmentFormat",
    "Lesson",
    "Predicts",
    "Prompts",
    "Question",
    "WordsFormat",
    "plain_text",
]
