"""Empirical Bayes: who is chosen, by numbers worked out by hand; groups; what it remembers."""

import math
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.curricula.empirical_bayes import added_by
from rollwise.simulation import Population, make_world, simulate
from rollwise.testing import untagged


def pool_of(*categories: str, **columns: object) -> rw.PromptPool:
    return rw.PromptPool(
        ids=[f"{c}{i}" for i, c in enumerate(categories)], columns={"category": list(categories), **columns}
    )


def tell(curriculum: rw.Curriculum, tickets: list[rw.Ticket], rewards: dict[str, list[float]]) -> None:
    curriculum.tell([rw.Outcome(t.id, rewards.get(t.prompt_id, [])) for t in tickets])


def test_the_defaults() -> None:
    options = rw.EmpiricalBayes().options
    numbers = {"optimism": 1.5, "overlap": 2.4, "pass_below": 0.5}
    numbers |= {"forgetting": 0.05, "renewal": 0.0, "drift": 0.02, "memory": 32.0, "borrowed": 2.0}
    assert {name: options[name] for name in numbers} == numbers
    assert (options["candidate_multiplier"], options["strata"], options["clusters"]) == (8, 5, 20)
    assert isinstance(rw.Recommended(), rw.EmpiricalBayes)


def test_the_score_worked_out() -> None:
    """Beta(1, 1): E[p(1-p)] = 1/6; E[p^2 (1-p)^2] = 1/30, so SD = sqrt(1/30 - 1/36) = sqrt(1/180)."""
    curriculum = rw.EmpiricalBayes(pool_of("a", "a"), optimism=2.0)
    assert curriculum.scores(None).tolist() == pytest.approx([1 / 6 + 2 * math.sqrt(1 / 180)] * 2)


def test_the_untried_come_by_their_category_and_the_tried_by_themselves() -> None:
    """Of a, one is in the middle, one hopeless; of b, both; without optimism what is known to be good comes first."""
    pool = pool_of(*"aaaaaabbbbbb")
    curriculum = rw.EmpiricalBayes(pool, rails=None, optimism=0.0, overlap=0.0, seed=0)
    rewards = {"a0": [1, 0] * 4, "a1": [0] * 8, "b6": [0] * 8, "b7": [0] * 8}
    tell(curriculum, curriculum.ask(12), rewards)
    tickets = curriculum.ask(12)
    order = [t.prompt_id for t in tickets]
    assert order[0] == "a0"
    assert set(order[1:5]) == {"a2", "a3", "a4", "a5"}
    assert order.index("a1") > 4
    assert set(order[5:9]) == {"b8", "b9", "b10", "b11"}
    assert set(order[-2:]) == {"b6", "b7"}
    assert tickets[0].predicted == pytest.approx(0.5, abs=0.05)


def overlapping(overlap: float, *categories: str, **options: object) -> rw.EmpiricalBayes:
    """Without groups of rollouts, and so with one score: what is chosen follows from the overlap alone."""
    return rw.EmpiricalBayes(pool_of(*categories), rails=None, seed=0, overlap=overlap, **options)  # type: ignore[arg-type]


def test_what_the_next_of_a_group_adds() -> None:
    """n / (1 + 0.25 (n-1)) is 1, 1.6, 2 for n of 1, 2, 3, so 1, 0.6, 0.4, of which a half is its own."""
    places = np.arange(3)
    assert added_by(places, 0.25) == pytest.approx([1, 0.6, 0.5])
    assert added_by(places, 0.0) == pytest.approx([1, 1, 1])
    assert added_by(places, 9.0) == pytest.approx([1, 0.5, 0.5])


@pytest.mark.parametrize("multiplier", [None, 12])
def test_a_step_is_spread_over_groups_that_are_alike(multiplier: int | None) -> None:
    """Ten of twelve prompts are of a; of three places each group gets one."""
    curriculum = overlapping(2.4, *"aaaaaaaaaabc", candidate_multiplier=multiplier)
    assert sorted(t.prompt_id[0] for t in curriculum.ask(3)) == [*"abc"]


@pytest.mark.parametrize("multiplier", [None, 12])
def test_asked_one_by_one_a_step_is_spread_too(multiplier: int | None) -> None:
    one_by_one = overlapping(2.4, *"aaaaaaaaaabc", candidate_multiplier=multiplier)
    assert sorted(one_by_one.ask(1)[0].prompt_id[0] for _ in range(3)) == [*"abc"]


@pytest.mark.parametrize("k", [16, 64])
def test_shares_do_not_depend_on_the_size_of_the_step(k: int) -> None:
    """Scores of 3 and 2, overlap 0.5: shares x and y with 2 (1 + x/2)^2 = 3 (1 + y/2)^2 and x + y = 1."""
    y = (3.0 / 2.0 - np.sqrt(3.0 / 2.0)) / ((1.0 + np.sqrt(3.0 / 2.0)) / 2.0)
    curriculum = overlapping(0.5, *"ab" * 64, candidate_multiplier=None)
    curriculum.step_size = k
    keys = curriculum._keys(np.arange(128), np.where(np.arange(128) % 2 == 0, 3.0, 2.0))
    assert (np.argsort(-keys)[:k] % 2 == 1).mean() == pytest.approx(y, abs=1 / k)


def test_who_is_less_than_half_as_good_gets_nothing() -> None:
    curriculum = overlapping(50.0, *"ab" * 64, candidate_multiplier=None)
    curriculum.step_size = 32
    keys = curriculum._keys(np.arange(128), np.where(np.arange(128) % 2 == 0, 1.0, 0.49))
    assert (np.argsort(-keys)[:32] % 2 == 0).all()


def test_the_best_of_a_group_comes_first_and_the_next_pays_for_it() -> None:
    """In a step of 8, with 2, the next of it counts 1.6 - 1, then a half."""
    curriculum = overlapping(2.0, *"aaab", candidate_multiplier=None)
    curriculum.step_size = 8
    keys = curriculum._keys(np.arange(4), np.array([0.5, 0.5, 0.5, 0.35]))
    assert sorted(keys.tolist()) == pytest.approx([0.25, 0.3, 0.35, 0.5])
    assert keys[3] == 0.35


@pytest.mark.parametrize("multiplier", [None, 2])
def test_a_resumed_step_goes_on_as_it_would_have(multiplier: int | None) -> None:
    curriculum = overlapping(2.0, *"aaaaabbbbccc", candidate_multiplier=multiplier)
    tell(curriculum, curriculum.ask(4), {"a0": [1, 0], "b6": [1, 0], "c9": [0, 0]})
    first = curriculum.ask(2)
    resumed = overlapping(2.0, *"aaaaabbbbccc", candidate_multiplier=multiplier)
    resumed.load_state_dict(curriculum.state_dict())
    assert resumed.asked_of.sum() == len(first)
    assert [t.prompt_id for t in resumed.ask(5)] == [t.prompt_id for t in curriculum.ask(5)]


def test_a_state_saved_before_there_was_overlap_is_taken() -> None:
    curriculum = overlapping(2.4, *"aabb")
    state = curriculum.state_dict()
    del state["body"]["own"]["asked_of"], state["options"]["overlap"]
    overlapping(2.4, *"aabb").load_state_dict(state, strict=False)


def test_a_lane_says_whether_the_prompt_was_tried() -> None:
    curriculum = rw.EmpiricalBayes(pool_of("a", "a", "a"), rails=None, seed=0)
    first = curriculum.ask(1)
    assert [t.lane for t in first] == ["untried"]
    tell(curriculum, first, {first[0].prompt_id: [1, 0, 1, 0]})
    later = curriculum.ask(3)
    assert {t.lane for t in later if t.prompt_id == first[0].prompt_id} == {"tried"}
    assert sorted(t.lane for t in later) == ["tried", "untried", "untried"]


def test_what_failed_long_ago_comes_before_what_failed_just_now() -> None:
    curriculum = rw.EmpiricalBayes(pool_of(*"aaaa"), rails=None, optimism=0.0, seed=0)
    tickets = curriculum.ask(4)
    tell(curriculum, tickets, {t.prompt_id: [0] * 8 for t in tickets})
    again = curriculum.ask(2, step=20)
    tell(curriculum, again, {t.prompt_id: [0] * 8 for t in again})
    waiting = {t.prompt_id for t in tickets} - {t.prompt_id for t in again}
    assert {t.prompt_id for t in curriculum.ask(2, step=21)} == waiting


def test_a_step_looks_at_candidates_of_a_rotation_only() -> None:
    """Eight candidates for one place: of 80 alike, ten steps see every prompt once, and the best is among 8 of them."""
    pool = pool_of(*["a"] * 80)
    curriculum = rw.EmpiricalBayes(pool, rails=None, seed=0)
    for _ in range(10):
        tell(curriculum, tickets := curriculum.ask(1), {t.prompt_id: [1, 0] for t in tickets})
    assert curriculum.columns["shown"].tolist() == [1] * 80


def hopeless_and_good(**options: Any) -> rw.EmpiricalBayes:
    """80 prompts of a category that fails and 16 of one in the middle; half of them were tried."""
    curriculum = rw.EmpiricalBayes(pool_of(*"a" * 80, *"b" * 16), rails=None, seed=0, borrowed=0.01, **options)
    tickets = curriculum.ask(48)
    tell(curriculum, tickets, {t.prompt_id: [1.0, 0.0] * 4 if t.prompt_id[0] == "b" else [0.0] * 8 for t in tickets})
    tell(curriculum, curriculum.ask(1), {})  # which takes in what was told before
    return curriculum


def test_the_turns_of_a_group_go_by_what_its_untried_prompts_promise() -> None:
    """Next to nothing in a, as all failed that were tried: an eighth of its turns is taken, and all of b's."""
    curriculum = hopeless_and_good()
    untried = curriculum.columns["asked"] == 0
    scores = curriculum.scores(None)
    assert scores[:80][untried[:80]].max() < 0.5 / 8 * scores[80:][untried[80:]].min()
    assert curriculum.turns_taken().tolist() == [1 / 8, 1]
    assert hopeless_and_good(pass_below=0.0).turns_taken().tolist() == [1, 1]
    assert rw.EmpiricalBayes(pool_of(*"ab")).turns_taken().tolist() == [1, 1]


def test_the_share_of_turns_is_in_proportion_below_the_line() -> None:
    """ab / (n(n+1)): 1/6, and 0.4375 / 6 of Beta(0.25, 1.75); with the line at a half 2 x 0.4375 of its turns."""
    curriculum = rw.EmpiricalBayes(pool_of(*"ab"), optimism=0.0)
    curriculum.belief.prior = np.array([1.0, 1.0]), np.array([1.0, 1.0])
    curriculum.belief.inside = np.array([0.0, 0.0])
    assert curriculum.turns_taken().tolist() == [1, 1]
    curriculum.belief.prior = np.array([1.0, 0.25]), np.array([1.0, 1.75])
    assert curriculum.turns_taken().tolist() == pytest.approx([1, 0.875])


def test_the_untried_of_a_hopeless_group_are_passed_over_and_not_lost() -> None:
    """Their turns are counted, so they come again when the others have come as often."""
    curriculum = hopeless_and_good()
    untried = np.flatnonzero(curriculum.columns["asked"] == 0)
    before = curriculum.columns["shown"].copy()
    taken = curriculum.next_candidates(48)
    assert len(set(taken.tolist())) == 48
    hopeless = untried[untried < 80]
    assert np.isin(hopeless, taken).mean() < 0.35
    assert np.isin(np.setdiff1d(np.arange(96), hopeless), taken).mean() > 0.6
    assert (curriculum.columns["shown"][taken] > before[taken]).all()
    curriculum._requeue(taken)
    assert len(curriculum.next_candidates(96)) == 96


def test_who_was_tried_is_never_passed_over() -> None:
    curriculum = hopeless_and_good()
    curriculum.columns["asked"][:] = 1
    assert curriculum.queue is not None
    in_rotation = curriculum.queue.top(40).tolist()
    assert curriculum.next_candidates(40).tolist() == in_rotation


def test_a_resumed_one_passes_over_the_same() -> None:
    curriculum = hopeless_and_good()
    curriculum.ask(3)
    resumed = hopeless_and_good()
    resumed.load_state_dict(curriculum.state_dict())
    assert untagged(resumed.ask(8)) == curriculum.ask(8)


def test_strata_of_reference_pass_rates_divide_a_category() -> None:
    rates = [[0.0, 0.2], [0.4, 0.6], [0.0, 0.0], [0.8, 1.0]]  # means .1, .5, 0, .9; the median lies at .3
    pool = pool_of("a", "a", "b", "b", reference_pass_rates=rates)
    curriculum = rw.EmpiricalBayes(pool, rails=None, optimism=0.0, strata=2)
    names = [f"{category}/reference_pass_rates {i}" for category in "ab" for i in range(2)]
    assert list(curriculum.priors()) == names
    assert [names[code] for code in curriculum.belief.group] == names
    assert curriculum.priors()[names[0]] == pytest.approx((1, 1))


@pytest.mark.parametrize(
    ("columns", "options", "groups"),
    [
        ({}, {}, 1),
        ({"embedding": [[0.0], [0.1], [5.0], [5.1]]}, {"clusters": 2}, 2),
        ({"embedding": [[0.0], [0.1], [5.0], [5.1]]}, {"clusters": 1}, 1),
        ({"reference_pass_rates": [[0.5, 0.5]] * 4}, {}, 1),
        ({"difficulty": [0.1, 0.2, 0.3, 0.4], "embedding": [[0.0]] * 4}, {"strata": 2}, 2),
        ({"difficulty": [0.1, 0.2, 0.3, 0.4], "category": ["x", "x", "y", "y"]}, {"strata": 2}, 2),
        ({"difficulty": [0.1, 0.2, 0.3, 0.4], "category": ["x", "y", "x", "y"]}, {"category": "difficulty"}, 4),
        ({"category": ["x", "y", "x", "z"]}, {"category": []}, 1),
        ({"category": ["x", "y", "x", "z"], "kind": ["u", "u", "v", "v"]}, {"category": ["category", "kind"]}, 4),
        ({"category": ["x", "y", "x", "z"]}, {}, 3),
        ({"category": ["x", "y", "x", "z"], "embedding": [[0.0], [0.1], [5.0], [5.1]]}, {"clusters": 2}, 3),
    ],
)
def test_it_takes_what_there_is(columns: dict, options: dict, groups: int) -> None:
    pool = rw.PromptPool(ids=list("abcd"), columns=columns)
    curriculum = rw.EmpiricalBayes(pool, rails=None, **options)
    assert curriculum.metrics()["groups"] == groups
    tell(curriculum, tickets := curriculum.ask(4), {t.prompt_id: [1, 0] for t in tickets})
    assert len(curriculum.ask(4)) == 4


def test_a_resumed_one_has_the_same_priors_and_scores() -> None:
    pool = pool_of(*"aabbcc")
    curriculum = rw.EmpiricalBayes(pool, seed=3, rails=None)
    for step in range(5):
        tickets = curriculum.ask(2)
        tell(curriculum, tickets, {t.prompt_id: [1, 0, 0, step % 2] for t in tickets})
    curriculum.ask(1)
    resumed = rw.EmpiricalBayes(pool, seed=9, rails=None)
    resumed.load_state_dict(curriculum.state_dict())
    assert resumed.priors() == curriculum.priors()
    assert resumed.scores(None).tolist() == curriculum.scores(None).tolist()
    assert untagged(resumed.ask(3)) == curriculum.ask(3)


def test_a_column_that_is_not_there() -> None:
    with pytest.raises(rw.MissingColumnError, match="kind.*category="):
        rw.EmpiricalBayes(pool_of("a", "b"), category="kind")


def test_a_column_of_numbers_that_are_not() -> None:
    pool = rw.PromptPool(ids=["a", "b"], columns={"length": [1.0, float("nan")]})
    with pytest.raises(rw.ConfigError, match="length.*not finite"):
        rw.EmpiricalBayes(pool, category="length")


@pytest.mark.parametrize("category", [3, ["category", 3], ["category", "category"]])
def test_category_must_be_names(category: object) -> None:
    with pytest.raises(rw.ConfigError, match="category must be"):
        rw.EmpiricalBayes(category=category)


@pytest.mark.parametrize(
    "options",
    [
        {"optimism": -1},
        {"overlap": -0.1},
        {"pass_below": 1.1},
        {"strata": 0},
        {"clusters": 0},
        {"candidate_multiplier": 0},
    ],
)
def test_options_out_of_range(options: dict) -> None:
    with pytest.raises(rw.ConfigError, match=next(iter(options))):
        rw.EmpiricalBayes(**options)


def test_it_finds_contrast_where_most_prompts_are_hopeless_and_few_are_seen_twice() -> None:
    """Simulated: uniform sampling has contrast in one group of twelve, a flat prior (MoPPS) in one of eight."""

    def effective(curriculum: rw.Curriculum) -> float:
        world, _ = make_world(1000, seed=0, population=Population(hopeless=0.75))
        return float(simulate(curriculum, world, 40, 16, 8).effective_ratio.mean())

    uniform, mopps = effective(rw.Uniform(seed=0)), effective(rw.MoPPS(seed=0))
    ours = effective(rw.EmpiricalBayes(seed=0, category="category", overlap=0.0))
    assert ours > 2 * mopps > 2 * uniform


def test_what_divides_a_column_is_saved() -> None:
    """So a pool that has grown, with another seed, has the groups that it had."""
    points = np.random.default_rng(0).standard_normal((60, 2))
    ids = [f"p{i}" for i in range(60)]
    columns = {"embedding": points, "difficulty": points[:, 0]}

    def make(n: int, seed: int) -> rw.EmpiricalBayes:
        pool = rw.PromptPool(ids=ids[:n], columns={name: values[:n] for name, values in columns.items()})
        return rw.EmpiricalBayes(pool, category=["embedding", "difficulty"], clusters=5, strata=3, seed=seed)

    first, grown, fresh = make(50, 0), make(60, 1), make(60, 1)
    grown.load_state_dict(first.state_dict())
    group_of = [[c.groups[g] for g in c.belief.group[:50]] for c in (first, grown, fresh)]
    assert group_of[0] == group_of[1] != group_of[2]
    damaged = first.state_dict()
    damaged["body"]["own"]["limits"] = {}
    with pytest.raises(rw.StateError, match="limits"):
        grown.load_state_dict(damaged)
    other = rw.EmpiricalBayes(grown.pool, category=["embedding"], clusters=2, seed=1)
    other.load_state_dict(first.state_dict(), strict=False)
    assert len(other.groups) == 2


def test_who_was_asked_for_by_another_lane_is_no_longer_untried() -> None:
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(8)])
    inner = rw.Mixture(lanes={"e": (1, rw.EmpiricalBayes()), "v": (1, rw.Uniform())})
    mixture = rw.Mixture(pool, lanes={"in": (1, inner), "u": (1, rw.Uniform())}, rails=None, seed=0)
    for _ in range(2):
        tickets = mixture.ask(8)
        assert len({t.prompt_id for t in tickets}) == 8
        mixture.tell([rw.Outcome(t.id, [1, 0]) for t in tickets])
    among = mixture.child("in")
    assert isinstance(among, rw.Mixture)
    assert among.child("e").columns["asked"].tolist() == mixture.columns["asked"].tolist() == [2] * 8
