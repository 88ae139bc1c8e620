"""Choosing by score: the laws of the draws, rounds, candidates, and coming back in the middle of a round."""

import itertools
import json
import math
from collections import Counter
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollwise as rw
from rollwise.curricula.families import ranked
from rollwise.options import Count, Positive
from rollwise.testing.play import Player, actions


class Scored(ranked.Ranked):
    """Scores are the pool's column `score`."""

    lane = "scored"

    def __init__(
        self,
        pool: rw.PromptPool,
        *,
        draw: Literal["top", "proportional", "softmax"] = "top",
        temperature: Positive = 1.0,
        candidate_multiplier: Count | None = None,
        **core: Any,
    ) -> None:
        self.draw_by(draw, temperature, candidate_multiplier)
        super().__init__(pool, **core)

    def scores(self, slots: np.ndarray | None) -> np.ndarray:
        return np.asarray(self.pool.columns["score"][slice(None) if slots is None else slots])

    def end_step(self) -> None:
        self.new_round()


def pool_of(scores: list[float], *, order: list[int] | None = None) -> rw.PromptPool:
    numbers = list(range(len(scores))) if order is None else order
    return rw.PromptPool(ids=[f"p{i}" for i in numbers], columns={"score": [scores[i] for i in numbers]})


def ids(tickets: list[rw.Ticket]) -> list[str]:
    return [t.prompt_id for t in tickets]


def fail(curriculum: rw.Curriculum, tickets: list[rw.Ticket]) -> None:
    """Back without any reward: free again, and no news."""
    curriculum.tell([rw.Outcome(t.id, []) for t in tickets])


# ---- the draws ----


def test_proportional_follows_successive_sampling() -> None:
    """Weights 3, 2, 1: P(a, b) = 3/6 * 2/3, P(a, c) = 3/6 * 1/3, P(b, a) = 2/6 * 3/4, ... by the Gumbel trick."""
    curriculum, trials = Scored(pool_of([3.0, 2.0, 1.0]), draw="proportional", seed=1), 5000
    counts = Counter[tuple[str, ...]]()
    for _ in range(trials):
        tickets = curriculum.ask(2)
        counts[tuple(ids(tickets))] += 1
        fail(curriculum, tickets)
        curriculum.new_round()
    weight = {"p0": 3.0, "p1": 2.0, "p2": 1.0}
    for pair in itertools.permutations(weight, 2):
        p = weight[pair[0]] / 6 * weight[pair[1]] / (6 - weight[pair[0]])
        assert counts[pair] / trials == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) / trials))


def test_softmax_follows_its_law() -> None:
    """Scores .1, .2, .4 at temperature .1: weights e, e^2, e^4."""
    curriculum, trials = Scored(pool_of([0.1, 0.2, 0.4]), draw="softmax", temperature=0.1, seed=1), 5000
    counts = Counter[str]()
    for _ in range(trials):
        tickets = curriculum.ask(1)
        counts[tickets[0].prompt_id] += 1
        fail(curriculum, tickets)
        curriculum.new_round()
    weights = np.exp([1.0, 2.0, 4.0])
    for i, p in enumerate(weights / weights.sum()):
        assert counts[f"p{i}"] / trials == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) / trials))


def test_a_cold_softmax_neither_under_nor_overflows_and_takes_the_best() -> None:
    scores = [i / 50 for i in range(50)]
    curriculum = Scored(pool_of(scores), draw="softmax", temperature=1e-6)
    assert ids(curriculum.ask(50)) == [f"p{i}" for i in reversed(range(50))]


def test_nothing_of_weight_zero_is_drawn_while_another_is_left_and_then_not_by_row() -> None:
    rows = Counter[tuple[str, ...]]()
    for seed in range(200):
        drawn = ids(Scored(pool_of([0.0, 5.0, 0.0, 1e-300, 0.0]), draw="proportional", seed=seed).ask(5))
        assert drawn[:2] == ["p1", "p3"]
        rows[tuple(drawn[2:])] += 1
    assert len(rows) == 6
    assert max(rows.values()) < 60


@pytest.mark.parametrize("ahead", [3, 4096])
@pytest.mark.parametrize("draw", ["top", "softmax", "proportional"])
@pytest.mark.parametrize("random_scores", [False, True])
def test_equal_scores_do_not_come_by_row(
    monkeypatch: pytest.MonkeyPatch, draw: Any, random_scores: bool, ahead: int
) -> None:
    """However the pool is laid out: over 300 seeds each of six equal prompts comes first about 50 times."""
    monkeypatch.setattr(ranked.Ranked, "ranked_at_once", ahead)
    monkeypatch.setattr(Scored, "random_scores", random_scores)
    first = Counter(ids(Scored(pool_of([0.0] * 6), draw=draw, seed=seed).ask(1))[0] for seed in range(300))
    assert len(first) == 6
    assert max(first.values()) < 90


def test_top_does_not_depend_on_the_layout() -> None:
    scores = [0.5, 0.5, 0.2, 0.5, 0.9, 0.2, 0.2, 0.5]
    order = [3, 6, 0, 7, 2, 5, 1, 4]
    assert ids(Scored(pool_of(scores), seed=3).ask(8)) == ids(Scored(pool_of(scores, order=order), seed=3).ask(8))


def test_scores_that_float32_can_not_tell_apart_tie() -> None:
    p = 0.1 + 0.2
    firsts = {ids(Scored(pool_of([p * (1 - p), (1 - p) * p + 1e-12]), seed=seed).ask(1))[0] for seed in range(20)}
    assert firsts == {"p0", "p1"}


# ---- rounds ----


@given(
    n=st.integers(1, 40),
    sizes=st.lists(st.integers(1, 9), max_size=20),
    draw=st.sampled_from(["top", "proportional", "softmax"]),
    ahead=st.sampled_from([2, 5, 4096]),
    back=st.integers(0, 9),
)
def test_one_at_a_time_is_all_at_once(n: int, sizes: list[int], draw: Any, ahead: int, back: int) -> None:
    """Without rails; also where a round ends in the middle of an ask, and where prompts come back without news."""
    scores = [float(i % 4) for i in range(n)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranked.Ranked, "ranked_at_once", ahead)
        together, apart = (Scored(pool_of(scores), draw=draw, seed=5, rails=None) for _ in range(2))
        for step, size in enumerate(sizes, start=1):
            size = min(size, n - int(together.metrics()["open"]))
            if not size:
                break
            a, b = together.ask(size, step=step), [t for _ in range(size) for t in apart.ask(1, step=step)]
            assert ids(a) == ids(b)
            for curriculum, tickets in ((together, a), (apart, b)):
                fail(curriculum, tickets[:back])


def test_a_round_gives_everyone_a_turn_before_it_begins_again() -> None:
    curriculum = Scored(pool_of([float(i) for i in range(10)]))
    for _ in range(3):
        seen: list[str] = []
        for _ in range(5):
            tickets = curriculum.ask(2)
            seen += ids(tickets)
            fail(curriculum, tickets)
        assert seen == [f"p{i}" for i in reversed(range(10))]


def test_news_begin_a_round_anew() -> None:
    curriculum = Scored(pool_of([float(i) for i in range(10)]))
    for _ in range(3):
        tickets = curriculum.ask(3)
        assert ids(tickets) == ["p9", "p8", "p7"]
        curriculum.tell([rw.Outcome(t.id, [1.0, 0.0]) for t in tickets])


def test_who_was_in_flight_takes_its_place_when_it_is_back() -> None:
    """p9, p7 and p5 are in flight when the round begins; back in its middle, they come in the order of their scores."""
    curriculum = Scored(pool_of([float(i) for i in range(10)]), expire_after=4)
    flying = {t.prompt_id: t for t in curriculum.ask(10, step=1)}
    stay = {"p9", "p7", "p5"}
    curriculum.tell([rw.Outcome(t.id, [1.0, 0.0]) for id_, t in flying.items() if id_ not in stay])
    assert ids(curriculum.ask(2, step=2)) == ["p8", "p6"]
    fail(curriculum, [flying["p7"]])
    assert ids(curriculum.ask(2, step=3)) == ["p7", "p4"]
    assert ids(curriculum.ask(3, step=5)) == ["p9", "p5", "p3"]  # the other two have expired
    assert ids(curriculum.ask(3, step=5)) == ["p2", "p1", "p0"]


_moves = st.lists(
    st.one_of(
        actions, st.tuples(st.just("tell-failed"), st.integers(1, 12)), st.tuples(st.just("exclude"), st.integers(1, 5))
    ),
    max_size=40,
)
_kinds = st.sampled_from(
    [
        {"estimator": "beta", "sampling": "mean", "acquisition": "target"},
        {"estimator": "beta", "sampling": "thompson", "acquisition": "variance"},
        {"estimator": "average", "sampling": "thompson", "acquisition": "uncertainty"},
        {"estimator": "gaussian", "sampling": "mean", "acquisition": "variance", "draw": "proportional"},
        {"estimator": "average", "sampling": "mean", "draw": "softmax"},
        {"estimator": "beta", "sampling": "thompson", "candidate_multiplier": 2},
    ]
)


def _act(player: Player, action: str, amount: int) -> None:
    if action == "exclude":
        tickets = player.curriculum.ask(amount, n_rollouts=4, exclude=[f"p{i}" for i in range(5)])
        player.asked.append(ids(tickets))
        player.tickets += tickets
    else:
        player.act(action, amount)


@given(moves=_moves, kind=_kinds, rails=st.sampled_from(["off", "default"]), n=st.integers(1, 24))
def test_how_far_it_ranks_ahead_changes_nothing(moves: Any, kind: dict[str, Any], rails: str, n: int) -> None:
    """Two prompts ranked at a time, or all: the same choices, though prompts expire, fail and come back."""
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(n)])
    asked = []
    for ahead in (2, 4096):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ranked.Ranked, "ranked_at_once", ahead)
            player = Player(rw.Selector(pool, rails=rails, expire_after=3, seed=2, **kind))
            for action, amount in moves:
                _act(player, action, amount)
            asked.append(player.asked)
    assert asked[0] == asked[1]


@given(moves=_moves, kind=_kinds, rails=st.sampled_from(["off", "default"]), stop=st.integers(0, 40))
def test_resumed_in_the_middle_of_a_round(moves: Any, kind: dict[str, Any], rails: str, stop: int) -> None:
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(15)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranked.Ranked, "ranked_at_once", 3)
        straight, resumed = (Player(rw.Selector(pool, rails=rails, expire_after=3, seed=2, **kind)) for _ in range(2))
        for i, (action, amount) in enumerate(moves):
            if i == stop:
                again = rw.Selector(pool, rails=rails, expire_after=3, seed=9, **kind)
                again.load_state_dict(json.loads(json.dumps(resumed.curriculum.state_dict())))
                resumed.curriculum = again
            _act(straight, action, amount)
            _act(resumed, action, amount)
    assert straight.asked == resumed.asked
    assert straight.curriculum.metrics() == resumed.curriculum.metrics()


# ---- candidates ----


@given(n=st.integers(1, 30), k=st.integers(1, 6), m=st.integers(1, 4))
def test_candidates_go_round_the_pool(n: int, k: int, m: int) -> None:
    """Nobody is shown for the third time before everyone was shown twice, and the best k of the m k shown are taken."""
    curriculum = Scored(pool_of([float(i) for i in range(n)]), candidate_multiplier=m)
    shown: np.ndarray = curriculum.columns["shown"]
    for _ in range(12):
        before = shown.copy()
        tickets = curriculum.ask(min(k, n))
        candidates = np.flatnonzero(shown > before)
        assert len(candidates) == min(m * min(k, n), n)
        assert (shown - before).max() == 1
        assert shown.max() - shown.min() <= 1
        assert ids(tickets) == [f"p{i}" for i in sorted(candidates.tolist(), reverse=True)[:k]]
        fail(curriculum, tickets)


def test_every_round_through_the_pool_has_an_order_of_its_own() -> None:
    """Of 24 prompts in sets of 6, only the best is ever asked for; the others meet other rivals the next time round."""
    curriculum = Scored(pool_of([float(i) for i in range(24)]), candidate_multiplier=6)
    shown: np.ndarray = curriculum.columns["shown"]
    rounds = []
    for _ in range(3):
        sets = []
        for _ in range(4):
            before = shown.copy()
            fail(curriculum, curriculum.ask(1))
            sets.append(frozenset(np.flatnonzero(shown > before).tolist()))
        assert sorted(i for s in sets for i in s) == list(range(24))
        rounds.append(frozenset(sets))
    assert len(set(rounds)) == 3


def test_prompts_that_join_later_are_not_shown_over_and_over() -> None:
    old = Scored(pool_of([1.0] * 6), candidate_multiplier=2)
    for _ in range(30):
        fail(old, old.ask(1))
    grown = Scored(pool_of([1.0] * 8), candidate_multiplier=2)
    grown.load_state_dict(old.state_dict())
    shown = grown.columns["shown"]
    assert shown[6:].tolist() == [shown[:6].min()] * 2


# ---- options ----


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"draw": "best"}, "draw"),
        ({"temperature": 0.0}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"candidate_multiplier": 0}, "candidate_multiplier"),
        ({"candidate_multiplier": 1.5}, "candidate_multiplier"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], reason: str) -> None:
    for make in (Scored, rw.BOTS, rw.Selector):
        with pytest.raises(rw.ConfigError, match=reason):
            make(pool_of([1.0]), **options)


def test_a_round_that_is_drawn_again_at_a_load_leaves_the_generators_as_they_were_saved() -> None:
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(20)])
    saved, loaded = (rw.Selector(pool, draw="proportional", candidate_multiplier=None, seed=0) for _ in range(2))
    saved.ask(3)
    saved.rng["other"].random(5)  # another generator moves on within the round
    state = saved.state_dict()
    loaded.load_state_dict(state)
    assert loaded.state_dict() == state
    assert [t.prompt_id for t in loaded.ask(3)] == [t.prompt_id for t in saved.ask(3)]
