"""Judges predict a prompt's outcome before any rollout: the policy itself, a value model, or your own."""

from rollwise.judges.asking import ExemplarChoice, InContextJudge, spread_out
from rollwise.judges.base import MAX_VARIANCE, Judge, Measure, Predicts, Prompts
from rollwise.judges.embedding import EmbeddingJudge
from rollwise.judges.formats import (
    FORMATS,
    BoxedFormat,
    CompactFormat,
    DigitFormat,
    Exemplar,
    JudgmentFormat,
    ListingFormat,
    WordsFormat,
)
from rollwise.judges.prose import prose_of
from rollwise.judges.questions import Answer, Lesson, Question, plain_text
from rollwise.judges.registry import JUDGES, make_judge
from rollwise.judges.text import TextJudge

__all__ = [
    "FORMATS",
    "JUDGES",
    "MAX_VARIANCE",
    "Answer",
    "BoxedFormat",
    "CompactFormat",
    "DigitFormat",
    "EmbeddingJudge",
    "Exemplar",
    "ExemplarChoice",
    "InContextJudge",
    "Judge",
    "JudgmentFormat",
    "Lesson",
    "ListingFormat",
    "Measure",
    "Predicts",
    "Prompts",
    "Question",
    "TextJudge",
    "WordsFormat",
    "make_judge",
    "plain_text",
    "prose_of",
    "spread_out",
]
