"""Messages between a curriculum that asks a model and the code that runs the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rollwise.judges.formats import Exemplar, JudgmentFormat


@dataclass(frozen=True, slots=True)
class Question:
    """One candidate that the policy is to judge before it is rolled out.

    Attributes:
        id: what an `Answer` names.
        prompt_id: the candidate's durable id.
        candidate: its text.
        exemplars: recent prompts with the variance of their rollouts: the oldest first, or of rising variance.
        format: how it is rendered and its answer read.
        expected: no answer is to be generated; `format.choices` holds those whose probabilities are asked for.
        spread: the exemplars are of rising variance; where not all fit, those that are kept are spread over them. Else
            the newest are kept.
    """

    id: str
    prompt_id: str
    candidate: str
    exemplars: tuple[Exemplar, ...]
    format: JudgmentFormat
    expected: bool = False
    spread: bool = False

    def context(self, exemplars: int | None = None) -> str | list[dict[str, Any]]:
        """What to give the model, chat messages or text; with only `exemplars` of them where not all fit."""
        return self.format.context(self.kept(exemplars), self.candidate)

    def kept(self, exemplars: int | None = None) -> tuple[Exemplar, ...]:
        """The exemplars that the context shows; None for all of them.

        >>> from rollwise.judges import CompactFormat
        >>> shown = tuple(Exemplar(text, 0.0) for text in "abc")
        >>> question = Question("q0", "p", "x", shown, CompactFormat(), spread=True)
        >>> ["".join(exemplar.text for exemplar in question.kept(n)) for n in (1, 2, 3)]
        ['b', 'ac', 'abc']
        """
        all_ = len(self.exemplars)
        if exemplars is None or not self.spread:
            return self.exemplars[all_ - (all_ if exemplars is None else exemplars) :]
        return tuple(self.exemplars[(2 * i + 1) * all_ // (2 * exemplars)] for i in range(exemplars))


@dataclass(frozen=True, slots=True)
class Answer:
    """What the policy answered.

    Attributes:
        question_id: the question's id.
        text: the whole answer; None if it could not be asked, because the candidate alone is too long for the model.
        exemplars: how many of the exemplars it was shown; None for all of them.
        prediction: of an `expected` question, the mean of `format.choices` by the policy's probabilities, normalised.
        readable: of an `expected` question, the probability of all of `format.choices` together.
        spread: of an `expected` question, the variance of `format.choices` about `prediction` by the same
            probabilities, in [0, 1/64]: what its judgment earns on average depends on it.
    """

    question_id: str
    text: str | None
    exemplars: int | None = None
    prediction: float | None = None
    readable: float = 1.0
    spread: float | None = None


@dataclass(frozen=True, slots=True)
class Lesson:
    """What the rollouts of a judged prompt say about its judgment: how strongly to reinforce the answer's tokens.

    Attributes:
        question_id: the question's id.
        prediction: the variance predicted; NaN for an answer that could not be read.
        variance: the realised one.
        reward: of the judgment, METIS's equation 8; of an `expected` question its mean over all answers.
        advantage: `reward` less the baseline, the factor of the gradient in equation 9.
    """

    question_id: str
    prediction: float
    variance: float
    reward: float
    advantage: float


def plain_text(context: str | list[dict[str, Any]]) -> str:
    r"""A context as text, for a model without a chat template.

    >>> plain_text([{"role": "system", "content": "Judge."}, {"role": "user", "content": "2+2="}])
    'Judge.\n\n2+2=\n\n'
    """
    return context if isinstance(context, str) else "".join(f"{message['content']}\n\n" for message in context)
