"""METIS against its Algorithm 1, with a policy that is played; every number is worked out beside it."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rollwise as rw
from rollwise.curricula.metis import judge_reward
from rollwise.judges import Exemplar


def plain(n: int) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(n)], prompts=[f"prompt {i}" for i in range(n)])


def boxed(value: float) -> str:
    return f"I think \\boxed{{{value:.2f}}}"


def answers(questions: Sequence[rw.Question], say: Callable[[str], str | None]) -> list[rw.Answer]:
    return [rw.Answer(q.id, say(q.prompt_id)) for q in questions]


def outcome(ticket: rw.Ticket, solved: int, of: int = 4) -> rw.Outcome:
    return rw.Outcome(ticket.id, [1.0] * solved + [0.0] * (of - solved))


def number(prompt_id: str) -> int:
    return int(prompt_id[1:])


def test_the_defaults_are_the_papers() -> None:
    """Table 5: K = 3, lambda = 0.01, baseline rate 0.95, pool multiplier 8."""
    metis = rw.METIS()
    assert metis.maker.options == {"exemplars": 3, "format": "words", "expected": False}
    assert (metis.judge_weight, metis.baseline_rate, metis.candidate_multiplier) == (0.01, 0.95, 8)


def test_the_judges_reward_by_hand() -> None:
    """Equation 8: 1 - (4 * 0)^2 = 1; 1 - (4 * 0.25)^2 = 0; 1 - (4 * (0.10 - 0.16))^2 = 1 - 0.24^2 = 0.9424."""
    assert judge_reward(np.array([0.2, 0.25, 0.10]), np.array([0.2, 0.0, 0.16])) == pytest.approx([1.0, 0.0, 0.9424])


def test_one_step_of_algorithm_1() -> None:
    """m B = 3 * 2 candidates; the two predicted highest are taken; rewards, baseline and memory as on paper.

    p0 .25, p1 .20, others lower. p0 comes out 2 of 4 (v = .25), p1 4 of 4 (v = 0). Rewards: 1 and 1 - (4*.2)^2 = .36;
    the baseline is 0 in the first step, then .05 * (1 + .36) / 2 = .034.
    """
    said = {"p0": 0.25, "p1": 0.20, "p2": 0.0, "p3": 0.1, "p4": 0.15, "p5": 0.18}
    metis = rw.METIS(plain(6), candidate_multiplier=3, rails="off")
    questions = metis.consult(2)
    assert sorted(q.prompt_id for q in questions) == sorted(said)
    assert all(q.exemplars == () for q in questions)
    metis.advise(answers(questions, lambda p: boxed(said[p])))
    tickets = metis.ask(2, n_rollouts=4)
    assert [(t.prompt_id, t.predicted_variance, t.lane) for t in tickets] == [
        ("p0", 0.25, "judged"),
        ("p1", 0.2, "judged"),
    ]
    metis.tell([outcome(tickets[0], 2), outcome(tickets[1], 4)])
    lessons = {lesson.question_id: lesson for lesson in metis.lessons()}
    by_prompt = {q.prompt_id: lessons[q.id] for q in questions if q.id in lessons}
    assert by_prompt["p0"].reward == by_prompt["p0"].advantage == 1.0
    assert by_prompt["p1"].reward == by_prompt["p1"].advantage == pytest.approx(0.36)
    assert (by_prompt["p1"].prediction, by_prompt["p1"].variance) == (0.2, 0.0)
    assert metis.lessons() == []  # each is given once
    assert metis.metrics()["judge_reward"] == pytest.approx(0.68)

    again = metis.consult(2)
    assert metis.metrics()["judge_baseline"] == pytest.approx(0.034)
    assert {q.exemplars for q in again} == {again[0].exemplars}
    assert set(again[0].exemplars) == {Exemplar("prompt 0", 0.25), Exemplar("prompt 1", 0.0)}
    metis.advise(answers(again, lambda p: boxed(said[p])))
    tickets = metis.ask(2, n_rollouts=4)
    metis.tell([outcome(t, 2) for t in tickets])
    lesson = next(x for x in metis.lessons() if x.prediction == 0.25)
    assert lesson.advantage == pytest.approx(1.0 - 0.034)


def test_the_memory_holds_the_newest_pairs() -> None:
    """K = 3 of the last step's 4; the oldest come first in the context."""
    metis = rw.METIS(plain(40), candidate_multiplier=2, rails="off")
    for _ in range(3):
        metis.advise(answers(metis.consult(4), lambda p: boxed(0.1)))
        tickets = metis.ask(4)
        metis.tell([outcome(t, number(t.prompt_id) % 5) for t in tickets])
    metis.ask(1)
    texts = {f"prompt {number(t.prompt_id)}" for t in tickets}
    assert len(metis.policy.memory) == 3
    assert {e.text for e in metis.policy.memory} < texts
    for exemplar in metis.policy.memory:  # variance of k of 4 solved: k(4 - k) / 16
        k = int(exemplar.text.split()[1]) % 5
        assert exemplar.variance == pytest.approx(k * (4 - k) / 16)


def test_continuous_rewards_have_their_variance() -> None:
    """Rewards .2, .4, .6, .8: mean .5, variance (.09 + .01 + .01 + .09) / 4 = .05; said .05, so the reward is 1."""
    metis = rw.METIS(plain(1), rails="off")
    metis.advise(answers(metis.consult(1), lambda p: boxed(0.05)))
    (ticket,) = metis.ask(1)
    metis.tell([rw.Outcome(ticket.id, [0.2, 0.4, 0.6, 0.8])])
    (lesson,) = metis.lessons()
    assert (lesson.variance, lesson.reward) == (pytest.approx(0.05), pytest.approx(1.0))


def test_no_parseable_judgment_at_all() -> None:
    """Every answer fails: the batch is a uniform draw, each judgment of a prompt rolled out earns 0."""
    metis = rw.METIS(plain(400), candidate_multiplier=4, rails="off", seed=1)
    asked: list[str] = []
    for _ in range(40):
        metis.advise(answers(metis.consult(8), lambda p: "The answer is 42."))
        tickets = metis.ask(8)
        asked += [t.prompt_id for t in tickets]
        assert {(t.lane, t.predicted_variance) for t in tickets} == {("unjudged", None)}
        metis.tell([outcome(t, 2) for t in tickets])
        lessons = metis.lessons()
        assert len(lessons) == 8
        assert all(x.reward == 0.0 and np.isnan(x.prediction) for x in lessons)
    assert metis.metrics()["judge_failure_rate"] == 1.0
    assert 190 < len(set(asked)) < 250  # 320 draws with replacement of 400 find 400(1 - e^-0.8) = 220


def test_all_equal_predictions_are_a_draw_by_the_seed() -> None:
    def first(seed: int) -> list[str]:
        metis = rw.METIS(plain(200), rails="off", seed=seed)
        metis.advise(answers(metis.consult(4), lambda p: boxed(0.25)))
        return [t.prompt_id for t in metis.ask(4)]

    assert first(0) == first(0)
    assert len({tuple(first(seed)) for seed in range(8)}) == 8


def test_a_failure_counts_as_the_middle_of_the_range() -> None:
    """.20 before the failure, which stands at .125, before .10."""
    said: dict[str, str | None] = {"p0": boxed(0.10), "p1": "no idea", "p2": boxed(0.20), "p3": None}
    metis = rw.METIS(plain(4), rails="off", candidate_multiplier=4)
    metis.advise(answers(metis.consult(1), lambda p: said[p]))
    order = [t.prompt_id for t in metis.ask(4)]
    assert (order[0], order[-1]) == ("p2", "p0")
    low = rw.METIS(plain(4), rails="off", candidate_multiplier=4, default=0.0)
    low.advise(answers(low.consult(1), lambda p: said[p]))
    assert [t.prompt_id for t in low.ask(4)][:2] == ["p2", "p0"]
    assert low.metrics()["too_long"] == 1


def test_without_exemplars_the_context_has_none() -> None:
    metis = rw.METIS(plain(30), exemplars=0, rails="off")
    for _ in range(3):
        questions = metis.consult(2)
        assert all("Example 1]" not in q.context()[1]["content"] for q in questions)
        metis.advise(answers(questions, lambda p: boxed(0.1)))
        metis.tell([outcome(t, 2) for t in metis.ask(2)])


def test_the_refill_of_a_step_judges_only_what_it_needs() -> None:
    """Asked for 4 and then for 2 more in the same step: 4 * 4 candidates, then 2 * 4 more, none asked about twice."""
    metis = rw.METIS(plain(100), candidate_multiplier=4, rails="off")
    first = metis.consult(4, step=1)
    metis.advise(answers(first, lambda p: boxed(0.1)))
    assert metis.consult(4, step=1) == []
    tickets = metis.ask(4, step=1)
    metis.tell([outcome(t, 0) for t in tickets])
    second = metis.consult(2, step=1)
    assert (len(first), len(second)) == (16, 8)
    assert not {q.prompt_id for q in first} & {q.prompt_id for q in second}
    metis.advise(answers(second, lambda p: boxed(0.25)))
    more = metis.ask(2, step=1, exclude=[t.prompt_id for t in tickets])
    assert {t.prompt_id for t in more} <= {q.prompt_id for q in second}
    metis.tell([outcome(t, 2) for t in more])
    assert len(metis.lessons()) == 6


def test_answers_that_come_too_late_are_counted_and_ignored() -> None:
    metis = rw.METIS(plain(50), rails="off")
    old = metis.consult(2)
    metis.tell([outcome(t, 1) for t in metis.ask(2)])
    assert metis.lessons() == []  # nothing was answered, so nothing is learnt of it
    new = metis.consult(2)
    metis.advise(answers(old, lambda p: boxed(0.25)))
    metis.advise(answers(new, lambda p: boxed(0.1)))
    assert {t.predicted_variance for t in metis.ask(2)} == {0.1}
    assert metis.metrics()["stale_answers"] == 16


def test_a_wrong_answer_changes_nothing() -> None:
    metis = rw.METIS(plain(50), rails="off")
    questions = metis.consult(1)
    before = json.dumps(metis.state_dict(), sort_keys=True)
    good = rw.Answer(questions[0].id, boxed(0.1))
    other = questions[1].id
    numbers = [{"prediction": 0.3}, {"prediction": float("nan")}, {"prediction": "0.1"}, {"readable": -0.1}]
    wrong = [rw.Answer("q999", "x"), rw.Answer("t0", "x"), rw.Answer(other, 3), "no answer", good]
    for bad in [*wrong, *(rw.Answer(other, None, **number) for number in numbers)]:
        with pytest.raises(rw.TicketError):
            metis.advise([good, bad])  # type: ignore[list-item]
        assert json.dumps(metis.state_dict(), sort_keys=True) == before


def test_expected_answers_are_predictions() -> None:
    """The greatest means are taken; 0.3 of one policy's probability is on answers that nobody can read."""
    metis = rw.METIS(plain(50), rails="off", format="compact", answers="expected")
    questions = metis.consult(2)
    assert all(q.expected and q.format.choices["j"] == 0.25 for q in questions)
    means = {q.id: 0.01 * i for i, q in enumerate(questions)}
    metis.advise([rw.Answer(q.id, None, prediction=means[q.id], readable=0.7) for q in questions])
    tickets = metis.ask(2)
    assert sorted(t.predicted_variance for t in tickets) == pytest.approx([0.14, 0.15])
    metis.tell([outcome(t, 2) for t in tickets])
    assert [lesson.reward for lesson in metis.lessons()] == pytest.approx([1 - 0.44**2, 1 - 0.40**2])
    metrics = metis.metrics()
    assert metrics["judge_failure_rate"] == pytest.approx(0.3)
    assert metrics["too_long"] == 0


@pytest.mark.parametrize("form", ["words", "boxed"])
def test_expected_answers_need_a_format_with_a_few(form: str) -> None:
    with pytest.raises(rw.ConfigError, match="'compact' or 'digit', or answers 'sampled'"):
        rw.METIS(format=form, answers="expected")
    with pytest.raises(rw.ConfigError, match="answers must be"):
        rw.METIS(answers="guessed")  # type: ignore[arg-type]


def test_a_prompt_that_another_lane_took_teaches_no_judgment() -> None:
    """Half of a mixture's batch is uniform: only the judge's own half gives lessons, all of it the memory."""
    lanes = {"judge": (0.5, rw.METIS(candidate_multiplier=2)), "uniform": (0.5, rw.Uniform())}
    mixture = rw.Mixture(plain(100), lanes=lanes, rails="off")
    assert (mixture.wants_answers, mixture.judge_weight) == (True, 0.01)
    for _ in range(4):
        mixture.advise(answers(mixture.consult(8), lambda p: boxed(0.2)))
        tickets = mixture.ask(8)
        mixture.tell([outcome(t, 2) for t in tickets])
        assert len(mixture.lessons()) == sum(t.lane.startswith("judge/") for t in tickets) == 4
    with pytest.raises(rw.ConfigError, match="only one"):
        rw.Mixture(lanes={"a": (1, rw.METIS()), "b": (1, rw.METIS())})


def test_rails_take_their_share_without_judgments() -> None:
    metis = rw.METIS(plain(100), rails={"explore": 0.5, "at_most": 0.5})
    for _ in range(4):
        metis.advise(answers(metis.consult(8), lambda p: boxed(0.2)))
        tickets = metis.ask(8)
        metis.tell([outcome(t, 2) for t in tickets])
        assert len(metis.lessons()) == sum(t.lane == "judged" for t in tickets) == 4


def test_a_group_of_one_has_no_variance() -> None:
    metis = rw.METIS(plain(10), rails="off")
    metis.advise(answers(metis.consult(2), lambda p: boxed(0.2)))
    metis.tell([rw.Outcome(t.id, [1.0]) for t in metis.ask(2)])
    assert metis.lessons() == []
    metis.consult(1)
    assert metis.policy.memory == []


def test_plain_curricula_ask_nothing() -> None:
    uniform = rw.Uniform(plain(4))
    assert (uniform.consult(2), uniform.lessons(), uniform.judge_weight) == ([], [], 0.0)
    with pytest.raises(rw.TicketError):
        uniform.advise([rw.Answer("q0", "x")])


def test_a_pools_text_is_what_the_judge_sees() -> None:
    pool = rw.PromptPool(ids=["a", "b"], prompts=["long statement", "other"], columns={"text": ["short", "brief"]})
    assert {q.candidate for q in rw.METIS(pool, rails="off").consult(2)} == {"short", "brief"}


class Played:
    """Plays METIS step by step; every random choice comes from the script."""

    def __init__(self, metis: rw.Curriculum) -> None:
        self.metis, self.open, self.trace = metis, [], []  # type: ignore[var-annotated]

    def act(self, action: str, amount: int) -> None:
        metis = self.metis
        if action == "consult":
            questions = metis.consult(amount)
            self.trace.append([(q.id, q.prompt_id, q.context()) for q in questions])
            said = [q for q in questions if number(q.id) % 5]  # some are never answered
            metis.advise(answers(said, lambda p: boxed(number(p) % 6 / 24) if number(p) % 4 else "?"))
        elif action == "ask":
            tickets = metis.ask(amount, n_rollouts=4)
            self.trace.append([(t.prompt_id, t.lane, t.predicted_variance) for t in tickets])
            self.open += tickets
        else:
            told, self.open = self.open[:amount], self.open[amount:]
            metis.tell([outcome(t, number(t.prompt_id) % 5) for t in told])
            self.trace.append([repr(lesson) for lesson in metis.lessons()])


scripts = st.lists(st.tuples(st.sampled_from(["consult", "ask", "tell"]), st.integers(1, 6)), max_size=14)


@settings(max_examples=60, deadline=None)
@given(before=scripts, after=scripts)
def test_resume_equals_the_uninterrupted_run_with_judgments_open(before: Any, after: Any) -> None:
    straight = Played(rw.METIS(plain(20), seed=4, candidate_multiplier=2, expire_after=6))
    for step in before:
        straight.act(*step)
    resumed = Played(rw.METIS(plain(20), seed=99, candidate_multiplier=2, expire_after=6))
    resumed.metis.load_state_dict(json.loads(json.dumps(straight.metis.state_dict(), allow_nan=False)))
    resumed.open = list(straight.open)
    mark = len(straight.trace)
    for step in [*after, ("consult", 4), ("ask", 9), ("tell", 9)]:
        straight.act(*step)
        resumed.act(*step)
    assert resumed.trace == straight.trace[mark:]
    assert resumed.metis.state_dict() == straight.metis.state_dict()
