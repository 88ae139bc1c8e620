"""How a model is asked for a judgment, and how its answer is read."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rollwise.errors import ConfigError
from rollwise.judges.base import MAX_VARIANCE


@dataclass(frozen=True, slots=True)
class Exemplar:
    """A prompt and the variance that its rollouts had."""

    text: str
    variance: float


class JudgmentFormat(ABC):
    """Renders the context [instruction; exemplars; candidate], and reads the answer."""

    name: ClassVar[str]
    max_tokens: ClassVar[int]
    """Enough tokens for an answer."""
    begins: ClassVar[str] = ""
    """What an answer begins with, put into the model's mouth: part of the context, and not of what `read` is given."""
    choices: ClassVar[Mapping[str, float]] = {}
    """Where every answer that can be read begins with one of a few tokens: these, with the variance that each says."""

    @abstractmethod
    def context(self, exemplars: Sequence[Exemplar], candidate: str) -> str | list[dict[str, Any]]:
        """What the model is given: chat messages, or text."""

    @abstractmethod
    def read(self, answer: str) -> float | None:
        """The variance predicted, in [0, 1/4]; None if there is none to be found."""


_LEVELS = "0.00, 0.02, 0.04, 0.06, 0.08, 0.10, 0.12, 0.15, 0.18, 0.20, 0.25"
_SYSTEM = rf"""You are a predictor that estimates the reward variance for a candidate problem. Reward variance is the \
variance of the rewards across multiple solution attempts by the current model on the same problem. High variance \
means rollouts disagree --- some attempts score well and others poorly --- which is exactly the regime where GRPO has \
the strongest learning signal. Low variance means rollouts agree (the model consistently passes or consistently \
fails), so there is little gradient to extract.
The labeled examples show actual reward variances from recent model performance; use them to calibrate your prediction.
Output your final prediction inside \boxed{{}}, choosing one number from this list: [{_LEVELS}]. Example final line: \
\boxed{{0.10}}.""".replace("\\\n", "")
_SYSTEM_ALONE = rf"""You are a predictor that estimates the reward variance for a candidate problem.
Reward variance definition: the variance of the rewards across multiple solution attempts by the current model on the \
same problem.
High variance means rollouts disagree -- some attempts score well and others poorly -- which is exactly the regime \
where GRPO has the strongest learning signal.
Low variance means rollouts agree (the model consistently passes or consistently fails), so there is little gradient \
to extract.
Output your final prediction inside \boxed{{}}, choosing one number from this exact list: [{_LEVELS}].
Example final line: \boxed{{0.10}}""".replace("\\\n", "")
_CALIBRATION = (
    "Calibration: The labeled examples show actual reward variances from recent model performance. Use them to "
    "calibrate your prediction.\n"
)
_SYSTEM_LISTED = _SYSTEM_ALONE.replace("Output your final", _CALIBRATION + "Output your final")
_DIGITS = (
    "Variances are given as one digit, from 0 for a variance of 0.00 to 9 for the greatest one, 0.25. Output your "
    "final prediction, one digit, inside \\boxed{}. Example final line: \\boxed{4}."
)
_REQUEST = (
    "Predict the reward variance for the next problem. The examples below show actual reward variances from recent "
    "model performance. Use them to calibrate your prediction. Put your final variance prediction inside \\boxed{}."
)
_REQUEST_LISTED = _REQUEST.replace(". ", ".\n")
_REQUEST_ALONE = r"""Predict the reward variance for the next problem.
Put your final variance prediction inside \boxed{}."""
_BOXED = re.compile(r"\\boxed\s*\{([^{}]*)\}")
_BRACES = re.compile(r"\\boxed\s*\{|\\\\(?!boxed)|\\[{}]|[{}]")
_NUMBER = re.compile(r"[+]?(\d+(\.\d*)?|\.\d+)")


class WordsFormat(JudgmentFormat):
    r"""The template of METIS's appendix A.1: a system message, and a user message with the exemplars and the candidate.

    Without exemplars (K = 0, a memory that is still empty, or no room for any) both messages are those of appendix B.4,
    which speak of no examples. Where the paper's listings break a sentence only because the line is full, we do not.

    The prediction is what the last `\boxed{}` of the answer holds, if that is a number in [0, 1/4]; whatever the model
    reasons before is free. Anything else in that box, such as an ordinary answer, is a judgment that failed (appendix
    B.4). A prompt's own triple quotes, which would end its quotation, are given as single ones; a `\boxed{}` in a
    prompt does no harm, as the answer alone is read.

    >>> WordsFormat().read(r"Neither \boxed{0.3} nor \boxed{0.02}. Finally: \boxed{0.10}")
    0.1
    """

    name = "words"
    max_tokens = 512
    system = _SYSTEM
    system_alone = _SYSTEM_ALONE
    """The system message where there are no exemplars."""
    request = _REQUEST
    """How the user message begins where there are exemplars."""

    def context(self, exemplars: Sequence[Exemplar], candidate: str) -> list[dict[str, Any]]:
        parts = [self.request if exemplars else _REQUEST_ALONE]
        for number, exemplar in enumerate(exemplars, start=1):
            said = self.said(exemplar.variance)
            parts.append(f"[Example {number}]\n{_quoted(exemplar.text)}\nREWARD_VARIANCE: {said}")
        parts.append(f"[Candidate]\n{_quoted(candidate)}")
        system = self.system if exemplars else self.system_alone
        return [{"role": "system", "content": system}, {"role": "user", "content": "\n".join(parts)}]

    def said(self, variance: float) -> str:
        """How an exemplar's variance is written."""
        return f"{variance:.3f}"

    def read(self, answer: str) -> float | None:
        box = _last_box(answer)
        return None if box is None else _variance(box)


class ListingFormat(WordsFormat):
    r"""The template as the paper's listings print what its models were given (appendix B.3); B.4's, without exemplars.

    It differs from appendix A.1's, which `WordsFormat` has, in a few words: "this exact list", "Calibration:",
    "Reward variance definition:".

    >>> ListingFormat().context([Exemplar("1+1=", 0.0)], "3*4=")[0]["content"].split("\n")[4].split()[0]
    'Calibration:'
    """

    name = "listing"
    system = _SYSTEM_LISTED
    request = _REQUEST_LISTED


class BoxedFormat(WordsFormat):
    r"""The same template, and the model begins its answer with `\boxed{0.`: it gives a number, and nothing else.

    For a model that solves the candidate instead of judging it, and where judgments are to be cheap: a few tokens each.
    What a larger model could find out by reasoning first is lost.

    >>> BoxedFormat().read("12}"), BoxedFormat().read("3} is too much")
    (0.12, None)
    """

    name = "boxed"
    max_tokens = 6
    begins = r"\boxed{0."

    def read(self, answer: str) -> float | None:
        box = _BOXED.match(self.begins + answer)
        return _variance(box.group(1)) if box else None


class DigitFormat(WordsFormat):
    r"""The same template with a digit for an answer, 0 for a variance of 0 to 9 for 1/4, and its box already open.

    An answer is one token, so that nothing need be generated: `METIS(answers="expected")` reads how probable each digit
    is.

    >>> DigitFormat().read("4}"), DigitFormat().read("x"), DigitFormat().said(0.25)
    (0.1111111111111111, None, '9')
    """

    name = "digit"
    max_tokens = 2
    begins = r"\boxed{"
    system = _SYSTEM[: _SYSTEM.index("Output your final")] + _DIGITS
    system_alone = _SYSTEM_ALONE[: _SYSTEM_ALONE.index("Output your final")] + _DIGITS
    choices: ClassVar[Mapping[str, float]] = {str(digit): digit * MAX_VARIANCE / 9 for digit in range(10)}

    def said(self, variance: float) -> str:
        return str(_ninths(variance))

    def read(self, answer: str) -> float | None:
        return self.choices.get(answer[:1])


def _last_box(answer: str) -> str | None:
    r"""What stands in the `\boxed{}` that begins last, of those whose braces balance; it may hold braces of its own."""
    opened: list[tuple[bool, int]] = []  # one pass: a model in a loop writes very many boxes without an end
    begin, last = -1, None
    for mark in _BRACES.finditer(answer):
        sign = mark[0]
        if sign == "{" or sign.startswith("\\boxed"):
            opened.append((sign != "{", mark.end()))
        elif sign == "}" and opened:
            boxed, start = opened.pop()
            if boxed and start > begin:
                begin, last = start, answer[start : mark.start()]
    return last


def _variance(box: str) -> float | None:
    """The number in a box, if it is a variance."""
    if not _NUMBER.fullmatch(box.strip()):
        return None
    value = float(box)
    return value if value <= MAX_VARIANCE else None


def _ninths(variance: float) -> int:
    """A variance in ninths of the greatest one, 0 to 9, rounded."""
    return round(min(variance, MAX_VARIANCE) / MAX_VARIANCE * 9)


def _quoted(text: str) -> str:
    inside = text.replace('"""', "'''")
    return f'PROMPT:\n"""\n{inside}\n"""'


class CompactFormat(JudgmentFormat):
    """For a small policy that follows no instruction: each prompt, a question mark, and a letter for its variance.

    The letters a to j stand for 0, 1/36, ... 9/36, so a for none and j for 1/4. Of exemplars `1,2:3=` with 1/4 and
    `4,5:99=` with 0 and the candidate `6,7:42=` the context is

        1,2:3=?j4,5:99=?a6,7:42=?

    and the answer one letter. None of these signs occurs in the embedded tasks, so a judgment can't be mistaken for an
    answer. The embedded policy's warm start can teach it to give a letter, though not which: see
    `rollwise.models.judging`.

    >>> CompactFormat().context([Exemplar("1,2:3=", 0.25)], "6,7:42=")
    '1,2:3=?j6,7:42=?'
    >>> CompactFormat().read("j"), CompactFormat().read("42")
    (0.25, None)
    """

    name = "compact"
    max_tokens = 4
    letters = "abcdefghij"
    steps = len(letters) - 1
    choices: ClassVar[Mapping[str, float]] = {letter: i * MAX_VARIANCE / 9 for i, letter in enumerate(letters)}

    def context(self, exemplars: Sequence[Exemplar], candidate: str) -> str:
        known = "".join(f"{exemplar.text}?{self.letter(exemplar.variance)}" for exemplar in exemplars)
        return f"{known}{candidate}?"

    def read(self, answer: str) -> float | None:
        return self.choices.get(answer.strip())

    def letter(self, variance: float) -> str:
        """The letter nearest to a variance."""
        return self.letters[_ninths(variance)]


FORMATS: dict[str, type[JudgmentFormat]] = {
    kind.name: kind for kind in (WordsFormat, ListingFormat, BoxedFormat, DigitFormat, CompactFormat)
}


def make_format(format: str | JudgmentFormat) -> JudgmentFormat:
    """The format of a name in `FORMATS`, or a format itself; `ConfigError` for anything else."""
    if isinstance(format, JudgmentFormat):
        return format
    if not isinstance(format, str) or format not in FORMATS:
        raise ConfigError(f"format must be one of {sorted(FORMATS)} or a JudgmentFormat, got {format!r}")
    return FORMATS[format]()
