"""The part of the seam that asks a model: `consult` for questions, `advise` with its answers, `lessons` to train it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rollwise.curricula.seam.exclusive import Busy, exclusive
from rollwise.curricula.seam.flow import Flow
from rollwise.errors import TicketError
from rollwise.judges import MAX_VARIANCE, Answer, Lesson, Question
from rollwise.options import check_whole, is_number, several, shown


class Consulting(Flow):
    """Questions out, answers in. A method that asks no model leaves its hooks alone, and `consult` gives nothing."""

    busy: Busy

    @exclusive
    def consult(self, n: int, *, step: int | None = None) -> list[Question]:
        """What the policy should be asked before `ask(n)`; nothing, unless the method chooses by a model's judgment.

        Have the present policy answer, `advise`, then `ask`. Without answers the method uses its documented fallback.

        Args:
            n: how many prompts will be asked for.
            step: as in `ask`; a step that is given need not be given again to the `ask` that follows.

        Raises:
            ConfigError: a number out of range. Nothing has changed then.
            ConcurrentUseError: another call is running. Nothing has changed.
        """
        n = check_whole("n", n, least=1)
        if not self.wants_answers:
            return []
        self._begin(step)
        self.step_begun = True
        return self.questions(self._eligible(n))

    @exclusive
    def advise(self, answers: Iterable[Answer]) -> None:
        """Tell what the policy answered, in any order, in one call or several; an answer of an earlier step is ignored.

        Raises:
            TicketError: a question that was never asked, named twice, an answer that is not text, or a prediction,
                probability or number of exemplars out of range. Nothing has changed then.
        """
        if not several(answers):
            raise TicketError(f"advise takes a list of Answer objects, got {shown(answers)}")
        checked: dict[str, Answer] = {}
        for answer in answers:
            if not isinstance(answer, Answer) or not isinstance(answer.question_id, str):
                raise TicketError(f"advise takes Answer objects, each with the id of a question, got {shown(answer)}")
            if answer.question_id in checked:
                raise TicketError(f"question {answer.question_id!r} is named twice in one advise")
            if answer.text is not None and not isinstance(answer.text, str):
                raise TicketError(f"the answer to {answer.question_id!r} must be text or None, got {answer.text!r:.80}")
            _check_share(answer, "prediction", answer.prediction, MAX_VARIANCE)
            _check_share(answer, "readable", answer.readable, 1.0, needed=True)
            _check_share(answer, "spread", answer.spread, MAX_VARIANCE**2 / 4)
            if answer.prediction is not None and answer.spread is None:
                raise TicketError(
                    f"the answer to {answer.question_id!r} has a prediction and no spread, without which its reward is "
                    "not known; give the variance of the choices about the prediction too, 0 if there is but one"
                )
            if answer.exemplars is not None and not is_number(answer.exemplars, whole=True):
                raise TicketError(
                    f"exemplars of {answer.question_id!r} must be a whole number or None, got {shown(answer.exemplars)}"
                )
            if not self.asked_question(answer.question_id):
                raise TicketError(f"no question {answer.question_id!r} was ever asked")
            checked[answer.question_id] = answer
        self.read_answers(list(checked.values()))

    @exclusive
    def lessons(self) -> list[Lesson]:
        """What this step's rollouts say of the judgments of their prompts, each given once; for the judge loss."""
        return self.take_lessons()

    @property
    def judge_weight(self) -> float:
        """Lambda, the weight of the judge loss beside the policy's (METIS, equation 10); 0 where there is none."""
        return 0.0

    # ---- hooks ----

    @property
    def wants_answers(self) -> bool:
        """Whether `consult` can ever give anything."""
        return False

    @property
    def wants_chances(self) -> bool:
        """Whether its questions are `expected`: it asks for the probabilities of answers, and for no answer."""
        return False

    def questions(self, k: int) -> list[Question]:
        """About the candidates for the next `k` prompts; those that were asked about in this step are not repeated."""
        return []

    def asked_question(self, question_id: str) -> bool:
        """Whether there has been such a question."""
        return False

    def read_answers(self, answers: list[Answer]) -> None:
        """Take answers to distinct questions."""

    def take_lessons(self) -> list[Lesson]:
        """See `lessons`."""
        return []


def _check_share(answer: Answer, name: str, value: Any, high: float, *, needed: bool = False) -> None:
    if (needed or value is not None) and not (is_number(value) and 0.0 <= value <= high):
        raise TicketError(f"{name} of {answer.question_id!r} must be a number in [0, {high:g}], got {value!r:.80}")
