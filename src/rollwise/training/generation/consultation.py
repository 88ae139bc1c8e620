"""What the policy was asked about a batch's candidates, what it answered, what came of that and what it cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rollwise.curricula import Curriculum
from rollwise.judges import Lesson, Question
from rollwise.judges.base import summed
from rollwise.tickets.ticket import Ticket
from rollwise.training.generation.messages import Inquiry, JudgedPrompt, Judgment


class Consultation:
    """The judgments of one batch.

    Args:
        curriculum: asks the questions, and is told the answers.
        flops_per_token: what reading or generating a token takes with the policy.
    """

    def __init__(self, curriculum: Curriculum, flops_per_token: float = 0.0) -> None:
        self.curriculum, self.flops_per_token = curriculum, flops_per_token
        self.costs: dict[str, float] = {}
        self._questions: list[Question] = []
        self._judgments: list[Judgment] = []
        self._lessons: dict[str, Lesson] = {}

    def add(self, spent: Mapping[str, float]) -> None:
        """Add what the judging has cost; its tokens are the policy's, where `flops` does not say what they took."""
        if spent and "flops" not in spent:
            tokens = spent.get("tokens", 0.0) + spent.get("context_tokens", 0.0)
            spent = {**spent, "flops": self.flops_per_token * tokens}
        self.costs = summed([self.costs, spent])

    def ask(self, n: int, *, step: int) -> Inquiry | None:
        """The questions about the candidates of the next `ask` for `n` prompts; None where there are none."""
        questions = self.curriculum.consult(n, step=step)
        self._questions += questions
        return Inquiry(questions) if questions else None

    def advise(self, judgments: list[Judgment], *, seconds: float) -> None:
        """Tell the curriculum what was answered to the questions asked last; `seconds` that took."""
        self.curriculum.advise(judgment.answer() for judgment in judgments)
        self._judgments += judgments
        self.add(
            {
                "questions": float(len(judgments)),
                "tokens": float(sum(len(j.answer_ids) for j in judgments)),
                "context_tokens": float(sum(len(j.context_ids) for j in judgments)),
                "s": seconds,
            }
        )

    def lessons(self) -> list[Lesson]:
        """What the rollouts say of the judgments."""
        lessons = self.curriculum.lessons()
        self._lessons |= {lesson.question_id: lesson for lesson in lessons}
        return lessons

    def judged(self, tickets: Iterable[Ticket]) -> list[JudgedPrompt]:
        """Every candidate that was asked about, in the order asked; those of `tickets` were chosen."""
        chosen = {ticket.prompt_id for ticket in tickets}
        return [
            JudgedPrompt(question, judgment, self._lessons.get(question.id), question.prompt_id in chosen)
            for question, judgment in zip(self._questions, self._judgments, strict=True)
        ]
