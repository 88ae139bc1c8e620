"""What bandits over categories share, against slow oracles."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollwise as rw
from rollwise.curricula.families.arms import ARMS_SHOWN, boltzmann_among, draw_arms, pay_of, places_of
from rollwise.curricula.families.members import ArmMembers
from rollwise.draws import SumTree
from rollwise.tickets.evidence import Evidence


def test_draws_are_those_of_one_tree_for_each_arm() -> None:
    """The same random numbers give the same slots as a sum tree of each arm's members: an independent oracle."""
    rng = np.random.default_rng(0)
    n, n_arms = 9000, 4  # several blocks
    arm_of = rng.integers(0, n_arms, n)
    members, trees = ArmMembers(arm_of, n_arms), [SumTree(int((arm_of == a).sum())) for a in range(n_arms)]
    own = [np.flatnonzero(arm_of == a) for a in range(n_arms)]
    for round_ in range(40):
        freed = rng.permutation(n)[: rng.integers(1, n)]
        members.set(freed, True)
        for a in range(n_arms):
            trees[a].set(np.flatnonzero(np.isin(own[a], freed)), 1.0)
        for a in range(n_arms):
            k = int(rng.integers(1, 2000))
            slots, chances = members.draw(np.random.default_rng(round_), a, k)
            places, expected = trees[a].draw(np.random.default_rng(round_), k)
            assert slots.tolist() == own[a][places].tolist()
            assert chances.tolist() == pytest.approx(expected.tolist())
        assert members.left.tolist() == [tree.total for tree in trees]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(1, 40), st.integers(0, 99))
def test_all_that_is_free_can_be_drawn_and_nothing_else(arm_of: list[int], k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    members = ArmMembers(np.array(arm_of), 4)
    free = np.flatnonzero(rng.random(len(arm_of)) < 0.5)
    members.set(free, True)
    members.set(free, True)  # again: no change
    drawn = members.draw_any(rng, k)
    assert len(set(drawn.tolist())) == len(drawn) == min(k, len(free))
    assert set(drawn.tolist()) <= set(free.tolist())
    assert members.left.sum() == len(free) - len(drawn)


def test_arms_are_drawn_by_their_shares() -> None:
    arms = draw_arms(np.random.default_rng(0), np.array([0.0, 0.25, 0.75, 0.0]), 8000)
    assert np.bincount(arms, minlength=4) / 8000 == pytest.approx([0, 0.25, 0.75, 0], abs=0.02)


def test_an_arm_that_gives_fewer_gives_them_to_its_first_places() -> None:
    assert places_of(np.array([1, 0, 1, 0, 1]), np.array([2, 3]), np.array([2, 1])).tolist() == [1, 3, 0]


@pytest.mark.parametrize("name", ["sec", "ucb", "dump", "pac", "nested"])
def test_the_first_of_a_batch_are_of_all_categories(name: str) -> None:
    """Algorithm 1 of SEC draws one prompt after another; what a gate or a mini-batch takes first is a sample of all."""
    made = {
        "sec": lambda: rw.SEC(),
        "ucb": lambda: rw.SEC(choice="ucb"),
        "dump": lambda: rw.DUMP(),
        "pac": lambda: rw.PAC(),
        "nested": lambda: rw.Nested(categories=rw.SEC(), prompts=rw.BOTS(), rails=None),
    }
    curriculum, first = made[name](), Counter[int]()
    columns = {"category": [f"c{i % 4}" for i in range(400)]}
    curriculum.bind(rw.PromptPool(ids=[f"p{i}" for i in range(400)], columns=columns))
    for _ in range(50):
        tickets = curriculum.ask(16)
        first.update(int(t.prompt_id[1:]) % 4 for t in tickets[:8])
        curriculum.tell([rw.Outcome(t.id, [1, 0]) for t in tickets])
    assert [first[c] for c in range(4)] == pytest.approx([100] * 4, abs=35)


def test_a_group_that_differs_by_rounding_alone_earns_nothing() -> None:
    """Over their std, scores that differ in the last bit would have |A| near 1."""
    scores = np.array([0.3, 0.3 + 1e-16, 0.1 + 0.2, 0.3])
    evidence = Evidence.from_groups(slots=[0], scores=[scores], solved=[scores >= 1], step=[1])
    assert pay_of(evidence, "std").tolist() == [0.0]


@pytest.mark.parametrize("name", ["boltzmann", "ucb", "thompson", "dump"])
def test_metrics_stay_bounded_with_thousands_of_categories(name: str) -> None:
    from rollwise.curricula.dump import DUMP

    pool = rw.PromptPool(
        ids=[f"p{i}" for i in range(4000)], columns={"category": [f"c{i % 2000}" for i in range(4000)]}
    )
    curriculum = DUMP(pool, rails=None) if name == "dump" else rw.SEC(pool, choice=name, rails=None)  # type: ignore[arg-type]
    tickets = curriculum.ask(60)
    curriculum.tell([rw.Outcome(t.id, [1, 0]) for t in tickets[:1]] + [rw.Outcome(t.id, [1, 1]) for t in tickets[1:]])
    curriculum.ask(1)
    metrics = curriculum.metrics()
    (paid,) = {f"value/{t.lane.partition(':')[2]}" for t in tickets[:1]}
    shown = [key for key in metrics if key.startswith("value/")]
    assert metrics["arms"] == 2000
    assert len(shown) == ARMS_SHOWN
    assert name == "dump" or paid in shown  # DUMP shows those of greatest share: the ones not yet tried
    assert len(curriculum.values()) == 2000


def test_an_exhausted_best_arm_leaves_the_next_best_its_share() -> None:
    """At tau = 0.001 the values .1 and .05 are e^50 apart: the last has e^-50, whatever the first has."""
    share = boltzmann_among(np.array([0.9, 0.1, 0.05]), 0.001, np.array([0, 5, 5]))
    assert share[0] == 0.0
    assert share[1] == 1.0
    assert share[2] == pytest.approx(np.exp(-50.0))
