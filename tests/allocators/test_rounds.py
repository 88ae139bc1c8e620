"""Allocators that go by rounds, by hand; and the loop that a user's own code runs."""

import numpy as np
import pytest

import rollwise as rw
from rollwise.allocators import Rates, Seen
from rollwise.allocators.greedy import in_proportion

RIGHT, WRONG = 1.0, 0.0


def seen(*scores: list[float], rounds: int = 1) -> Seen:
    return Seen(rounds, [np.array(own) for own in scores])


def test_progressive_by_hand() -> None:
    """Four prompts, 6 rollouts on the average, three rounds of 8: to all, to the two most varied, to one of these."""
    allocator = rw.Progressive(rounds=3)
    assert allocator.more(seen([], [], [], [], rounds=0), 6).tolist() == [2, 2, 2, 2]
    first = [[1, 0], [1, 1], [0, 0], [0, 1]]
    assert allocator.more(seen(*first), 6).tolist() == [4, 0, 0, 4]
    second = [[1, 0, 1, 1, 1, 1], [1, 1], [0, 0], [0, 1, 0, 1, 0, 1]]  # 5/36, 0, 0, 1/4
    assert allocator.more(seen(*second, rounds=2), 6).tolist() == [0, 0, 0, 8]
    assert allocator.more(seen(*second, rounds=3), 6).tolist() == [0, 0, 0, 0]
    assert allocator.bounds(6) == (2, 14)  # 2 + 4 + 8


def test_progressive_has_the_papers_numbers_by_default() -> None:
    """VIGOR: T = 4, m_0 = 2, half of the prompts kept with twice the rollouts; four of eight prompts vary alike."""
    allocator = rw.Progressive()
    assert allocator.bounds(8) == (2, 30)  # 2 + 4 + 8 + 16
    scores: list[list[float]] = [[] for _ in range(8)]
    for rounds in range(4):
        more = allocator.more(seen(*scores, rounds=rounds), 8)
        assert more.sum() == 16
        for prompt, n in enumerate(more.tolist()):
            scores[prompt] += [RIGHT, WRONG if prompt < 4 else RIGHT] * (n // 2)
    assert [len(own) for own in scores] == [30, 14, 6, 6, 2, 2, 2, 2]
    assert allocator.more(seen(*scores, rounds=4), 8).tolist() == [0] * 8
    with pytest.raises(rw.ConfigError, match="4 rounds of at least 2 rollouts a prompt, and their mean is to be 7"):
        allocator.bounds(7)


def test_progressive_leaves_out_for_good_and_ties_go_by_the_order_asked() -> None:
    """The first prompt lost its variance, but the second, which has some, was left out a round ago."""
    allocator = rw.Progressive(rounds=3, fraction=0.5)
    lost = seen([1, 0, 1, 1, 1, 1, 1, 1], [1, 0], [1, 1], [0, 1, 0, 0, 0, 0, 0, 0], rounds=2)
    assert allocator.more(lost, 6).tolist() == [8, 0, 0, 0]


def test_reinforce_ada_goes_on_until_half_is_right_and_half_wrong() -> None:
    """n = 4: two right and two wrong ones; or, for hard prompts, one right. Rollouts without reward are neither."""
    groups = seen([1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 0, np.nan])
    assert rw.ReinforceAda().more(groups, 4).tolist() == [0, 8, 8, 8, 8]
    assert rw.ReinforceAda(rule="positive").more(groups, 4).tolist() == [0, 0, 8, 0, 0]
    assert rw.ReinforceAda().more(Seen(4, groups.scores), 4).tolist() == [0] * 5  # four rounds at most
    assert rw.ReinforceAda().more(seen([0.8, 0.8, 0.7, 0.7]), 4).tolist() == [0]  # right is more than 0.7


def test_reinforce_ada_keeps_half_and_half_where_it_can() -> None:
    kept = rw.ReinforceAda().kept
    assert kept(np.array([0, 0, 0, 1, 0, 1, 1]), 4).tolist() == [0, 1, 3, 5]
    assert kept(np.array([1, 1, 1, 1, 1, 1, 1, 0]), 4).tolist() == [0, 1, 2, 7]
    assert kept(np.array([np.nan, 0, 0, np.nan, 0]), 4).tolist() == [0, 1, 2, 4]


def test_hora_goes_by_its_pilots_by_hand() -> None:
    """Beta(3, 1), (2, 2), (1, 3). E[p]: .75 .5 .25; E[p(1-p)]: .15 .2 .15; next .05 .1 .1; .02 .06 .07."""
    allocator = rw.Hora(pilots=2)
    assert allocator.more(seen([], [], [], rounds=0), 5).tolist() == [2, 2, 2]
    pilots = [[1, 1], [1, 0], [0, 0]]
    assert allocator.more(seen(*pilots), 4).tolist() == [2, 2, 2]
    assert allocator.more(seen(*pilots), 5).tolist() == [2, 3, 4]
    assert allocator.more(seen(*pilots, rounds=2), 5).tolist() == [0, 0, 0]
    assert rw.Hora(pilots=2, max_rollouts=5).more(seen(*pilots), 5).tolist() == [3, 3, 3]
    assert rw.Hora().bounds(8) == (4, 32)
    unscored = seen([1, np.nan], [np.nan, np.nan])  # Beta(2, 1) and (1, 1): .67 .17, .5 .17
    assert allocator.more(unscored, 4).tolist() == [2, 2]
    for options, mean in (({"pilots": 4}, 4), ({"pilots": 2, "max_rollouts": 3}, 4), ({}, 1)):
        with pytest.raises(rw.ConfigError, match="change pilots, max_rollouts or num_generations"):
            rw.Hora(**options).bounds(mean)


def test_horas_pilots_are_solved_as_the_range_of_rewards_says() -> None:
    """0.7 of a reward that is solved from 0.8, and nothing: both are Beta(1, 3), so each has half of the eight more.

    By its sum the first would be Beta(2.4, 1.6): its fourth is worth .043, less than the other's fifth, .054.
    """
    prompts = rw.PromptPool(ids=["a", "b"], columns={"difficulty": [1, 2]})
    curriculum = rw.Ordered(prompts, seed=0, allocator=rw.Hora(pilots=2), reward_spec=rw.RewardSpec(solved_at=0.8))
    rounds = rw.Rounds(curriculum, curriculum.ask(2, n_rollouts=6), n_rollouts=6)
    pilots = zip(rounds.ask(), [[0.7, 0.7], [0.0, 0.0]], strict=True)
    rounds.tell([rw.Outcome(ticket.id, rewards) for ticket, rewards in pilots])
    assert [ticket.n_rollouts for ticket in rounds.ask()] == [4, 4]


def test_a_screened_group_gets_one_more_at_least() -> None:
    """Four of 8 are made. Each gets one more; the half solved can use 3 beside, and the hopeless one has the rest."""
    last = np.array([1.0, 0.5, 0.0])
    rates = Rates(1 + 4 * last, 5 - 4 * last, last, np.full(3, 4))
    assert rw.Knapsack().allocate(rates, 8).tolist() == [5, 8, 11]
    assert in_proportion(np.array([8.0, 1.0, 1.0]), np.array([2, 3, 2]), 8, 12).tolist() == [7, 3, 2]


def test_the_loop_tells_each_group_once_with_all_of_its_rounds() -> None:
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(8)])
    curriculum = rw.Uniform(pool, seed=0, allocator=rw.ReinforceAda(round_rollouts=3, rounds=2))
    rounds = rw.Rounds(curriculum, curriculum.ask(2, n_rollouts=2), n_rollouts=2)
    first, second = rounds.ask()
    assert (first.n_rollouts, second.n_rollouts) == (3, 3)
    with pytest.raises(rw.TicketError, match="tell every ticket of this round and no other, once and together"):
        rounds.tell([rw.Outcome(first.id, [1, 0, 0])])
    rounds.tell([rw.Outcome(first.id, [1, 0, 0]), rw.Outcome(second.id, [0, 0], failed=1)])
    assert curriculum.metrics()["told"] == 0
    assert [t.id for t in rounds.ask()] == [second.id]
    rounds.tell([rw.Outcome(second.id, [0, 1, 1])])
    assert rounds.ask() == []
    one, two = rounds.groups
    assert one.kept.tolist() == [0, 1]
    assert two.rewards[:2].tolist() == [0, 0]
    assert np.isnan(two.rewards[2])
    assert two.kept.tolist() == [0, 4]
    numbers = curriculum.metrics()
    assert (numbers["told"], numbers["rollouts"], numbers["failed"]) == (2, 8, 1)


@pytest.mark.parametrize("allocator", [None, "knapsack"])
def test_without_rounds_the_loop_is_one_round(allocator: str | None) -> None:
    curriculum = rw.Uniform(rw.PromptPool(ids=["a", "b", "c"]), seed=0, allocator=allocator)
    rounds = rw.Rounds(curriculum, curriculum.ask(3, n_rollouts=4), n_rollouts=4)
    tickets = rounds.ask()
    rounds.tell(rw.Outcome(t.id, [1.0] * t.n_rollouts) for t in tickets)
    assert sum(t.n_rollouts for t in tickets) == 12
    assert rounds.ask() == []
    assert all(len(group.kept) == len(group.rewards) for group in rounds.groups)
    assert curriculum.metrics()["rollouts"] == 12


def test_a_service_refuses_rounds() -> None:  # and verl: tests/engines/test_verl_settings.py
    from rollwise.engines.service import CurriculumService

    with pytest.raises(rw.ConfigError, match="Progressive makes the rollouts of a step in rounds, but a service gives"):
        CurriculumService(rw.Uniform(rw.PromptPool(ids=["a"]), allocator="progressive"))


def test_a_round_that_is_refused_can_be_told_again() -> None:
    curriculum = rw.Uniform(rw.PromptPool(ids=["a", "b"]), seed=0, allocator="knapsack")
    rounds = rw.Rounds(curriculum, curriculum.ask(2, n_rollouts=4), n_rollouts=4)
    tickets = rounds.ask()
    right = [rw.Outcome(t.id, [1.0] * t.n_rollouts) for t in tickets]
    for wrong, error in (
        ([*right, right[0]], rw.TicketError),
        ([rw.Outcome(t.id, [1.0] * (t.n_rollouts + 1)) for t in tickets], rw.RewardError),
        ([rw.Outcome(t.id, [1.0] * t.n_rollouts, failed=1) for t in tickets], rw.RewardError),
        ([rw.Outcome(t.id, [1.0], advantages=[np.inf]) for t in tickets], rw.RewardError),  # by the curriculum
    ):
        with pytest.raises(error):
            rounds.tell(wrong)
        assert rounds.ask() == tickets
    rounds.tell(right)
    assert (rounds.ask(), curriculum.metrics()["rollouts"]) == ([], 8)


def test_a_round_that_the_curriculum_did_not_hear_can_be_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the curriculum is behind a connection that breaks."""

    def broken(outcomes: object) -> None:
        raise ConnectionError

    curriculum = rw.Uniform(
        rw.PromptPool(ids=["a", "b"]), seed=0, allocator=rw.ReinforceAda(round_rollouts=3, rounds=2)
    )
    rounds = rw.Rounds(curriculum, curriculum.ask(2, n_rollouts=2), n_rollouts=2)
    rounds.tell([rw.Outcome(t.id, [0, 0, 0]) for t in rounds.ask()])
    tickets = rounds.ask()
    last = [rw.Outcome(t.id, [1, 1, 1]) for t in tickets]
    with monkeypatch.context() as patch:
        patch.setattr(curriculum, "tell", broken)
        with pytest.raises(ConnectionError):
            rounds.tell(last)
    assert (rounds.ask(), rounds.rounds) == (tickets, 1)
    rounds.tell(last)
    assert (rounds.ask(), curriculum.metrics()["rollouts"]) == ([], 12)
    assert [group.rewards.tolist() for group in rounds.groups] == [[0, 0, 0, 1, 1, 1]] * 2


def test_what_is_wrong_in_an_early_round_is_refused_there() -> None:
    """Told at the end, when the curriculum hears of the group, it could not be put right any more."""
    pool = rw.PromptPool(ids=["a"])
    curriculum = rw.Uniform(pool, allocator=rw.ReinforceAda(round_rollouts=2, rounds=2))
    rounds = rw.Rounds(curriculum, curriculum.ask(1, n_rollouts=2), n_rollouts=2)
    first = rounds.ask()
    (ticket,) = first
    wrong: list[dict[str, object]] = [{"labels": ["x"]}, {"labels": [1, 2]}, {"advantages": [1.0]}, {"step": -1}]
    for more in (*wrong, {"failed": -1}, {"failed": "no"}, {"mean": 0.0}):
        with pytest.raises(rw.RewardError):
            rounds.tell([rw.Outcome(ticket.id, [0, 0], **more)])  # type: ignore[arg-type]
        assert rounds.ask() == first
    for told in (None, [5], [ticket], [rw.Outcome([ticket.id], [0])], [rw.Outcome(ticket.id, [0]), rw.Outcome(5, [0])]):  # type: ignore[arg-type]
        with pytest.raises(rw.TicketError, match="tell takes"):
            rounds.tell(told)  # type: ignore[arg-type]
    rounds.tell([rw.Outcome(ticket.id, [0, 0], labels=["x", None])])
    rounds.tell([rw.Outcome(ticket.id, [0, 1])])
    assert (rounds.ask(), curriculum.metrics()["rollouts"]) == ([], 4)


def test_what_is_told_beside_rewards_reaches_the_curriculum() -> None:
    pool = rw.PromptPool(ids=["a", "b"], columns={"category": ["x", "y"]})
    by_rounds, at_once = (rw.SEC(pool, seed=0, advantage="told") for _ in range(2))
    tickets = by_rounds.ask(2, n_rollouts=4)
    at_once.ask(2, n_rollouts=4)
    told = [rw.Outcome(t.id, [1, 0, 0, 0], advantages=[3.0, -1, -1, -1]) for t in tickets]
    rw.Rounds(by_rounds, tickets, n_rollouts=4).tell(told)
    at_once.tell(told)
    assert by_rounds.values() == at_once.values()


def test_rounds_are_joined() -> None:
    """Two rounds of two: advantages and labels in the order made, the earliest step, a partial round stays partial."""
    curriculum = rw.Uniform(rw.PromptPool(ids=["a"]), allocator=rw.ReinforceAda(round_rollouts=2, rounds=2))
    told: list[rw.Outcome] = []
    tell, curriculum.tell = curriculum.tell, lambda outcomes: told.extend(outcomes) or tell(told)  # type: ignore
    rounds = rw.Rounds(curriculum, curriculum.ask(1, n_rollouts=2), n_rollouts=2)
    (ticket,) = rounds.ask()
    rounds.tell([rw.Outcome(ticket.id, [0, 0], advantages=[-1, -2], labels=["late", "odd"], step=1)])
    rounds.tell([rw.Outcome(ticket.id, [1], advantages=[3], step=0)])
    (outcome,) = told
    assert outcome.rewards.tolist() == [0, 0, 1]
    assert (outcome.advantages, outcome.labels) == ([-1, -2, 3], ["late", "odd", None])
    assert (outcome.step, outcome.failed) == (0, 0)
