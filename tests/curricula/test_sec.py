"""SEC against numbers worked out by hand from Algorithm 1."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollwise as rw
from rollwise.curricula.families import strata as grouping
from rollwise.curricula.families.arms import absolute_advantages, belief_sd, boltzmann
from rollwise.testing import CurriculumConformance


def pool_of(sizes: dict[str, int]) -> rw.PromptPool:
    names = [name for name, n in sizes.items() for _ in range(n)]
    ids = [f"{name}{i}" for name, n in sizes.items() for i in range(n)]
    return rw.PromptPool(ids=ids, columns={"category": names})


def step(sec: rw.SEC, k: int, rewards: dict[str, list[float]]) -> Counter[str]:
    tickets = sec.ask(k)
    sec.tell([rw.Outcome(t.id, rewards[t.prompt_id[0]]) for t in tickets])
    return Counter(t.prompt_id[0] for t in tickets)


def test_td_0_by_hand() -> None:
    """[1,0,0,0]: |A| = (.75 + 3 * .25) / 4 = .375; Q = .1875; then [1,1,0,0]: .5 * .5 + .5 * .1875 = .34375.

    These are centred. Over std(r), equations 4 to 6: .375 / (sqrt(3) / 4) = .8660, Q = .4330; then .5 + .2165 = .7165.
    """
    paid = rw.SEC(pool_of({"a": 2}))
    step(paid, 2, {"a": [1, 0, 0, 0]})
    assert paid.values() == {"a": pytest.approx(3**0.5 / 4)}
    step(paid, 1, {"a": [1, 1, 0, 0]})
    assert paid.values() == {"a": pytest.approx(0.7165, abs=1e-4)}
    sec = rw.SEC(pool_of({"a": 2}), advantage="centred")
    step(sec, 2, {"a": [1, 0, 0, 0]})
    assert sec.values() == {"a": pytest.approx(0.1875)}
    step(sec, 1, {"a": [1, 1, 0, 0]})
    assert sec.values() == {"a": pytest.approx(0.34375)}


def test_a_categorys_reward_is_the_mean_over_its_groups() -> None:
    """Groups with |A| = 1 and 0 in one category: r = .5, Q = .25."""
    sec = rw.SEC(pool_of({"a": 2}))
    first, second = sec.ask(2)
    sec.tell([rw.Outcome(first.id, [1, 0]), rw.Outcome(second.id, [1, 1])])
    assert sec.values()["a"] == pytest.approx(0.25)


def test_told_centred_and_normalised_advantages() -> None:
    """[1,0,0,0]: centred .375; over std sqrt(3)/4: .866; the trainer's own [2,-1,-1,0]: 1."""
    for advantage, expected in (("told", 1.0), ("centred", 0.375), ("std", 0.375 / (3**0.5 / 4))):
        sec = rw.SEC(pool_of({"a": 1}), advantage=advantage, learning_rate=1.0)  # type: ignore[arg-type]
        sec.tell([rw.Outcome(sec.ask(1)[0].id, [1, 0, 0, 0], advantages=[2.0, -1.0, -1.0, 0.0])])
        assert sec.values()["a"] == pytest.approx(expected)


@pytest.mark.parametrize(("temperature", "share"), [(1.0, 0.731), (0.2, 0.993)])
def test_by_default_the_pay_is_that_of_equations_4_to_6(temperature: float, share: float) -> None:
    """A half-solved group earns 2 sqrt(.25) = 1, an unsolved one 0: share e^(1/tau) / (e^(1/tau) + 1) at Q = (1, 0).

    Whatever the trainer tells: `rollwise train` centres, so its groups would earn .5 (shares .622 and .924).
    """
    sec = rw.SEC(pool_of({"h": 1, "u": 1}), learning_rate=1.0, temperature=temperature)
    rewards = {"h": [1.0, 0.0], "u": [0.0, 0.0]}
    told = [rw.Outcome(t.id, rewards[t.prompt_id[0]], advantages=[0.5, -0.5]) for t in sec.ask(1)]
    sec.tell(told)
    for ticket in sec.ask(2):
        sec.tell([rw.Outcome(ticket.id, rewards[ticket.prompt_id[0]], advantages=[0.5, -0.5])])
    assert sec.values() == {"h": 1.0, "u": 0.0}
    (ticket,) = sec.ask(1)
    expected = share if ticket.prompt_id == "h0" else 1 - share
    assert ticket.propensity == pytest.approx(expected, abs=5e-4)
    assert (rw.SEC().advantage, rw.SEC.metis().advantage) == ("std", "centred")


@given(st.lists(st.integers(0, 1), min_size=1, max_size=16))
def test_equation_4_normalised_absolute_advantage_is_twice_the_standard_deviation(rewards: list[int]) -> None:
    """E|A| = 2 p (1 - p) / sqrt(p (1 - p)) = 2 sqrt(p (1 - p)); without the division 2 p (1 - p)."""
    scores, p = np.array(rewards, dtype=float), float(np.mean(rewards))
    assert absolute_advantages([scores], normalised=True)[0] == pytest.approx(2 * (p * (1 - p)) ** 0.5)
    assert absolute_advantages([scores], normalised=False)[0] == pytest.approx(2 * p * (1 - p))


def test_boltzmann_by_hand_and_without_overflow() -> None:
    """Q = (0, .2), tau = .2: weights 1 and e."""
    assert boltzmann(np.array([0.0, 0.2]), 0.2).tolist() == pytest.approx([1 / (1 + np.e), np.e / (1 + np.e)])
    assert boltzmann(np.array([0.0, 1e6]), 1e-3).tolist() == [0.0, 1.0]


def test_categories_are_drawn_by_value_and_prompts_uniformly_within() -> None:
    """After one step a has Q = .5 and b 0; tau = .5: shares e/(e+1) and 1/(e+1), whatever the categories' sizes."""
    sec = rw.SEC(pool_of({"a": 3, "b": 300}), temperature=0.5, seed=2, rails=None)
    tickets = sec.ask(303)
    sec.tell([rw.Outcome(t.id, [1, 0] if t.prompt_id[0] == "a" else [0, 0]) for t in tickets])
    picked: Counter[str] = Counter()
    for _ in range(3000):
        (ticket,) = sec.ask(1)
        picked[ticket.prompt_id] += 1
        assert ticket.lane == f"category:{ticket.prompt_id[0]}"
        share = np.e / (1 + np.e) / 3 if ticket.prompt_id[0] == "a" else 1 / (1 + np.e) / 300
        assert ticket.propensity == pytest.approx(share)
        sec.tell([rw.Outcome(ticket.id, [], failed=0)])
    a = [picked[f"a{i}"] / 3000 for i in range(3)]
    assert a == pytest.approx([np.e / (1 + np.e) / 3] * 3, abs=0.03)


def test_a_category_that_was_not_sampled_keeps_its_value() -> None:
    sec = rw.SEC(pool_of({"a": 5, "b": 5}), temperature=1e-3, learning_rate=1.0)
    tickets = sec.ask(10)
    sec.tell([rw.Outcome(t.id, [1, 0] if t.prompt_id[0] == "a" else [1, 0, 0, 0]) for t in tickets])
    assert sec.values() == pytest.approx({"a": 1.0, "b": 3**0.5 / 2})
    assert step(sec, 4, {"a": [1, 1], "b": [1, 1]}) == {"a": 4}
    assert sec.values() == pytest.approx({"a": 0.0, "b": 3**0.5 / 2})


def test_the_curriculum_moves_on_when_a_category_is_mastered() -> None:
    sec = rw.SEC(pool_of({"e": 50, "h": 50}), temperature=0.1, seed=0)
    early = sum((step(sec, 8, {"e": [1, 0, 1, 0], "h": [0, 0, 0, 0]}) for _ in range(10)), Counter())
    late = sum((step(sec, 8, {"e": [1, 1, 1, 1], "h": [1, 0, 0, 0]}) for _ in range(20)), Counter())
    assert early["e"] > 3 * early["h"]
    assert late["h"] > 3 * late["e"]


def test_an_exhausted_category_leaves_its_share_to_the_others() -> None:
    sec = rw.SEC(pool_of({"a": 2, "b": 20}), temperature=1e-6, learning_rate=1.0)
    sec.tell([rw.Outcome(t.id, [1, 0] if t.prompt_id[0] == "a" else [0, 0]) for t in sec.ask(22)])
    assert Counter(t.prompt_id[0] for t in sec.ask(10)) == {"a": 2, "b": 8}


def test_sec_2d_has_an_arm_for_each_combination() -> None:
    records = [{"prompt": f"{t}{d}{i}", "topic": t, "level": d} for t in "xy" for d in (1, 2) for i in range(3)]
    sec = rw.SEC(rw.PromptPool.from_records(records), columns=("topic", "level"))
    assert list(sec.values()) == ["x | 1", "x | 2", "y | 1", "y | 2"]


def test_new_categories_join_at_zero_on_resume() -> None:
    old = rw.SEC(pool_of({"a": 3}), seed=0)
    step(old, 3, {"a": [1, 0]})
    grown = rw.SEC(pool_of({"a": 3, "b": 2}), seed=0)
    grown.load_state_dict(old.state_dict())
    assert grown.values() == {"a": 0.5, "b": 0.0}


def test_a_missing_category_names_the_remedy() -> None:
    with pytest.raises(rw.MissingColumnError, match=r"SEC needs the column 'category'.*category="):
        rw.SEC(rw.PromptPool(ids=["a"]))


@pytest.mark.parametrize(
    "options",
    [
        {"learning_rate": 0},
        {"learning_rate": 2},
        {"temperature": 0},
        {"advantage": "raw"},
        {"category": ()},
        {"category": 5},
    ],
)
def test_bad_options_are_named(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(rw.ConfigError, match=name):
        rw.SEC(**options)


# ---- UCB and Thompson ----


def closed(options: dict[str, Any], sizes: dict[str, int], first: int, rewards: dict[str, list[float]]) -> rw.SEC:
    """SEC after one told step, with learning rate 1 unless given."""
    sec = rw.SEC(pool_of(sizes), **{"learning_rate": 1.0, "rails": None, **options})
    step(sec, first, rewards)
    return sec


def test_ucb_by_hand() -> None:
    """Centred, Q = (.5, 0), one group each, scale 2. A batch of 3 makes the total 5: ln 5 = 1.6094.

    a: .5 + 2 * 1.2686 = 3.037, b 2.537: a. With n = 2, a: .5 + 2 * .8971 = 2.294: b. With n = 2, b: 1.794: a.
    Then 3 and 2 are drawn, of which none is told; one more makes 6: a .5 + 2 sqrt(1.7918 / 3) = 2.046, b
    2 sqrt(1.7918 / 2) = 1.893: a. With a scale of .5 the second and third draw are of a too: .949, .866 > .634.
    """
    ucb = {"choice": "ucb", "advantage": "centred", "discount": 1.0}
    sec = closed({**ucb, "ucb_scale": 2.0}, {"a": 9, "b": 9}, 2, {"a": [1, 0], "b": [0, 0]})
    assert Counter(t.prompt_id[0] for t in sec.ask(3)) == {"a": 2, "b": 1}
    assert sec.ask(1)[0].prompt_id[0] == "a"
    narrow = closed({**ucb, "ucb_scale": 0.5}, {"a": 9, "b": 9}, 2, {"a": [1, 0], "b": [0, 0]})
    assert Counter(t.prompt_id[0] for t in narrow.ask(3)) == {"a": 3}


def test_ucb_tries_every_category_first_and_ties_are_drawn() -> None:
    sizes = dict.fromkeys("abcdef", 3)
    firsts = [rw.SEC(pool_of(sizes), choice="ucb", seed=s).ask(6) for s in range(20)]
    assert all(Counter(t.prompt_id[0] for t in tickets) == dict.fromkeys("abcdef", 1) for tickets in firsts)
    alone = Counter(rw.SEC(pool_of(sizes), choice="ucb", seed=s).ask(1)[0].prompt_id[0] for s in range(600))
    assert [alone[name] / 600 for name in "abcdef"] == pytest.approx([1 / 6] * 6, abs=0.05)
    ticket = rw.SEC(pool_of(sizes), choice="ucb").ask(1)[0]
    assert ticket.propensity == pytest.approx(1 / 6 / 3)


def test_ucb_counts_no_prompt_that_is_only_kept_out() -> None:
    """Q = (.5, .5) and n = (1, 1): a tie. Five prompts of a that an `ask` excludes are neither told nor in flight."""
    first: Counter[str] = Counter()
    for seed in range(40):
        options = {"choice": "ucb", "advantage": "centred", "discount": 1.0, "seed": seed}
        sec = closed(options, {"a": 9, "b": 9}, 2, {"a": [1, 0], "b": [1, 0]})
        first[sec.ask(1, exclude=[f"a{i}" for i in range(5)])[0].prompt_id[0]] += 1
    assert min(first["a"], first["b"]) > 10


def test_clusters_of_vectors_of_another_length_begin_anew() -> None:
    def made(length: int) -> rw.SEC:
        vectors = [[float(i % 3)] * length for i in range(9)]
        return rw.SEC(rw.PromptPool(ids=[f"p{i}" for i in range(9)], columns={"embedding": vectors}), clusters=3)

    before, after = made(2), made(4)
    before.tell([rw.Outcome(t.id, [1, 0]) for t in before.ask(9)])
    before.ask(1)
    report = after.load_state_dict(before.state_dict())
    assert (report.matched, set(after.values().values())) == (9, {0.0})
    assert len(after.ask(9)) == 8


def test_counts_are_discounted_so_that_a_category_left_alone_comes_back() -> None:
    """n(a) = n(b) = 1, discount .5: after two more groups of a, .5 + 2 = 2.5 and .5; after two more, 3.25 and .25."""
    options = {"choice": "ucb", "ucb_scale": 0.01, "discount": 0.5}
    sec = closed(options, {"a": 9, "b": 9}, 2, {"a": [1, 0], "b": [0, 0]})
    for counts in ((2.5, 0.5), (3.25, 0.25)):
        assert step(sec, 2, {"a": [1, 0]}) == {"a": 2}
        sec.tell([rw.Outcome(sec.ask(1)[0].id, [], failed=2)])  # closes the step; nothing is learnt of it
        metrics = sec.metrics()
        assert (metrics["count/a"], metrics["count/b"]) == counts
    sec = closed({"choice": "ucb", "discount": 0.5}, {"a": 9, "b": 9}, 2, {"a": [1, 0], "b": [0, 0]})
    seen = sum((step(sec, 1, {"a": [1, 0], "b": [0, 0]}) for _ in range(30)), Counter())
    assert seen["a"] > seen["b"] > 2


def test_a_batch_of_ucb_never_asks_more_of_a_category_than_it_has() -> None:
    sec = closed({"choice": "ucb", "ucb_scale": 0.0}, {"a": 3, "b": 20}, 23, {"a": [1, 0], "b": [0, 0]})
    assert Counter(t.prompt_id[0] for t in sec.ask(10)) == {"a": 3, "b": 7}


def test_thompsons_belief_by_hand() -> None:
    """Never drawn: the prior's .5. Pays .5, 0: n = 2, sum .5, squares .25, scatter .25 - .125; sqrt(.375) / 3 = .2041.

    Of three pays halved by the discount, .5 each: n = 1.5, sum .75, squares .375, no scatter; .5 / 2.5 = .2.
    """
    sd = belief_sd(np.array([0, 2, 1.5]), np.array([0, 0.5, 0.75]), np.array([0, 0.25, 0.375]), prior_sd=0.5)
    assert sd.tolist() == pytest.approx([0.5, 0.375**0.5 / 3, 0.2])


def test_thompson_chooses_as_often_as_its_belief_is_the_greater() -> None:
    """Q = 1 and 0, one group each: both sd 1 / 2 = .5, of the difference .5 sqrt 2; Phi(1 / .7071) = .9214."""
    sec = closed({"choice": "thompson"}, {"a": 4000, "b": 4000}, 2, {"a": [1, 0], "b": [0, 0]})
    while set(sec.values().values()) != {1.0, 0.0} or sec.past[0].min() < 1:  # until the first batch had one of each
        sec = closed(
            {"choice": "thompson", "seed": sec.seed + 1}, {"a": 4000, "b": 4000}, 2, {"a": [1, 0], "b": [0, 0]}
        )
        sec.tell([rw.Outcome(sec.ask(1)[0].id, [], failed=1)])
    tickets = sec.ask(4000)
    assert all(t.propensity is None for t in tickets)
    assert sum(t.prompt_id[0] == "a" for t in tickets) / 4000 == pytest.approx(0.9214, abs=0.015)


@pytest.mark.parametrize("choice", ["ucb", "thompson"])
def test_both_move_on_when_a_category_is_mastered(choice: Any) -> None:
    sec = rw.SEC(pool_of({"e": 50, "h": 50}), choice=choice, seed=0)
    early = sum((step(sec, 8, {"e": [1, 0, 1, 0], "h": [0, 0, 0, 0]}) for _ in range(10)), Counter())
    late = sum((step(sec, 8, {"e": [1, 1, 1, 1], "h": [1, 0, 1, 0]}) for _ in range(20)), Counter())
    assert early["e"] > 2 * early["h"] > 0
    assert late["h"] > 2 * late["e"] > 0


# ---- categories made from embeddings or difficulty ----


def embedded(numbers: list[int]) -> rw.PromptPool:
    """Three blobs, by number modulo 3, ten apart."""
    spread = np.random.default_rng(7).standard_normal((300, 2))
    points = [[10.0 * (i % 3) + spread[i, 0], spread[i, 1]] for i in numbers]
    return rw.PromptPool(ids=[f"p{i}" for i in numbers], columns={"embedding": points})


def parts(sec: rw.SEC) -> set[frozenset[str]]:
    """The categories as sets of ids."""
    return {frozenset(sec.pool.ids[s] for s in np.flatnonzero(sec.arm_of == arm)) for arm in range(len(sec.arms))}


@pytest.mark.parametrize("sampled", [50_000, 20])
def test_clusters_are_the_blobs_whatever_the_order(monkeypatch: pytest.MonkeyPatch, sampled: int) -> None:
    monkeypatch.setattr(grouping, "SAMPLED", sampled)
    blobs = {frozenset(f"p{i}" for i in range(60) if i % 3 == b) for b in range(3)}
    orders = [list(range(60)), list(range(59, -1, -1)), np.random.default_rng(0).permutation(60).tolist()]
    secs = [rw.SEC(embedded(order), clusters=3) for order in orders]
    assert all(parts(sec) == blobs for sec in secs)
    assert all(sec.limits.tolist() == secs[0].limits.tolist() for sec in secs)
    assert sorted(secs[0].values()) == ["cluster 0", "cluster 1", "cluster 2"]


def test_a_grown_pool_keeps_its_clusters_and_new_prompts_join_the_nearest() -> None:
    """Without what was saved, the newcomers at x = 30 would make a cluster of their own, and two blobs one."""
    old = rw.SEC(embedded(list(range(30))), clusters=3, seed=0)
    tickets = old.ask(30)
    old.tell([rw.Outcome(t.id, [1, 0] if int(t.prompt_id[1:]) % 3 == 1 else [0, 0]) for t in tickets])
    was = {id_: old.arms[old.arm_of[old.pool.slot(id_)]] for id_ in old.pool.ids}
    far = [[60.0, 0.1 * i] for i in range(40)]
    grown_pool = rw.PromptPool(
        ids=[f"q{i}" for i in range(40)] + old.pool.ids[::-1],
        columns={"embedding": [*far, *old.pool.columns["embedding"][::-1].tolist()]},
    )
    grown = rw.SEC(grown_pool, clusters=3, seed=5)
    assert any(len(part) == 40 and all(i[0] == "q" for i in part) for part in parts(grown))
    grown.load_state_dict(old.state_dict())
    assert {id_: grown.arms[grown.arm_of[grown.pool.slot(id_)]] for id_ in old.pool.ids} == was
    assert grown.values() == old.values()
    joined = {grown.arms[grown.arm_of[grown.pool.slot(f"q{i}")]] for i in range(40)}
    assert joined == {was["p2"]}  # the blob at x = 20
    assert len(grown.ask(70)) == 70


def test_fewer_distinct_embeddings_than_clusters() -> None:
    pool = rw.PromptPool(ids=list("abcd"), columns={"embedding": [[0.0], [1.0], [0.0], [1.0]]})
    assert parts(rw.SEC(pool, clusters=10)) == {frozenset("ac"), frozenset("bd")}
    assert len(rw.SEC(rw.PromptPool(ids=["a"], columns={"embedding": [[0.0]]}), clusters=10).ask(2)) == 1


def test_quantiles_by_hand() -> None:
    """Thirds of six sorted difficulties begin at the 0th, 2nd and 4th: .1 .2 | .3 .3 | .5 .9.

    Of .1 .1 .1 .1 .2 .3 the second third begins at .1 again and is dropped: .1 .1 .1 .1 | .2 .3.
    """
    pool = rw.PromptPool(ids=list("abcdef"), columns={"difficulty": [0.9, 0.3, 0.1, 0.5, 0.2, 0.3]})
    sec = rw.SEC(pool, quantiles=3)
    assert [sec.arms[a] for a in sec.arm_of] == [f"difficulty {i}" for i in (2, 1, 0, 2, 0, 1)]
    many = rw.PromptPool(ids=list("abcdef"), columns={"difficulty": [0.1, 0.1, 0.3, 0.1, 0.2, 0.1]})
    assert parts(rw.SEC(many, quantiles=3)) == {frozenset("abdf"), frozenset("ce")}


def test_quantiles_keep_their_limits_when_the_pool_grows() -> None:
    old = rw.SEC(rw.PromptPool(ids=list("abcd"), columns={"difficulty": [0.1, 0.2, 0.3, 0.4]}), quantiles=2)
    grown_pool = rw.PromptPool(ids=list("abcdefgh"), columns={"difficulty": [0.1, 0.2, 0.3, 0.4, 0.8, 0.9, 0.95, 1.0]})
    grown = rw.SEC(grown_pool, quantiles=2)
    assert parts(grown) == {frozenset("abcd"), frozenset("efgh")}
    grown.load_state_dict(old.state_dict())
    assert parts(grown) == {frozenset("ab"), frozenset("cdefgh")}


def test_other_categories_than_the_saved_start_afresh() -> None:
    old = rw.SEC(embedded(list(range(30))), clusters=3)
    old.tell([rw.Outcome(t.id, [1, 0]) for t in old.ask(30)])
    now = rw.SEC(embedded(list(range(30))), clusters=2)
    with pytest.raises(rw.StateError, match="clusters"):
        now.load_state_dict(old.state_dict())
    now.load_state_dict(old.state_dict(), strict=False)
    assert now.values() == {"cluster 0": 0.0, "cluster 1": 0.0}
    assert len(now.ask(30)) == 30


@pytest.mark.parametrize(("option", "column"), [("clusters", "embedding"), ("quantiles", "difficulty")])
def test_the_column_that_categories_are_made_from_is_named(option: str, column: str) -> None:
    with pytest.raises(rw.MissingColumnError, match=f"{option} needs the column '{column}'"):
        rw.SEC(pool_of({"a": 2}), **{option: 2})  # type: ignore[arg-type]


# ---- going through a category ----


def seen_in_one_pass(within: Any, seed: int = 0) -> Counter[str]:
    """How often each of 100 prompts was asked for in 100 asks, answered at once."""
    sec = rw.SEC(pool_of({"a": 100}), within=within, seed=seed)
    return Counter(t.prompt_id for _ in range(100) for t in _asked_and_lost(sec, 1))


def test_a_category_is_exhausted_before_it_begins_again() -> None:
    """Uniform draws leave (1 - 1/100)^100 = .366 of the prompts unseen; exhaustion none."""
    unseen = [100 - len(seen_in_one_pass("uniform", seed)) for seed in range(20)]
    assert np.mean(unseen) == pytest.approx(36.6, abs=3)
    assert set(seen_in_one_pass("exhaust").values()) == {1}
    sec = rw.SEC(pool_of({"a": 30, "b": 10}), within="exhaust", temperature=1e9, seed=1)
    seen: Counter[str] = Counter()
    for _ in range(100):
        seen.update(t.prompt_id for t in _asked_and_lost(sec, 6))
        for name in "ab":
            counts = [seen[i] for i in sec.pool.ids if i[0] == name]
            assert max(counts) - min(counts) <= 1  # a batch of 6 may end one round and begin the next
    orders = [[_asked_and_lost(sec, 1)[0].prompt_id for _ in range(40)] for _ in range(2)]
    assert orders[0] != orders[1]


def test_exhaustion_tells_the_chance_of_each_draw() -> None:
    """Of three prompts 1/3, 1/2, 1; in the next round 1/3 again."""
    sec = rw.SEC(pool_of({"a": 3}), within="exhaust")
    assert [_asked_and_lost(sec, 1)[0].propensity for _ in range(4)] == pytest.approx([1 / 3, 1 / 2, 1.0, 1 / 3])


def test_a_prompt_that_the_caller_excludes_keeps_its_turn() -> None:
    sec = rw.SEC(pool_of({"a": 3}), within="exhaust")
    for _ in range(5):  # others are asked for again meanwhile, and the round does not end
        (ticket,) = sec.ask(1, exclude=["a0"])
        assert ticket.prompt_id != "a0"
        sec.tell([rw.Outcome(ticket.id, [1.0])])
    assert sec.ask(1)[0].prompt_id == "a0"


def test_a_prompt_that_never_gets_a_reward_does_not_keep_a_round_from_ending() -> None:
    """Of ten prompts one is set aside after two groups; the other nine are then drawn in rounds as before."""
    sec = rw.SEC(pool_of({"a": 10}), within="exhaust", seed=1)

    def ask_and_tell() -> str:
        (ticket,) = sec.ask(1, n_rollouts=2)
        broken = ticket.prompt_id == "a0"
        sec.tell([rw.Outcome(ticket.id, [] if broken else [1.0, 0.0], failed=2 if broken else 0)])
        return "" if broken else ticket.prompt_id

    while not sec.metrics()["set_aside"]:
        ask_and_tell()
    seen = Counter(filter(None, (ask_and_tell() for _ in range(200))))
    assert len(seen) == 9
    assert max(seen.values()) - min(seen.values()) <= 1


def test_exhaustion_goes_on_after_a_resume_also_with_a_grown_pool() -> None:
    sec = rw.SEC(pool_of({"a": 20, "b": 20}), within="exhaust", seed=3)
    first = [t.prompt_id for _ in range(5) for t in _asked_and_lost(sec, 4)]
    state = json.loads(json.dumps(sec.state_dict()))
    again = rw.SEC(pool_of({"a": 20, "b": 20}), within="exhaust", seed=9)
    again.load_state_dict(state)
    asked = [[[t.prompt_id for t in _asked_and_lost(s, 4)] for _ in range(20)] for s in (sec, again)]
    assert asked[0] == asked[1]
    grown = rw.SEC(pool_of({"a": 25, "b": 20}), within="exhaust", seed=9, temperature=1.0)
    grown.load_state_dict(state)
    of_a = [i for i in first if i[0] == "a"]
    while len(of_a) < 25:
        of_a += [t.prompt_id for t in _asked_and_lost(grown, 4) if t.prompt_id[0] == "a"]
    assert len(set(of_a[:25])) == 25


# ---- METIS's variant ----


def test_metis_is_appendix_a_5_with_table_5() -> None:
    options = rw.SEC.metis().options
    expected = {"quantiles": 10, "learning_rate": 0.5, "temperature": 0.4, "one_category": True, "pool_multiplier": 8}
    assert {name: options[name] for name in expected} == expected
    clusters = rw.SEC.metis(clusters=10, temperature=0.2).options
    assert (clusters["clusters"], clusters["quantiles"], clusters["temperature"]) == (10, None, 0.2)
    assert rw.SEC.metis(category=("topic", "level")).options["quantiles"] is None
    with pytest.raises(rw.ConfigError, match="preset"):
        rw.SEC.with_preset("metsi", {})


def test_metis_pays_in_its_own_advantages() -> None:
    """Equation 1 of METIS has no std(r): p = 1/4 pays 2p(1-p) = 3/8, not 2 sqrt(p(1-p)); Q = 0.5 * 3/8."""
    sec = rw.SEC.metis(pool_of({"a": 4}), category="category")
    (ticket,) = sec.ask(1)
    sec.tell([rw.Outcome(ticket.id, [1, 0, 0, 0])])
    assert sec.values() == {"a": 0.1875}


def test_a_batch_of_metis_holds_one_category_while_it_has_enough() -> None:
    """B = 64, ten tenths of 800: of 8 B candidates from the whole pool a tenth has 51, so most batches held two."""
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(8000)], columns={"difficulty": np.arange(8000.0)})
    sec, rng = rw.SEC.metis(pool, seed=0), np.random.default_rng(0)
    lanes = []
    for _ in range(40):
        tickets = sec.ask(64)
        lanes.append({t.lane for t in tickets})
        sec.tell([rw.Outcome(t.id, rng.integers(0, 2, 4)) for t in tickets])
    assert [len(batch) for batch in lanes] == [1] * 40
    assert len(set.union(*lanes)) > 5
    first, second, *_ = rw.SEC.metis(pool).ask(64)
    assert (first.propensity, second.propensity) == (pytest.approx(0.1 / 800), pytest.approx(1 / 799))


def test_one_category_fills_the_batch_until_it_is_used_up() -> None:
    """At equal values a comes first half the time: then its 2 and 4 of b; else 6 of b."""
    batches = [
        [t.prompt_id[0] for t in rw.SEC(pool_of({"a": 2, "b": 9}), one_category=True, seed=s).ask(6)]
        for s in range(200)
    ]
    assert {"".join(batch) for batch in batches} == {"aabbbb", "bbbbbb"}
    assert sum(batch[0] == "a" for batch in batches) / 200 == pytest.approx(0.5, abs=0.1)
    first, second, *_ = rw.SEC(pool_of({"a": 4}), one_category=True).ask(4)
    assert (first.propensity, second.propensity) == (pytest.approx(1 / 4), pytest.approx(1 / 3))


def test_the_batch_is_chosen_from_that_many_times_as_many() -> None:
    """With 1 k candidates there is no choice: the batch is uniform, though a is worth all and b nothing."""
    sizes, values = {"a": 20, "b": 180}, {"a": [1, 0], "b": [0, 0]}
    shares = {}
    for multiplier in (1, 8, None):
        options = {"temperature": 1e-3, "pool_multiplier": multiplier}
        sec = closed(options, sizes, 200, values)
        tickets = [t for _ in range(40) for t in _asked_and_lost(sec, 4)]
        shares[multiplier] = sum(t.prompt_id[0] == "a" for t in tickets) / 160
        assert all((t.propensity is None) == (multiplier is not None) for t in tickets)
    assert shares[1] == pytest.approx(0.1, abs=0.08)
    assert shares[8] == pytest.approx(0.74, abs=0.15)  # 32 candidates hold 3.2 of a on average: E min(4, .) / 4 = .74
    assert shares[None] == 1.0


def _asked_and_lost(sec: rw.SEC, k: int) -> list[rw.Ticket]:
    tickets = sec.ask(k)
    sec.tell([rw.Outcome(t.id, [], failed=0) for t in tickets])
    return tickets


@pytest.mark.parametrize(
    "options",
    [
        {"choice": "greedy"},
        {"ucb_scale": -1},
        {"prior_sd": 0},
        {"discount": 1.5},
        {"clusters": 0},
        {"quantiles": 2.5},
        {"one_category": 1},
        {"pool_multiplier": 0},
        {"within": "shuffled"},
        {"pool_multiplier": 8, "within": "exhaust"},
        {"clusters": 2, "quantiles": 2},
    ],
)
def test_bad_options_of_the_variants_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(rw.ConfigError, match=next(iter(options))):
        rw.SEC(**options)


def test_continuous_rewards_told_in_any_order_give_the_same_values() -> None:
    """Sums of floats depend on their order; the values must not, to the last bit."""
    rewards = np.random.default_rng(0).random((40, 8))
    states = []
    for order in (range(40), reversed(range(40)), np.random.default_rng(1).permutation(40)):
        sec = rw.SEC(pool_of({"a": 40}), advantage="std")
        tickets = sec.ask(40)
        for i in order:
            sec.tell([rw.Outcome(tickets[i].id, rewards[i])])
        states.append(sec.values()["a"])
    assert len(set(states)) == 1


class TestUCB(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.SEC(pool, choice="ucb", **core)


class TestThompson(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.SEC(pool, choice="thompson", **core)


class TestExhaustion(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.SEC(pool, within="exhaust", **core)


class TestExhaustionOfClusters(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.SEC.metis(pool, clusters=3, within="exhaust", **core)


class TestClusters(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.SEC(pool, clusters=4, **core)


class TestMetis(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.SEC.metis(pool, **core)


class TestMetisWithUCBOverClusters(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.SEC.metis(pool, clusters=3, choice="ucb", pool_multiplier=2, **core)


class TestSEC2D(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.SEC(pool, columns=("category", "difficulty"), **core)


def test_arms_of_type_and_estimated_difficulty() -> None:
    """Two types and two halves by difficulty: three of the four combinations have a prompt."""
    columns = {"type": ["zebra", "arc", "zebra", "arc"], "difficulty": [0.1, 0.2, 0.8, 0.3]}
    pool = rw.PromptPool(ids=list("abcd"), columns=columns)
    sec = rw.SEC(pool, category=["type"], quantiles=2, seed=0)
    assert sec.values() == {"arc | difficulty 0": 0, "arc | difficulty 1": 0, "zebra | difficulty 0": 0} | {
        "zebra | difficulty 1": 0
    }
    assert sec.arm_of.tolist() == [2, 0, 3, 1]
    assert sec.grouped_by == ("type", "difficulty")
    vectors = np.array([[0.0], [1.0], [0.0], [1.0]])
    clustered = rw.SEC(
        rw.PromptPool(ids=list("abcd"), columns={**columns, "embedding": vectors}), category="type", clusters=2
    )
    assert len(clustered.values()) == 2  # all zebras are of one cluster, all others of the other


def test_a_state_of_combined_arms_is_refused_by_others() -> None:
    columns = {"category": ["x", "y"], "difficulty": [0.1, 0.9]}
    pool = rw.PromptPool(ids=["a", "b"], columns=columns)
    alone, combined = rw.SEC(pool, quantiles=2), rw.SEC(pool, category=["category"], quantiles=2)
    with pytest.raises(rw.StateError, match="combined"):
        alone.load_state_dict(combined.state_dict())
    alone.load_state_dict(combined.state_dict(), strict=False)


@pytest.mark.parametrize(
    ("preset", "alpha", "tau"),
    [("countdown-3b", 0.5, 1.0), ("math-3b", 0.2, 1.0), ("math-7b", 0.5, 0.4), ("multi-task", 0.5, 0.2)],
)
def test_table_s1_by_name(preset: str, alpha: float, tau: float) -> None:
    sec = rw.make_curriculum("sec", preset=preset)
    assert (sec.options["learning_rate"], sec.options["temperature"]) == (alpha, tau)


@pytest.mark.parametrize(("preset", "tau"), [("rloo", 0.25), ("ppo", 1.0)])
def test_other_algorithms_pay_with_their_own_advantages(preset: str, tau: float) -> None:
    """Equation 3 with RLOO's advantages of 1, 0, 0, 0: r less the others' mean, 1 and three times -1/3.

    Their mean |A| is (1 + 3/3) / 4 = 1/2, and Q = alpha / 2 = 1/4. Over the std it would be sqrt(3) / 2.
    """
    sec = rw.make_curriculum("sec", preset=preset)
    assert (sec.options["learning_rate"], sec.options["temperature"]) == (0.5, tau)
    assert sec.options["advantage"] == "told"
    sec.bind(rw.PromptPool(ids=["a"], columns={"category": ["x"]}))
    (ticket,) = sec.ask(1)
    sec.tell([rw.Outcome(ticket.id, [1, 0, 0, 0], advantages=[1.0, -1 / 3, -1 / 3, -1 / 3])])
    assert sec.values()["x"] == pytest.approx(0.25)


def test_without_advantages_told_the_pay_is_centred_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """Centred advantages of 1, 0, 0, 0 have the mean |A| 2 * 1/4 * 3/4 = 3/8; Q = 3/16."""
    sec = rw.SEC(rw.PromptPool(ids=["a"], columns={"category": ["x"]}), advantage="told")
    for turn in range(2):
        (ticket,) = sec.ask(1)
        sec.tell([rw.Outcome(ticket.id, [1, 0, 0, 0])])
        assert turn or sec.values()["x"] == pytest.approx(3 / 16)
    assert caplog.text.count("1 of 1 groups were told without") == 1


def test_token_means_of_advantages() -> None:
    """Algorithm 1, line 13: rollouts of mean |A| (1 + 3) / 2 = 2 and 4 give (2 + 4) / 2 = 3; Q = 0.5 * 3."""
    sec = rw.SEC(rw.PromptPool(ids=["a"], columns={"category": ["x"]}), advantage="told")
    (ticket,) = sec.ask(1)
    sec.tell([rw.Outcome(ticket.id, [1, 0], advantages=[[1.0, -3.0], np.array([4.0])])])
    assert sec.values() == {"x": 1.5}
    (ticket,) = sec.ask(1)
    for wrong in ([[1.0], []], [[1.0], [float("nan")]], [[1.0]], [[1.0], ["x"]], [[1e300], [1.0]]):
        with pytest.raises(rw.RewardError, match="advantages of ticket"):
            sec.tell([rw.Outcome(ticket.id, [1, 0], advantages=wrong)])


def test_a_reward_and_a_choice_of_ones_own(tmp_path: Path) -> None:
    """Paid in the solved share, 0.25 and 0.75; weights of value squared: (1/8)^2 to (3/8)^2, that is 1 to 9."""
    own = tmp_path / "own.py"
    own.write_text(
        "def solved(evidence):\n    return evidence.solved\n\ndef squared(values, counts):\n    return values**2\n"
    )
    pool = rw.PromptPool(ids=["a", "b"], columns={"category": ["x", "y"]})
    by_name = {"advantage": f"{own}:solved", "choice": f"{own}:squared"}
    by_object = {"advantage": lambda evidence: evidence.solved, "choice": lambda values, counts: values**2}
    for options in (by_name, by_object):
        sec = rw.SEC(pool, seed=0, **options)
        rewards = {"a": [1, 0, 0, 0], "b": [1, 1, 1, 0]}
        sec.tell([rw.Outcome(t.id, rewards[t.prompt_id]) for t in sec.ask(2)])
        assert sec.values() == {"x": 0.125, "y": 0.375}
        (ticket,) = sec.ask(1)
        assert ticket.propensity == pytest.approx({"a": 0.1, "b": 0.9}[ticket.prompt_id])
        with pytest.raises(rw.StateError, match="choice"):
            rw.SEC(pool).load_state_dict(sec.state_dict())
    bad = rw.SEC(pool, choice=lambda values, counts: -1.0 - values)
    with pytest.raises(rw.ConfigError, match="must give 2 finite numbers >= 0"):
        bad.ask(1)
    for rule in (
        {"advantage": lambda evidence: [1e300] * len(evidence)},
        {"choice": lambda values, counts: [1e308] * 2},
    ):
        with pytest.raises(rw.ConfigError, match="finite numbers.*, of at most 1e12, got"):  # shares were NaN, for ever
            step(rw.SEC(pool, **rule), 2, {"a": [1, 0], "b": [1, 0]})
    with pytest.raises(rw.ConfigError, match="choice must be a function, file.py:name, or one of boltzmann"):
        rw.SEC(choice="greedy")


def test_one_category_is_said(caplog: pytest.LogCaptureFixture) -> None:
    """There is nothing to choose, and the batch is uniform under the method's name."""
    records = [{"prompt": f"p{i}", "category": "a", "level": i % 2} for i in range(6)]
    rw.SEC(rw.PromptPool.from_records(records), seed=0, category="level")
    assert not caplog.records
    rw.SEC(rw.PromptPool.from_records(records), seed=0)
    assert "all 6 prompts are in one, 'a': it draws them at random" in caplog.text
