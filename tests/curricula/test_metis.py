"""METIS against its Algorithm 1, with a policy that is played; every number is worked out beside it."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollwise as rw
from rollwise.curricula.metis import expected_reward, judge_reward
from rollwise.judges import Exemplar
from rollwise.testing import untagged


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
    """Table 5: K = 3, lambda = 0.01, baseline rate 0.95, pool multiplier 8; appendix B.4: an unread answer is 0.0."""
    metis = rw.METIS()
    assert metis.maker.options == {"exemplars": 3, "format": "words", "expected": False}  # "newest" as in section 4.1
    assert (metis.judge_weight, metis.baseline_rate, metis.candidate_multiplier) == (0.01, 0.95, 8)
    assert (metis.default, metis.explore, metis.rails) == (0.0, 0.0, None)


def test_the_judges_reward_by_hand() -> None:
    """Equation 8: 1 - (4 * 0)^2 = 1; 1 - (4 * 0.25)^2 = 0; 1 - (4 * (0.10 - 0.16))^2 = 1 - 0.24^2 = 0.9424."""
    assert judge_reward(np.array([0.2, 0.25, 0.10]), np.array([0.2, 0.0, 0.16])) == pytest.approx([1.0, 0.0, 0.9424])


def test_the_expected_reward_by_hand() -> None:
    """Half 0 and half 1/4 against 1/4: (0 + 1) / 2 = 0.5. A tenth 1/4, the rest unread: 0.1. Nothing read: 0.

    0.2 and 0.1 with chances 0.3 and 0.5 against 0.15, the rest unread: both earn 1 - 0.2^2 = 0.96, so 0.8 * 0.96; their
    mean is 0.1375 and their variance (0.3 * 0.5 / 0.8^2) * 0.1^2.
    """
    spread = 0.3 * 0.5 / 0.64 * 0.01
    assert expected_reward(0.125, 0.25, spread=0.125**2) == 0.5
    assert expected_reward(0.25, 0.25, readable=0.1) == 0.1
    assert expected_reward(np.nan, 0.25, readable=0.0) == 0.0
    assert expected_reward(0.1375, 0.15, spread=spread, readable=0.8) == pytest.approx(0.8 * 0.96)


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
    pairs = {"p0": Exemplar("prompt 0", 0.25), "p1": Exemplar("prompt 1", 0.0)}
    for question in again:  # none sees its own
        assert set(question.exemplars) == {pair for id_, pair in pairs.items() if id_ != question.prompt_id}
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


def test_an_unreadable_answer_counts_as_0_and_ranks_last() -> None:
    """Appendix B.4, "falls back to the default 0.0": .20 and .02 before the failures. With 1/8, .20 alone."""
    said: dict[str, str | None] = {"p0": boxed(0.02), "p1": "no idea", "p2": boxed(0.20), "p3": None}
    metis = rw.METIS(plain(4), candidate_multiplier=4)
    metis.advise(answers(metis.consult(1), lambda p: said[p]))
    assert [t.prompt_id for t in metis.ask(4)][:2] == ["p2", "p0"]
    assert metis.metrics()["too_long"] == 1
    middle = rw.METIS(plain(4), candidate_multiplier=4, default=0.125)
    middle.advise(answers(middle.consult(1), lambda p: said[p]))
    order = [t.prompt_id for t in middle.ask(4)]
    assert (order[0], order[-1]) == ("p2", "p0")


def test_a_candidate_that_was_not_asked_about_is_no_judgment() -> None:
    """Equation 9's b averages R_judge, of judgments made: p1 was too long to be asked about, and p0 earned 1.

    The baseline is 0.05 * 1; with p1 as a failed judgment it would be 0.05 * 1/2.
    """
    metis = rw.METIS(plain(2), candidate_multiplier=1)
    questions = metis.consult(2)
    metis.advise(answers(questions, lambda p: boxed(0.25) if p == "p0" else None))
    assert metis.consult(2) == []  # nor is it asked about again
    assert metis.metrics()["judge_failure_rate"] == 0.0
    assert metis.metrics()["too_long"] == 1
    tickets = metis.ask(2)
    metis.tell([outcome(t, 2) for t in tickets])
    metis.load_state_dict(json.loads(json.dumps(metis.state_dict())))
    assert [(lesson.prediction, lesson.reward) for lesson in metis.lessons()] == [(0.25, 1.0)]
    assert metis.metrics()["judge_reward"] == 1.0
    metis.advise([rw.Answer(q.id, None) for q in metis.consult(2)])
    assert metis.metrics()["judge_baseline"] == pytest.approx(0.05)
    assert "judge_failure_rate" not in metis.metrics()
    metis.tell([outcome(t, 2) for t in metis.ask(2)])
    metis.consult(2)
    assert metis.metrics()["judge_baseline"] == pytest.approx(0.05)  # a step without judgments leaves it


def test_what_is_rolled_out_was_judged_though_most_answers_fail() -> None:
    """The paper's failure rate without exemplars, 87.6 %, and honest answers of .02 to .10: 8 of 64 candidates are
    taken, some 8 can be read. At 1/8 none of those was taken."""
    rng = np.random.default_rng(0)
    metis = rw.METIS(plain(640), exemplars=0, seed=2)
    judged = 0
    for _ in range(50):
        said = lambda p: boxed(0.02 * rng.integers(1, 6)) if rng.random() > 0.876 else "42"  # noqa: E731
        metis.advise(answers(metis.consult(8), said))
        tickets = metis.ask(8)
        judged += sum(t.lane == "judged" for t in tickets)
        metis.tell([outcome(t, 2) for t in tickets])
    assert judged / 400 > 0.8


def test_a_candidate_is_not_among_its_own_exemplars() -> None:
    """Pools of 10 and steps of 4: candidates are often in the memory. Each sees the 3 newest pairs of others."""
    metis = rw.METIS(plain(10), seed=1)
    own, newest = 0, {}
    for step in range(20):
        questions = metis.consult(4)
        if step:
            assert metis.metrics()["memory"] == 3
        for question in questions:
            assert len(question.exemplars) == (3 if step else 0)
            texts = [pair.text for pair in question.exemplars]
            assert question.candidate not in texts
            assert len(set(texts)) == len(texts)
            if question.candidate in {pair.text for pair in metis.policy.memory}:
                own += 1
            else:
                assert list(question.exemplars) == metis.policy.memory
            assert all(newest[pair.text] == pair.variance for pair in question.exemplars)
        metis.advise(answers(questions, lambda p: boxed(0.1)))
        tickets = metis.ask(4)
        solved = {t.id: (number(t.prompt_id) + step) % 5 for t in tickets}
        metis.tell([outcome(t, solved[t.id]) for t in tickets])
        newest |= {f"prompt {number(t.prompt_id)}": solved[t.id] * (4 - solved[t.id]) / 16 for t in tickets}
        assert len(metis.policy.pairs) <= 4
    assert own > 20


def test_an_exemplar_left_out_for_being_the_candidate_is_not_one_cut() -> None:
    """p0 alone is in the memory: asked about p0, none is offered; asked about p1, one is, and was cut."""
    metis = rw.METIS(plain(2), candidate_multiplier=2)
    metis.advise(answers(metis.consult(1), lambda p: boxed(0.25 if p == "p0" else 0.0)))
    metis.tell([outcome(t, 2) for t in metis.ask(1)])
    questions = {q.prompt_id: q for q in metis.consult(1)}
    assert (questions["p0"].exemplars, questions["p1"].exemplars) == ((), (Exemplar("prompt 0", 0.25),))
    metis.advise([rw.Answer(questions["p0"].id, boxed(0.1), exemplars=0)])
    assert metis.metrics()["exemplars_cut"] == 0
    metis.advise([rw.Answer(questions["p1"].id, boxed(0.1), exemplars=0)])
    assert metis.metrics()["exemplars_cut"] == 1


def test_all_that_was_rolled_out_enters_the_memory_judged_or_not() -> None:
    """Algorithm 1, line 7: the pairs of all of S_t. The rails' prompts have no judgment, but a variance."""
    metis = rw.METIS(plain(100), exemplars=8, rails={"explore": 0.5, "at_most": 0.5})
    metis.advise(answers(metis.consult(8), lambda p: boxed(0.2)))
    tickets = metis.ask(8)
    assert {t.lane for t in tickets} == {"judged", "rail-explore"}
    metis.tell([outcome(t, 2) for t in tickets])
    metis.ask(1)
    assert {pair.text for pair in metis.policy.memory} == {f"prompt {number(t.prompt_id)}" for t in tickets}


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
    numbers: list[dict[str, Any]] = [
        {"prediction": 0.3, "spread": 0.0},
        {"prediction": float("nan"), "spread": 0.0},
        {"prediction": "0.1", "spread": 0.0},
        {"readable": -0.1},
        {"prediction": 0.1},  # without a spread the reward is not known
        {"prediction": 0.1, "spread": 1 / 63},
        {"readable": None},
        {"exemplars": "3"},
        {"exemplars": np.timedelta64(3, "s")},
        {"readable": np.timedelta64(1, "s")},
        {"prediction": np.complex128(0.1), "spread": 0.0},
    ]
    wrong = [rw.Answer("q999", "x"), rw.Answer("t0", "x"), rw.Answer(other, 3), "no answer", good]
    wrong += [rw.Answer(id_, "x") for id_ in (None, [other], "q" + "9" * 5000)]  # type: ignore[arg-type]
    for bad in [*wrong, *(rw.Answer(other, None, **number) for number in numbers)]:
        with pytest.raises(rw.TicketError):
            metis.advise([good, bad])  # type: ignore[list-item]
        assert json.dumps(metis.state_dict(), sort_keys=True) == before
    for no_list in (None, good, "no answer"):
        with pytest.raises(rw.TicketError, match="advise takes a list of Answer objects, got"):
            metis.advise(no_list)  # type: ignore[arg-type]


def test_before_it_has_prompts_it_says_so() -> None:
    metis = rw.METIS()
    for use in (lambda: metis.advise([rw.Answer("q0", "x")]), metis.lessons, metis.take_costs, metis.hopeless):
        with pytest.raises(rw.UnboundError, match="this METIS has no prompts yet: construct it with a PromptPool"):
            use()
    assert not hasattr(metis, "columns")


def test_expected_answers_are_predictions() -> None:
    """The greatest means are taken; 0.3 of one policy's probability is on answers that nobody can read."""
    metis = rw.METIS(plain(50), rails="off", format="compact", answers="expected")
    questions = metis.consult(2)
    assert all(q.expected and q.format.choices["j"] == 0.25 for q in questions)
    means = {q.id: 0.01 * i for i, q in enumerate(questions)}
    metis.advise([rw.Answer(q.id, None, prediction=means[q.id], readable=0.7, spread=0.001) for q in questions])
    tickets = metis.ask(2)
    assert sorted(t.predicted_variance for t in tickets) == pytest.approx([0.14, 0.15])
    metis.tell([outcome(t, 2) for t in tickets])
    earned = [0.7 * (1 - 0.44**2 - 0.016), 0.7 * (1 - 0.40**2 - 0.016)]
    assert [lesson.reward for lesson in metis.lessons()] == pytest.approx(earned)
    metrics = metis.metrics()
    assert metrics["judge_failure_rate"] == pytest.approx(0.3)
    assert metrics["too_long"] == 0


def test_the_reward_of_expected_answers_is_their_mean() -> None:
    """p0: half 0, half 1/4. p1: 1/4 in a tenth, the rest can't be read. Both come out at 1/4: 0.5 and 0.1.

    Reward, baseline, lesson and advantage, all of them; the baseline is 0.05 * 0.3 after the first step.
    """
    metis = rw.METIS(plain(2), format="compact", answers="expected")
    said = {"p0": {"prediction": 0.125, "spread": 1 / 64}, "p1": {"prediction": 0.25, "spread": 0.0, "readable": 0.1}}

    def step() -> dict[str, rw.Lesson]:
        prompt_of = {q.id: q.prompt_id for q in metis.consult(2)}
        metis.advise([rw.Answer(id_, None, **said[prompt]) for id_, prompt in prompt_of.items()])
        metis.load_state_dict(json.loads(json.dumps(metis.state_dict())))
        tickets = metis.ask(2, n_rollouts=4)
        metis.load_state_dict(json.loads(json.dumps(metis.state_dict())))
        metis.tell([outcome(t, 2) for t in tickets])
        return {prompt_of[lesson.question_id]: lesson for lesson in metis.lessons()}

    first = step()
    assert (first["p0"].reward, first["p1"].reward) == (pytest.approx(0.5), pytest.approx(0.1))
    assert (first["p0"].prediction, first["p1"].prediction) == (0.125, 0.25)
    assert metis.metrics()["judge_reward"] == pytest.approx(0.3)
    second = step()
    assert metis.metrics()["judge_baseline"] == pytest.approx(0.015)
    assert second["p0"].advantage == pytest.approx(0.5 - 0.015)
    assert second["p1"].advantage == pytest.approx(0.1 - 0.015)


def test_expected_answers_are_ranked_by_their_mean_with_unreadable_ones_at_0() -> None:
    """p0 says .25 in one of twenty answers: 0.0125 on average. p1 says .02 for sure."""
    metis = rw.METIS(plain(2), format="compact", answers="expected")
    said = {"p0": {"prediction": 0.25, "spread": 0.0, "readable": 0.05}, "p1": {"prediction": 0.02, "spread": 0.0}}
    metis.advise([rw.Answer(q.id, None, **said[q.prompt_id]) for q in metis.consult(1)])
    tickets = metis.ask(2)
    assert [(t.prompt_id, t.predicted_variance) for t in tickets] == [("p1", 0.02), ("p0", 0.25)]


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


def test_a_lane_asks_about_the_candidates_of_its_own_share() -> None:
    """A quarter of 8 is 2 prompts, with 8 candidates each: 16 questions, not 64. Of 6 it is 1.5: 2, then 1."""
    lanes = {"judge": (1, rw.METIS(candidate_multiplier=8)), "uniform": (3, rw.Uniform())}
    mixture = rw.Mixture(plain(400), lanes=lanes, rails="off")
    found = []
    for k in (8, 8, 6, 6):
        questions = mixture.consult(k)
        mixture.advise(answers(questions, lambda p: boxed(0.2)))
        assert mixture.consult(k) == []
        tickets = mixture.ask(k)
        mixture.tell([outcome(t, 2) for t in tickets])
        found.append((len(questions), sum(t.lane == "judge/judged" for t in tickets)))
    assert found == [(16, 2), (16, 2), (16, 2), (8, 1)]


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
    assert untagged(resumed.metis.state_dict()) == untagged(straight.metis.state_dict())
