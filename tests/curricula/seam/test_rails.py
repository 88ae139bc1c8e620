"""The rails' promises, kept against a method that breaks every one of them."""

import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollwise as rw
from rollwise.curricula import CURRICULA
from rollwise.curricula.seam.rails import Rails
from rollwise.testing import untagged
from rollwise.tickets.ticket import plain_id


class Stubborn(rw.Curriculum):
    """Always the first free prompts of the data set, and nothing else."""

    default_rails = Rails()

    def build(self) -> None:
        self.free = np.zeros(len(self.pool), dtype=bool)

    def select(self, k: int) -> rw.Picks:
        return rw.Picks.of(np.flatnonzero(self.free)[:k], "stubborn")

    def hold(self, slots: np.ndarray) -> None:
        self.free[slots] = False

    def release(self, slots: np.ndarray) -> None:
        self.free[slots] = True


ONLY = {"explore": 0.0, "retest_solved": 0, "retest_unsolved": 0, "category_share": 0.0}


def make(n: int, rails: Any = "default", *, categories: list[str] | None = None, **core: Any) -> Stubborn:
    columns = {} if categories is None else {"category": categories}
    return Stubborn(rw.PromptPool(ids=[f"p{i}" for i in range(n)], columns=columns), rails=rails, **core)


def turn(curriculum: rw.Curriculum, n: int, rewards: Any = (1.0, 0.0)) -> list[rw.Ticket]:
    """Ask, and tell the rewards, or what `rewards` makes of each prompt id."""
    tickets = curriculum.ask(n)
    curriculum.tell([rw.Outcome(t.id, list(rewards(t.prompt_id) if callable(rewards) else rewards)) for t in tickets])
    return tickets


def lanes(tickets: list[rw.Ticket]) -> Counter[str]:
    return Counter(t.lane for t in tickets)


# ---- exploration ----


def test_one_at_a_time_explores_its_share_exactly() -> None:
    """200 times 0.05 is 10; the twentieth ask is the first that is owed a whole prompt."""
    curriculum = make(1000, {**ONLY, "explore": 0.05})
    railed = [i for i in range(1, 201) if lanes(curriculum.ask(1))["rail-explore"]]
    assert railed == list(range(20, 201, 20))
    assert curriculum.metrics()["rails/share"] == pytest.approx(0.05)


@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=40),
    explore=st.sampled_from([0.05, 0.1, 0.25]),
    told=st.booleans(),
)
def test_the_share_is_exact_at_any_size_of_ask(sizes: list[int], explore: float, told: bool) -> None:
    curriculum = make(2000, {**ONLY, "explore": explore})
    explored = asked = 0
    for size in sizes:
        tickets = turn(curriculum, size) if told else curriculum.ask(size)
        explored, asked = explored + lanes(tickets)["rail-explore"], asked + size
        assert explored == math.floor(explore * asked + 1e-9)


def test_those_not_asked_for_the_longest_time_come_first() -> None:
    """Half and half of two: the method takes p0, or p1 when the rails have p0; the rails go round all five."""
    curriculum = make(5, {**ONLY, "explore": 0.5, "at_most": 0.5})
    last = dict.fromkeys(curriculum.pool.ids, 0)
    for batch in range(1, 20):
        tickets = turn(curriculum, 2)
        (explored,) = (t.prompt_id for t in tickets if t.lane == "rail-explore")
        assert last[explored] == min(last.values())
        last.update({t.prompt_id: batch for t in tickets})


@given(n=st.integers(1, 40), k=st.integers(1, 12), explore=st.sampled_from([0.05, 0.25, 1.0]), groups=st.integers(1, 4))
def test_every_prompt_is_asked_in_bounded_time_whatever_the_method_does(
    n: int, k: int, explore: float, groups: int
) -> None:
    """At most N - 1 prompts are before another in the queue, and every 1/explore prompts asked serve one of it.

    All groups fail, so that the retests want as much as they can get, and one category gets everything, so that the
    quota does. `at_most` leaves room for neither to take the exploration's share.
    """
    rails = {"explore": explore, "at_most": max(0.25, explore)}
    curriculum = make(n, rails, categories=[f"c{i * groups // n}" for i in range(n)])
    last = dict.fromkeys(curriculum.pool.ids, 0)
    asked, bound = 0, n / explore + 2 * min(n, k) + 1 / explore
    for _ in range(math.ceil(2 * bound / min(n, k))):
        tickets = turn(curriculum, min(n, k), (0.0, 0.0))
        asked += len(tickets)
        last.update({t.prompt_id: asked for t in tickets})
        assert asked - min(last.values()) <= bound


def test_a_debt_that_nobody_could_serve_is_not_kept() -> None:
    """All in flight for a hundred asks: when they are back, one ask explores its own due, and one prompt more."""
    curriculum = make(20, {**ONLY, "explore": 0.25}, expire_after=None)
    tickets = curriculum.ask(20)
    for _ in range(100):
        assert curriculum.ask(4) == []
    curriculum.tell([rw.Outcome(t.id, [1.0, 0.0]) for t in tickets])
    assert lanes(curriculum.ask(4))["rail-explore"] <= 2


# ---- at most ----


@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=60),
    at_most=st.sampled_from([0.0, 0.1, 0.25]),
    solved=st.floats(0, 1),
)
def test_the_rails_never_take_more_than_their_share(sizes: list[int], at_most: float, solved: float) -> None:
    """Everything wants room: exploration, retests of all that is told, two categories that the method never takes."""
    rails = {"at_most": at_most, "explore": 0.3, "retest_every": 1, "retest_solved": 9, "category_share": 1.0}
    curriculum = make(90, rails, categories=["a"] * 30 + ["b"] * 30 + ["c"] * 30)
    railed = asked = 0
    for size in sizes:
        tickets = turn(curriculum, size, lambda id_: [float(int(id_[1:]) < 90 * solved)] * 2)
        railed += sum(n for lane, n in lanes(tickets).items() if lane.startswith("rail"))
        asked += len(tickets)
        assert railed <= at_most * asked + 1e-9


def test_without_room_for_all_exploration_comes_first_then_the_categories_then_the_retests() -> None:
    """Batches of 8, at most 2: one explored (.125), one for category b (.25 * 8 / 2), and the retests wait."""
    rails = {"at_most": 0.25, "explore": 0.125, "category_share": 0.25, "retest_every": 1}
    curriculum = make(64, rails, categories=["a"] * 32 + ["b"] * 32)
    for _ in range(3):
        turn(curriculum, 8, (0.0, 0.0))
    got = lanes(turn(curriculum, 8, (0.0, 0.0)))
    assert (got["rail-explore"], got["rail-retest-solved"]) == (1, 0)
    assert sum(got.values()) - got["stubborn"] <= 2


# ---- retests ----


def test_retests_come_every_n_steps_the_longest_untested_first() -> None:
    """Every 3 steps one solved and two unsolved; steps are 1, 2, 3, ..., so the rounds are steps 3, 6, 9, ..."""
    curriculum = make(40, {**ONLY, "retest_every": 3, "retest_solved": 1, "retest_unsolved": 2})

    def even_solved(id_: str) -> list[float]:
        return [float(int(id_[1:]) % 2 == 0)] * 2

    curriculum.tell([rw.Outcome(t.id, even_solved(t.prompt_id)) for t in curriculum.ask(12)])  # p0 ... p11 in step 1
    tested = {f"p{i}": 1 for i in range(12)}
    for step in range(2, 20):
        tickets = curriculum.ask(12)
        for lane, wanted in (("rail-retest-solved", 1), ("rail-retest-unsolved", 2)):
            chosen = [t.prompt_id for t in tickets if t.lane == lane]
            assert len(chosen) == (wanted if step % 3 == 0 else 0)
            parity = int(lane == "rail-retest-unsolved")
            waiting = sorted(at for id_, at in tested.items() if int(id_[1:]) % 2 == parity)
            assert sorted(tested[id_] for id_ in chosen) == waiting[: len(chosen)]
        tested.update({t.prompt_id: step for t in tickets})
        curriculum.tell([rw.Outcome(t.id, even_solved(t.prompt_id)) for t in tickets])


def test_a_prompt_with_contrast_is_not_retested_and_no_reward_changes_no_verdict() -> None:
    curriculum = make(4, {**ONLY, "retest_every": 1, "retest_solved": 1, "retest_unsolved": 3, "at_most": 1.0})
    rewards = {"p0": [0.0, 0.0], "p1": [1.0, 0.0], "p2": [1.0, 1.0], "p3": [0.1, 0.1]}
    turn(curriculum, 4, lambda id_: rewards[id_])
    first = curriculum.ask(4)
    assert {t.prompt_id: t.lane for t in first} == {
        "p0": "rail-retest-unsolved",
        "p1": "stubborn",
        "p2": "rail-retest-solved",
        "p3": "rail-retest-unsolved",  # of equal scores, and not solved
    }
    curriculum.tell([rw.Outcome(t.id, [], failed=2) for t in first])
    assert lanes(curriculum.ask(4)) == lanes(first)


def test_retests_of_nobody_are_not_owed() -> None:
    curriculum = make(8, {**ONLY, "retest_every": 2, "retest_unsolved": 3, "at_most": 1.0})
    for _ in range(2):
        turn(curriculum, 8)  # all with contrast: in step 2 there was nobody to retest
    turn(curriculum, 4, (0.0, 0.0))
    assert lanes(curriculum.ask(2, step=3)) == {"stubborn": 2}  # and what step 2 could not have is not made up for
    assert lanes(curriculum.ask(6, step=4)) == {"rail-retest-unsolved": 2, "stubborn": 4}  # two of four are in flight
    assert lanes(curriculum.ask(1, step=5)) == {}


# ---- categories ----


@given(sizes=st.lists(st.integers(1, 24), min_size=1, max_size=60), groups=st.integers(2, 5))
def test_the_quota_holds_against_a_method_that_hates_a_category(sizes: list[int], groups: int) -> None:
    """Each of G equal categories gets 0.2 / G of what was asked before this batch, less a prompt not yet whole.

    The rails may take a quarter in all, so a category may have to wait for the others': a few prompts more.
    """
    per = 60
    curriculum = make(per * groups, {"explore": 0.0}, categories=[f"c{i // per}" for i in range(per * groups)])
    got, asked = Counter[str](), 0
    for size in sizes:
        tickets = turn(curriculum, size)
        got.update(f"c{int(t.prompt_id[1:]) // per}" for t in tickets)
        for category in range(groups):
            assert got[f"c{category}"] >= 0.2 * asked / groups - 1 - groups
        asked += len(tickets)


def test_the_quota_takes_nothing_from_a_method_that_serves_every_category() -> None:
    ids = [f"p{i}" for i in range(400)]
    pool = rw.PromptPool(ids=ids, columns={"category": [f"c{i % 4}" for i in range(400)]})
    curriculum = rw.Uniform(pool, rails={**ONLY, "category_share": 0.2})
    assert not any(lanes(turn(curriculum, 64))["rail-quota"] for _ in range(20))


def test_the_quota_takes_those_not_asked_for_the_longest_time() -> None:
    """Batches of 10, half of the pool in b, its whole fair share: 5 of each batch from the second on, in a rotation."""
    rails = {**ONLY, "category_share": 1.0, "at_most": 0.5}
    curriculum = make(40, rails, categories=["a"] * 20 + ["b"] * 20)
    assert lanes(turn(curriculum, 10)) == {"stubborn": 10}
    quota = [t.prompt_id for _ in range(8) for t in turn(curriculum, 10) if t.lane == "rail-quota"]
    assert len(quota) == 40
    assert sorted(quota[:20]) == sorted(f"p{i}" for i in range(20, 40))
    assert quota[20:] != quota[:20]  # another order, but nobody twice before everyone once
    assert sorted(quota[20:]) == sorted(quota[:20])


def test_a_category_in_flight_is_not_owed_for_ever() -> None:
    rails = {**ONLY, "category_share": 1.0, "at_most": 1.0}
    curriculum = make(12, rails, categories=["a"] * 10 + ["b"] * 2, expire_after=None)
    first = curriculum.ask(12)
    held = [t for t in first if t.prompt_id in ("p10", "p11")]
    curriculum.tell([rw.Outcome(t.id, [1.0, 0.0]) for t in first if t not in held])
    for _ in range(30):
        turn(curriculum, 6)
    curriculum.tell([rw.Outcome(t.id, [1.0, 0.0]) for t in held])
    returned = [lanes(turn(curriculum, 6))["rail-quota"] for _ in range(4)]
    assert sum(returned) <= 6  # at a fair share of 1 a batch, and not the 30 that it missed


def test_the_alarm_names_a_starved_category_once(caplog: pytest.LogCaptureFixture) -> None:
    curriculum = make(200, ONLY, categories=["good"] * 100 + ["bad"] * 100)
    for _ in range(100):
        turn(curriculum, 20)
    starved = [r for r in caplog.records if "starved" in r.message]
    assert len(starved) == 1
    assert "'bad'" in starved[0].message


def test_the_alarm_sounds_though_the_quota_keeps_the_category_in(caplog: pytest.LogCaptureFixture) -> None:
    """The default rails give every category 0.2 of its share, more than the alarm's 0.1: the method's part counts."""
    curriculum = make(200, categories=["good"] * 100 + ["bad"] * 100)
    for _ in range(100):
        turn(curriculum, 20, lambda id_: [float(int(id_[1:]) < 100)] * 2 if int(id_[1:]) >= 100 else [1.0, 0.0])
    starved = [r.message for r in caplog.records if "starved" in r.message]
    assert len(starved) == 1
    assert "'bad'" in starved[0]
    assert "all unsolved" in starved[0]


def test_the_alarm_does_not_name_a_solved_category(caplog: pytest.LogCaptureFixture) -> None:
    """Few of it need have been seen, as long as most of those are solved."""
    curriculum = make(400, categories=["good"] * 200 + ["solved"] * 200)
    for _ in range(60):
        turn(curriculum, 20, lambda id_: [1.0, 1.0] if int(id_[1:]) >= 200 else [1.0, 0.0])
    assert "starved" not in caplog.text


# ---- metrics ----


def test_the_cost_by_hand() -> None:
    """Batches of 4, one of them explored. The method's p0, p1, p2 have contrast 2 times of 3, the others never.

    4 batches: the method's 12 groups have 8 with contrast, the rails' 4 have none: share 4/16, effective ratio 0,
    cost (8/12 - 0) * 4/16 = 1/6.
    """
    curriculum = make(30, {**ONLY, "explore": 0.25})
    for _ in range(4):
        turn(curriculum, 4, lambda id_: [1.0, 0.0] if id_ in ("p0", "p1") else [0.0, 0.0])
    metrics = curriculum.metrics()
    assert metrics["rails/share"] == pytest.approx(0.25)
    assert metrics["rails/effective_ratio"] == pytest.approx(0.0)
    assert metrics["rails/cost"] == pytest.approx(8 / 12 * 4 / 16)


def test_rails_that_find_more_than_the_method_cost_less_than_nothing() -> None:
    curriculum = make(30, {**ONLY, "explore": 0.5, "at_most": 0.5})
    for _ in range(4):
        turn(curriculum, 2, lambda id_: [0.0, 0.0] if id_ == "p0" else [1.0, 0.0])
    assert curriculum.metrics()["rails/effective_ratio"] == 1.0
    assert curriculum.metrics()["rails/cost"] == pytest.approx(-0.5)


def test_starved_counts_who_waits_too_long_and_is_not_solved() -> None:
    """10 prompts, starved after 2 * 10 asked: the method's two are not, one of the others was solved when last seen."""
    curriculum = make(10, {**ONLY, "starved_after": 2.0})
    turn(curriculum, 10, lambda id_: [1.0, 1.0] if id_ == "p9" else [0.0, 0.0])
    for _ in range(10):
        turn(curriculum, 2)
    assert curriculum.metrics()["rails/starved"] == 0.0  # 20 prompts ago is not yet more than 20
    turn(curriculum, 2)
    assert curriculum.metrics()["rails/starved"] == 7.0


# ---- off, options ----


@pytest.mark.parametrize("off", ["off", None, False])
def test_off_is_the_bare_method(off: Any) -> None:
    bare, default = make(50, off), make(50)
    assert default.rails == Rails()
    assert bare.rails is None
    assert [t.prompt_id for t in bare.ask(20)] == [f"p{i}" for i in range(20)]
    assert not any(name.startswith("rails/") for name in bare.metrics())
    assert lanes(default.ask(20)) == {"stubborn": 19, "rail-explore": 1}
    assert rw.BOTS(bare.pool, rails=off).options["rails"] is None


def test_a_method_without_default_rails_has_none_and_can_be_given_some() -> None:
    pool = rw.PromptPool(ids=["a", "b"])
    assert rw.Uniform(pool).guard is None
    assert rw.make_curriculum("uniform", rails="default").rails is None
    assert rw.make_curriculum("uniform", rails=True).rails == rw.make_curriculum("sec", rails="on").rails == Rails()
    assert rw.Uniform(pool, rails={}).guard is not None


OURS = {"empirical-bayes", "mixture", "nested", "recommended", "selector"}


@pytest.mark.parametrize("name", sorted(CURRICULA))
def test_rails_are_on_by_default_in_our_own_methods_alone(name: str) -> None:
    """A method with a paper's name is the paper's, which has none; so are the baselines."""
    expected = Rails() if name in OURS else None
    assert CURRICULA[name].default_rails == expected


def test_rails_as_a_configuration_file_has_them() -> None:
    yaml = pytest.importorskip("yaml")
    text = "{off: {rails: off}, some: {rails: {explore: 0.1, retest_every: 5}}, on: {rails: on}}"
    read = {name: rw.make_curriculum("bots", **options).rails for name, options in yaml.safe_load(text).items()}
    assert list(read.values()) == [None, Rails(explore=0.1, retest_every=5), Rails()]


def test_numbers_of_numpy_can_be_saved() -> None:
    curriculum = make(4, Rails(explore=np.float32(0.25), retest_every=np.int64(3)))  # type: ignore[arg-type]
    again = make(4, Rails(explore=0.25, retest_every=3))
    again.load_state_dict(json.loads(json.dumps(curriculum.state_dict())))


@pytest.mark.parametrize(
    ("rails", "reason"),
    [
        ({"explore": 1.5}, "rails.explore"),
        ({"at_most": -0.1}, "rails.at_most"),
        ({"category_share": float("nan")}, "rails.category_share"),
        ({"alarm_share": "0.1"}, "rails.alarm_share"),
        ({"retest_every": 0}, "rails.retest_every"),
        ({"retest_solved": 1.5}, "rails.retest_solved"),
        ({"retest_unsolved": -1}, "rails.retest_unsolved"),
        ({"starved_after": 0}, "rails.starved_after"),
        ({"exploration": 0.1}, "exploration"),
        ({1: 2, "x": 3}, "no 1"),
        ("on and on", "on and on"),
        (3, "3"),
    ],
)
def test_bad_rails_are_named(rails: Any, reason: str) -> None:
    with pytest.raises(rw.ConfigError, match=reason):
        make(4, rails)


# ---- saving ----


def _play(curriculum: rw.Curriculum, turns: range) -> list[tuple[str, str]]:
    """Asks of changing size; a third of each batch is never told of."""
    seen = []
    for i in turns:
        tickets = curriculum.ask(1 + i % 7)
        seen += [(t.prompt_id, t.lane) for t in tickets]
        told = [t for t in tickets if int(plain_id(t.id)[1:]) % 3]
        curriculum.tell([rw.Outcome(t.id, [float(int(t.prompt_id[1:]) % 3 > 0), float(i % 2)]) for t in told])
    return seen


def test_resumed_in_the_middle_it_goes_on_as_if_it_had_not_stopped() -> None:
    def fresh() -> Stubborn:
        return make(60, {"retest_every": 3}, categories=[f"c{i // 20}" for i in range(60)], expire_after=9, seed=4)

    for stop in (1, 5, 12, 23):
        straight, stopped, again = fresh(), fresh(), fresh()
        _play(straight, range(stop))
        _play(stopped, range(stop))
        again.load_state_dict(json.loads(json.dumps(stopped.state_dict())))
        assert _play(again, range(stop, 60)) == _play(straight, range(stop, 60))
        assert again.metrics() == straight.metrics()
        assert json.dumps(untagged(again.state_dict())) == json.dumps(untagged(straight.state_dict()))


def test_a_grown_pool_keeps_what_is_owed_and_new_prompts_wait_from_now() -> None:
    rails = {**ONLY, "category_share": 0.5, "explore": 0.1, "at_most": 0.5}
    old = make(40, rails, categories=["a"] * 20 + ["b"] * 20)
    for _ in range(10):
        turn(old, 7)
    ids = [f"q{i}" for i in range(5)] + [f"p{i}" for i in range(40)]
    pool = rw.PromptPool(ids=ids, columns={"category": ["new"] * 5 + ["a"] * 20 + ["b"] * 20})
    grown = Stubborn(pool, rails=rails)
    grown.load_state_dict(old.state_dict())
    assert old.guard is not None
    assert grown.guard is not None
    by_name = dict(zip(grown.guard.names, grown.guard.credit.tolist(), strict=True))
    assert by_name == {**dict(zip(old.guard.names, old.guard.credit.tolist(), strict=True)), "new": 0.0}
    assert grown.metrics()["rails/starved"] == old.metrics()["rails/starved"]
    explored = [t.prompt_id for _ in range(20) for t in turn(grown, 10) if t.lane == "rail-explore"]
    assert len(unasked := [f"p{i}" for i in range(40) if not old.columns["asked"][i]]) >= 3
    assert set(explored[:3]) <= set(unasked)  # who has waited longest is still first


@pytest.mark.parametrize(("before", "after"), [("off", "default"), ("default", "off"), ("default", {"explore": 0.5})])
def test_rails_can_be_put_on_and_taken_off_at_a_resume(before: Any, after: Any) -> None:
    old = make(30, before, categories=["a"] * 15 + ["b"] * 15)
    _play(old, range(12))
    state = json.loads(json.dumps(old.state_dict()))
    new = make(30, after, categories=["a"] * 15 + ["b"] * 15)
    with pytest.raises(rw.StateError, match="rails"):
        new.load_state_dict(state)
    new.load_state_dict(state, strict=False)
    assert (new.guard is None) == (after == "off")
    in_flight = int(new.metrics()["open"])
    assert in_flight == int(old.metrics()["open"])
    _play(new, range(12, 40))
    if new.guard is not None:
        assert new.metrics()["rails/share"] > 0
        again = make(30, after, categories=["a"] * 15 + ["b"] * 15)
        again.load_state_dict(new.state_dict())
        assert _play(again, range(40, 50)) == _play(new, range(40, 50))


def test_a_longer_time_between_retests_counts_from_the_load_on() -> None:
    """At step 50 after 50 rounds; of every 10 steps, the last round was the fifth, and the next is due at 60."""
    old, new = (make(6, {**ONLY, "retest_every": n, "retest_unsolved": 1}) for n in (1, 10))
    for step in range(1, 51):
        old.tell([rw.Outcome(t.id, [0.0, 0.0]) for t in old.ask(4, step=step)])
    assert old.guard is not None
    assert old.guard.last_round == 50
    new.load_state_dict(old.state_dict(), strict=False)
    assert new.guard is not None
    assert new.guard.last_round == 5


def test_excluded_prompts_keep_their_place_in_the_queue() -> None:
    curriculum = make(6, {**ONLY, "explore": 0.5, "at_most": 0.5})
    turn(curriculum, 5)
    (longest,) = (id_ for id_, asked in zip(curriculum.pool.ids, curriculum.columns["asked"], strict=True) if not asked)
    for _ in range(3):
        tickets = curriculum.ask(2, exclude=[longest])
        assert longest not in {t.prompt_id for t in tickets}
        curriculum.tell([rw.Outcome(t.id, [1.0, 0.0]) for t in tickets])
    assert [t.prompt_id for t in curriculum.ask(2) if t.lane == "rail-explore"] == [longest]
