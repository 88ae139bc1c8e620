"""Rankings that look no further than they must choose what a look at the whole pool chooses, prompt by prompt."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.curricula.families.members import ArmMembers
from rollwise.curricula.families.ranked import Ranked
from rollwise.curricula.families.round_keys import GumbelKeys, NearestKeys, RoundKeys, kth_least, reaching
from rollwise.estimators import BetaBelief, Conjugate, GaussianBelief

N, STEPS = 9000, 40


def pool_of(n: int) -> rw.PromptPool:
    difficulty = np.random.default_rng(0).permutation(n) % 997 / 997  # many are equal
    return rw.PromptPool(ids=[f"p{i}" for i in range(n)], columns={"difficulty": difficulty})


POOL = pool_of(N)


def whole(kind: type[Ranked]) -> type[Ranked]:
    """The method as it was: each round scores, and sorts by, the whole pool."""

    def round_keys(self: Any) -> RoundKeys:
        return RoundKeys(self._ascending(self._keys(np.arange(len(self.pool)), self.scores(None))))

    def new_round(self: Any, changed: np.ndarray | None = None) -> None:
        Ranked.new_round(self)

    return type("Whole", (kind,), {"round_keys": round_keys, "new_round": new_round})


def picks(curriculum: rw.Curriculum, steps: int, batch: int = 200, resume: bool = False) -> list[list[str]]:
    """What is asked for, with outcomes by a seed; some tickets come back a step later, in another order."""
    rng, late, found = np.random.default_rng(3), [], []
    for step in range(steps):
        if resume and step == steps // 2:
            state = json.loads(json.dumps(curriculum.state_dict()))
            curriculum = type(curriculum)(POOL, seed=1)
            curriculum.load_state_dict(state)
        tickets = curriculum.ask(batch, n_rollouts=4)
        found.append([ticket.prompt_id for ticket in tickets])
        outcomes = [rw.Outcome(t.id, (rng.random(4) < rng.random()).astype(float)) for t in tickets]
        curriculum.tell([*late, *outcomes[10:]])
        late = outcomes[9::-1]
    return found


@pytest.mark.parametrize("kind", [rw.MaPP, rw.AdaRFT, rw.Selector])
def test_the_same_picks_in_40_steps(kind: type[Ranked]) -> None:
    lazy, thorough = kind(POOL, seed=1), whole(kind)(POOL, seed=1)
    expected = picks(thorough, STEPS)
    assert picks(lazy, STEPS) == expected
    assert picks(kind(POOL, seed=1), STEPS, resume=True) == expected


@pytest.mark.parametrize("kind", [rw.MaPP, rw.AdaRFT])
def test_the_same_picks_where_a_round_goes_through_the_pool(kind: type[Ranked]) -> None:
    """Asked for again and again without outcomes, everyone has a turn."""
    lazy, thorough = kind(POOL, seed=1), whole(kind)(POOL, seed=1)
    for _ in range(6):
        asked = [[t.prompt_id for t in one.ask(1700)] for one in (lazy, thorough)]
        assert asked[0] == asked[1]
    assert len(asked[0]) < 1700  # no more are free


def test_gumbel_keys_are_those_of_the_generator() -> None:
    scores = np.random.default_rng(0).random(5000) ** 4
    scores[::50] = 0.0
    one, two = (np.random.Generator(np.random.PCG64(7)) for _ in range(2))
    keys, everyone = GumbelKeys(scores, one), np.arange(5000)
    whole_keys = -(np.log(np.maximum(scores, np.finfo(float).tiny)) + two.gumbel(size=5000))
    np.testing.assert_allclose(keys.of(everyone), whole_keys, rtol=1e-13)
    assert one.random() == two.random()  # the stream goes on from the same place
    can = np.ones(5000, dtype=bool)
    can[np.argsort(whole_keys)[:100:2]] = False
    best = [slot for slot in np.argsort(whole_keys).tolist() if can[slot]]
    leading = keys.leading(200, can)
    assert set(best[:200]) <= set(leading.tolist()) <= set(np.flatnonzero(can).tolist())
    assert len(leading) < 1000


def test_nearest_keys_hold_ties_across_the_window() -> None:
    """Eight prompts at 0, 0, 1, 1, 1, 3, 3, 9, the point at 1: of the least two keys, all three at 1."""
    line, order = np.array([0, 0, 1, 1, 1, 3, 3, 9.0]), np.arange(8)[::-1].copy()
    place = np.empty(8)
    place[order] = line
    keys = NearestKeys(line, order, 1.0, lambda slots: np.abs(place[slots] - 1.0))
    assert {3, 4, 5} <= set(keys.leading(2, np.ones(8, dtype=bool)).tolist())
    can = np.zeros(8, dtype=bool)
    can[[0, 7]] = True  # those at 9 and at 0
    assert sorted(keys.leading(2, can).tolist()) == [0, 7]


@pytest.mark.parametrize("least", [0, 30, 3000])
def test_of_very_many_equal_keys_only_the_likely_ones_are_looked_at(least: int) -> None:
    rng = np.random.default_rng(0)
    keys, can = np.full(50_000, 5), rng.random(50_000) < 0.9
    keys[rng.permutation(50_000)[:least]] = 3
    numbers = rng.integers(0, 2**32, 50_000, dtype=np.uint32)
    best = [slot for slot in np.lexsort((numbers, keys)).tolist() if can[slot]][:100]
    found = RoundKeys(keys).leading(100, can, lambda bound: numbers <= bound)
    assert set(best) <= set(found.tolist()) <= set(np.flatnonzero(can).tolist())
    assert len(found) < 1000 + least
    same = RoundKeys(keys).leading(100, can, lambda bound: np.zeros(50_000, dtype=bool))
    assert set(best) <= set(same.tolist())  # no number is small: all are looked at


def test_the_kth_least_and_a_key_that_reaches() -> None:
    rng = np.random.default_rng(0)
    for keys in (rng.random(7000), rng.integers(0, 3, 7000), np.zeros(7000), np.sort(rng.random(7000))):
        for k in (1, 10, 500, 6999, 7000):
            assert kth_least(keys, k) == np.sort(keys)[k - 1]
            assert np.count_nonzero(keys <= reaching(keys, k)) >= k


@pytest.mark.parametrize("told_only", [False, True])
@pytest.mark.parametrize("belief", [BetaBelief(prior=(1.5, 2.5)), GaussianBelief()])
def test_learning_in_place_is_the_update_to_the_bit(belief: Conjugate, told_only: bool) -> None:
    rng = np.random.default_rng(0)
    one, two = copy.copy(belief), copy.copy(belief)
    for own in (one, two):
        own.use({name: np.full(30, default, dtype=kind) for name, (kind, default) in own.columns_spec.items()})
    one.begin_with([rng.random(30) + 1.0 for _ in one.names])
    two.begin_with(list(one.priors))
    for _ in range(5):
        slots, scores = rng.permutation(30)[:7], [rng.random(4) for _ in range(7)]
        for own in (one, two):
            own.add(slots, scores)
        two.settle(two.updated(forgetting=0.1, implicit_weight=0.0, implied=None, n=4.0, told_only=told_only))
        one.learn(one.heard()[0], forgetting=0.1, told_only=told_only)
        for mine, other in zip([*one.parameters, *one.told], [*two.parameters, *two.told], strict=True):
            assert mine.tobytes() == other.tobytes()


def test_draws_of_a_large_pool_come_from_the_same_distributions() -> None:
    """Uniform for Beta(1, 1), else Beta; in small pools as `rng.beta` draws them."""
    belief = BetaBelief()
    belief.use({name: np.full(70_000, default) for name, (_, default) in belief.columns_spec.items()})
    belief.parameters[0][::2], belief.parameters[1][::2] = 6.0, 2.0
    drawn = belief.sample(np.random.default_rng(0))
    for part, mean, variance in ((drawn[1::2], 1 / 2, 1 / 12), (drawn[::2], 3 / 4, 3 / 16 / 9)):
        assert part.mean() == pytest.approx(mean, abs=0.005)
        assert part.var() == pytest.approx(variance, rel=0.03)
    few = np.arange(10)
    expected = np.random.default_rng(5).beta(belief.parameters[0][few], belief.parameters[1][few])
    assert belief.sample(np.random.default_rng(5), few).tolist() == expected.tolist()


@pytest.mark.parametrize("arms", [3, 400])
def test_draws_of_all_arms_at_once_are_those_arm_by_arm(arms: int) -> None:
    """Also where a slot comes twice and is drawn again: four slots an arm, of which up to three are drawn."""
    arm_of = np.random.default_rng(0).integers(0, arms, 4 * arms)
    one, two = ArmMembers(arm_of, arms), ArmMembers(arm_of, arms)
    rng, other = (np.random.Generator(np.random.PCG64(7)) for _ in range(2))
    for own in (one, two):
        own.set(np.arange(len(arm_of)), True)
    for k in (1, 2, 3):
        named = np.arange(arms)[:: 4 - k]
        counts = np.full(len(named), k)
        slots, chances, given = one.draw_each(rng, named, counts)
        expected = [two.draw(other, arm, k) for arm in named.tolist()]
        assert given.tolist() == [len(own) for own, _ in expected]
        ends = np.cumsum(given)[:-1]
        for *mine, its in zip(np.split(slots, ends), np.split(chances, ends), expected, strict=True):
            assert [part.tolist() for part in mine] == [part.tolist() for part in its]
        assert rng.random() == other.random()
        assert one.left.tolist() == two.left.tolist()
