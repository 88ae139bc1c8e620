"""METIS: the policy judges the candidates itself, and is trained to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Unpack, cast

import numpy as np

from rollwise.curricula.families.judged import JUDGED, Judged
from rollwise.curricula.seam.base import CoreOptions
from rollwise.curricula.seam.picks import Picks
from rollwise.judges import Answer, ExemplarChoice, InContextJudge, JudgmentFormat, Lesson, Question
from rollwise.options import Count, CountOrZero, Share, Weight
from rollwise.pool import PromptPool
from rollwise.tickets.evidence import Evidence

NONE, PENDING, TAKEN = 0, 1, 2
_DIGITS = 18
"""Of a question's number, at most."""
_TALLIES = ("too_long", "exemplars_cut", "stale_answers")
_ANSWER = ("question", "prediction", "spread", "readable")  # columns that say what a candidate's answer was


def judge_reward(predicted: np.ndarray, realised: np.ndarray) -> np.ndarray:
    """R = 1 - (4 (v_hat - v))^2 of variances in [0, 1/4]; METIS, equation 8.

    >>> judge_reward(np.array([0.10]), np.array([0.25])).round(2).tolist()      # 1 - 0.6^2
    [0.64]
    """
    return np.asarray(1.0 - (4.0 * (predicted - realised)) ** 2)


def expected_reward(predicted: Any, realised: Any, spread: Any = 0.0, readable: Any = 1.0) -> np.ndarray:
    """The mean of equation 8 over all answers; unreadable ones earn 0.

    Args:
        predicted: mean of what the readable answers predict, by their probabilities; NaN where none can be read.
        realised: the variance that came.
        spread: the variance of the readable answers' predictions about that mean.
        readable: the probability of all readable answers together.

    Half 0 and half 1/4, against 1/4: half of them earn 0, half 1. The mean prediction alone would earn 0.75:

    >>> expected_reward(1 / 8, 1 / 4, spread=1 / 64).item()
    0.5
    """
    earned = readable * (judge_reward(predicted, realised) - 16.0 * np.asarray(spread))
    return np.asarray(np.nan_to_num(earned, nan=0.0))


class METIS(Judged, name="metis", paper="METIS", needs="the policy's own judgments"):
    r"""The policy predicts each candidate's reward variance, in context, before any rollout; the greatest are taken.

    Zheng et al. 2026, *Internalizing Curriculum Judgment for LLM Reinforcement Fine-Tuning*, Algorithm 1: `consult`
    asks about m B candidates, `ask` takes the B with the greatest predictions, `lessons` says how strongly to reinforce
    each answer. docs/judges.md says how; docs/decisions.md what was decided where the paper leaves it open.

    Args:
        pool: any prompts.
        exemplars: K, examples shown with each question (3). Without any, the paper's policies solved the candidate
            instead of judging it.
        exemplar_choice: "newest", the K most recent pairs (section 4.1), or "spread", K of low to high variance among
            recent ones, rising, as in the paper's examples (appendix B.3).
        judge_weight: lambda (0.01). 0 asks without training the judgment; 1 made the paper's predictions saturate.
        baseline_rate: alpha (0.95), of b <- alpha b + (1 - alpha) mean judge reward, from 0.
        candidate_multiplier: m, candidates for each prompt of the batch (8).
        explore: share of the batch drawn from the candidates whatever was predicted (0).
        default: what an answer without a prediction counts as when the batch is ranked (0.0).
        format: the question: "words" (appendix A.1), "listing" (B.3), "boxed", "digit", "compact", or a
            `JudgmentFormat` of your own.
        answers: "sampled", as in the paper; "expected": the mean over one-token answers, without generating any.
        judge_column: column of texts that the judge reads in place of the prompts; none by default.
        **core: see `CoreOptions`.

    >>> pool = PromptPool(ids=["a", "b", "c"], prompts=["1+1=", "17*23=", "abc"])
    >>> metis = METIS(pool, candidate_multiplier=3, rails="off")
    >>> boxes = {"a": "0.02", "b": "0.25", "c": "0.00"}
    >>> metis.advise([Answer(q.id, "\\boxed{" + boxes[q.prompt_id] + "}") for q in metis.consult(1)])
    >>> [(t.prompt_id, t.predicted_variance) for t in metis.ask(1)]
    [('b', 0.25)]
    """

    unsaved = Judged.unsaved | {"exemplars", "exemplar_choice", "answers"}  # the judge's
    columns_spec = {
        **Judged.columns_spec,
        "question": (np.int64, -1),  # this step's, by number; beside `prediction`, for expected answers:
        "spread": (np.float64, 0.0),
        "readable": (np.float64, 1.0),
        "asked_question": (np.int64, -1),  # of a prompt in flight: the answer by which it was taken, and what it said
        "asked_prediction": (np.float64, np.nan),
        "asked_spread": (np.float64, 0.0),
        "asked_readable": (np.float64, 1.0),
        "lesson": (np.int8, NONE),
        "lesson_question": (np.int64, -1),  # of a prompt told in this step: what it said, what came, what that earns
        "lesson_prediction": (np.float64, np.nan),
        "lesson_reward": (np.float64, np.nan),
        "realised": (np.float64, np.nan),
    }

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        exemplars: CountOrZero = 3,
        exemplar_choice: ExemplarChoice = "newest",
        judge_weight: Weight = 0.01,
        baseline_rate: Share = 0.95,
        candidate_multiplier: Count = 8,
        explore: Share = 0.0,
        default: float = 0.0,
        format: str | JudgmentFormat = "words",
        answers: Literal["sampled", "expected"] = "sampled",
        judge_column: str | None = None,
        **core: Unpack[CoreOptions],
    ) -> None:
        self.weight, self.baseline_rate = judge_weight, baseline_rate
        super().__init__(
            pool,
            judge=InContextJudge(
                exemplars=exemplars, exemplar_choice=exemplar_choice, format=format, expected=answers == "expected"
            ),
            candidate_multiplier=candidate_multiplier,
            explore=explore,
            default=default,
            judge_column=judge_column,
            **core,
        )

    def build(self) -> None:
        super().build()
        self.baseline = 0.0
        self.next_question = 0
        self.answered, self.failed = 0, 0.0  # in this step
        self.tallies = dict.fromkeys(_TALLIES, 0)

    @property
    def judge_weight(self) -> float:
        return self.weight

    # ---- lines 3 and 4: predict, select ----

    @property
    def wants_answers(self) -> bool:
        return True

    @property
    def wants_chances(self) -> bool:
        return bool(self.maker.expected)

    def draw(self, k: int) -> None:
        if self.drawn_at != self.step:
            self.columns["question"][:] = -1
            self.answered, self.failed = 0, 0.0
        super().draw(k)

    def questions(self, k: int) -> list[Question]:
        self.draw(k)
        slots = self.waiting()
        slots = slots[self.columns["question"][slots] < 0]
        made = self.policy.questions(self.next_question, self.prompts_at(slots))
        self.columns["question"][slots] = self.next_question + np.arange(len(slots))
        self.next_question += len(slots)
        return made

    def asked_question(self, question_id: str) -> bool:
        number = question_id[1:] if question_id[:1] == "q" else ""
        return number.isdecimal() and len(number) <= _DIGITS and int(number) < self.next_question

    def read_answers(self, answers: list[Answer]) -> None:
        waiting = self.waiting() if self.drawn_at == self.step else np.empty(0, dtype=np.int64)
        slot_of = dict(zip(self.columns["question"][waiting].tolist(), waiting.tolist(), strict=True))
        for answer in answers:
            slot = slot_of.get(int(answer.question_id[1:]))
            if slot is None:
                self.tallies["stale_answers"] += 1
                continue
            self.columns["candidate"][slot] = JUDGED
            if answer.text is None and answer.prediction is None:  # too long to be asked about
                self.columns["question"][slot] = -1  # no judgment was made, so none is rewarded: b averages R_judge
                self.tallies["too_long"] += 1
                continue
            prediction = self.policy.read(answer)
            self.columns["prediction"][slot] = prediction
            self.columns["spread"][slot] = answer.spread or 0.0
            self.columns["readable"][slot] = answer.readable
            self.answered += 1
            self.failed += 1.0 if np.isnan(prediction) else 1.0 - answer.readable
            offered = self.policy.offered(self.pool.ids[slot])
            self.tallies["exemplars_cut"] += answer.exemplars is not None and answer.exemplars < offered

    def judge_waiting(self) -> None:
        slots = self.waiting()  # not answered: without a prediction, and without a question to be reinforced
        self.columns["question"][slots] = -1
        self.columns["candidate"][slots] = JUDGED

    def ranked_by(self, slots: np.ndarray) -> np.ndarray:
        readable = self.columns["readable"][slots]
        return np.asarray(readable * super().ranked_by(slots) + (1.0 - readable) * (self.default or 0.0))

    def select(self, k: int) -> Picks:
        picks = super().select(k)
        for name in _ANSWER:
            self.columns[f"asked_{name}"][picks.slots] = self.columns[name][picks.slots]
        return picks

    def release(self, slots: np.ndarray) -> None:
        super().release(slots)
        for name in _ANSWER:
            self.columns[f"asked_{name}"][slots] = self.columns_spec[f"asked_{name}"][1]

    # ---- line 5: the judgments' rewards ----

    def observe(self, evidence: Evidence) -> None:
        super().observe(evidence)
        own = self.columns["asked_question"][evidence.slots] >= 0
        told = evidence.where(own & ~evidence.late & (evidence.count > 1))
        self.columns["lesson"][told.slots] = PENDING
        self.columns["lesson_question"][told.slots] = self.columns["asked_question"][told.slots]
        predicted, spread, readable = (self.columns[f"asked_{name}"][told.slots] for name in _ANSWER[1:])
        self.columns["lesson_prediction"][told.slots] = predicted
        self.columns["realised"][told.slots] = told.variance
        self.columns["lesson_reward"][told.slots] = expected_reward(predicted, told.variance, spread, readable)

    def rewards(self, slots: np.ndarray) -> np.ndarray:
        """Rewards (K,) of the judgments of this step's prompts; 0 for an unreadable answer."""
        return np.asarray(self.columns["lesson_reward"][slots])

    def take_lessons(self) -> list[Lesson]:
        """Equation 9: each judgment's reward less the baseline of the steps before."""
        slots = np.flatnonzero(self.columns["lesson"] == PENDING)
        slots = slots[np.argsort(self.columns["lesson_question"][slots])]
        self.columns["lesson"][slots] = TAKEN
        columns = [self.columns[name][slots] for name in ("lesson_question", "lesson_prediction", "realised")]
        rows = zip(*(array.tolist() for array in (*columns, self.rewards(slots))), strict=True)
        return [
            Lesson(f"q{number}", prediction, variance, reward, reward - self.baseline)
            for number, prediction, variance, reward in rows
        ]

    # ---- line 7: memory and baseline ----

    def end_step(self) -> None:
        super().end_step()
        slots = np.flatnonzero(self.columns["lesson"] != NONE)
        if len(slots):
            mean = float(self.rewards(slots).mean())
            self.baseline = self.baseline_rate * self.baseline + (1.0 - self.baseline_rate) * mean
        self.columns["lesson"][slots] = NONE
        self.columns["lesson_question"][slots] = -1
        for name in ("lesson_prediction", "lesson_reward", "realised"):
            self.columns[name][slots] = np.nan

    # ---- looking, saving ----

    @property
    def policy(self) -> InContextJudge:
        """The judge: the policy's memory and format."""
        return cast(InContextJudge, self.judge)

    def own_metrics(self) -> dict[str, float]:
        slots = np.flatnonzero(self.columns["lesson"] != NONE)
        judged = {"judge_reward": float(self.rewards(slots).mean())} if len(slots) else {}
        share = {"judge_failure_rate": self.failed / self.answered} if self.answered else {}
        numbers = {"judge_baseline": self.baseline, "questions": float(self.next_question)}
        return {**super().own_metrics(), **numbers, **judged, **share, **{k: float(v) for k, v in self.tallies.items()}}

    def own_state(self) -> dict[str, Any]:
        return {
            **super().own_state(),
            "baseline": self.baseline,
            "next_question": self.next_question,
            "answered": self.answered,
            "failed": self.failed,
            "tallies": dict(self.tallies),
        }

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        super().load_own_state(state, added)
        self.baseline = float(state["baseline"])
        self.next_question, self.answered = int(state["next_question"]), int(state["answered"])
        self.failed = float(state["failed"])
        self.tallies = {name: int(state["tallies"][name]) for name in _TALLIES}
