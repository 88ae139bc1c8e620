"""SEC against numbers worked out by hand from Algorithm 1."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollwise as rw
from rollwise.curricula.sec import absolute_advantage, boltzmann


def pool_of(sizes: dict[str, int]) -> rw.PromptPool:
    names = [name for name, n in sizes.items() for _ in range(n)]
    ids = [f"{name}{i}" for name, n in sizes.items() for i in range(n)]
    return rw.PromptPool(ids=ids, columns={"category": names})


def step(sec: rw.SEC, k: int, rewards: dict[str, list[float]]) -> Counter[str]:
    tickets = sec.ask(k)
    sec.tell([rw.Outcome(t.id, rewards[t.prompt_id[0]]) for t in tickets])
    return Counter(t.prompt_id[0] for t in tickets)


def test_td_0_by_hand() -> None:
    """[1,0,0,0]: |A| = (.75 + 3 * .25) / 4 = .375; Q = .1875; then [1,1,0,0]: .5 * .5 + .5 * .1875 = .34375."""
    sec = rw.SEC(pool_of({"a": 2}))
    step(sec, 2, {"a": [1, 0, 0, 0]})
    assert sec.values() == {"a": pytest.approx(0.1875)}
    step(sec, 1, {"a": [1, 1, 0, 0]})
    assert sec.values() == {"a": pytest.approx(0.34375)}


def test_a_categorys_reward_is_the_mean_over_its_groups() -> None:
    """Groups with |A| = .5 and 0 in one category: r = .25, Q = .125."""
    sec = rw.SEC(pool_of({"a": 2}))
    first, second = sec.ask(2)
    sec.tell([rw.Outcome(first.id, [1, 0]), rw.Outcome(second.id, [1, 1])])
    assert sec.values()["a"] == pytest.approx(0.125)


def test_told_centred_and_normalised_advantages() -> None:
    """[1,0,0,0]: centred .375; over std sqrt(3)/4: .866; the trainer's own [2,-1,-1,0]: 1."""
    for advantage, expected in (("told", 1.0), ("centred", 0.375), ("std", 0.375 / (3**0.5 / 4))):
        sec = rw.SEC(pool_of({"a": 1}), advantage=advantage, learning_rate=1.0)  # type: ignore[arg-type]
        sec.tell([rw.Outcome(sec.ask(1)[0].id, [1, 0, 0, 0], advantages=[2.0, -1.0, -1.0, 0.0])])
        assert sec.values()["a"] == pytest.approx(expected)


@given(st.lists(st.integers(0, 1), min_size=1, max_size=16))
def test_equation_4_normalised_absolute_advantage_is_twice_the_standard_deviation(rewards: list[int]) -> None:
    """E|A| = 2 p (1 - p) / sqrt(p (1 - p)) = 2 sqrt(p (1 - p)); without the division 2 p (1 - p)."""
    scores, p = np.array(rewards, dtype=float), float(np.mean(rewards))
    assert absolute_advantage(scores, normalised=True) == pytest.approx(2 * (p * (1 - p)) ** 0.5)
    assert absolute_advantage(scores, normalised=False) == pytest.approx(2 * p * (1 - p))


def test_boltzmann_by_hand_and_without_overflow() -> None:
    """Q = (0, .2), tau = .2: weights 1 and e."""
    assert boltzmann(np.array([0.0, 0.2]), 0.2).tolist() == pytest.approx([1 / (1 + np.e), np.e / (1 + np.e)])
    assert boltzmann(np.array([0.0, 1e6]), 1e-3).tolist() == [0.0, 1.0]


def test_categories_are_drawn_by_value_and_prompts_uniformly_within() -> None:
    """After one step a has Q = .25 and b 0; tau = .25: shares e/(e+1) and 1/(e+1), whatever the categories' sizes."""
    sec = rw.SEC(pool_of({"a": 3, "b": 300}), temperature=0.25, seed=2)
    tickets = sec.ask(303)
    sec.tell([rw.Outcome(t.id, [1, 0] if t.prompt_id[0] == "a" else [0, 0]) for t in tickets])
    picked: Counter[str] = Counter()
    for _ in range(3000):
        (ticket,) = sec.ask(1)
        picked[ticket.prompt_id] += 1
        assert ticket.lane == f"category:{ticket.prompt_id[0]}"
        share = np.e / (1 + np.e) / 3 if ticket.prompt_id[0] == "a" else 1 / (1 + np.e) / 300
        assert ticket.propensity == pytest.approx(share)
        sec.tell([rw.Outcome(ticket.id, [], failed=2)])
    a = [picked[f"a{i}"] / 3000 for i in range(3)]
    assert a == pytest.approx([np.e / (1 + np.e) / 3] * 3, abs=0.03)


def test_a_category_that_was_not_sampled_keeps_its_value() -> None:
    sec = rw.SEC(pool_of({"a": 5, "b": 5}), temperature=1e-3, learning_rate=1.0)
    tickets = sec.ask(10)
    sec.tell([rw.Outcome(t.id, [1, 0] if t.prompt_id[0] == "a" else [1, 0, 0, 0]) for t in tickets])
    assert sec.values() == pytest.approx({"a": 0.5, "b": 0.375})
    assert step(sec, 4, {"a": [1, 1], "b": [1, 1]}) == {"a": 4}
    assert sec.values() == pytest.approx({"a": 0.0, "b": 0.375})


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
    assert grown.values() == {"a": 0.25, "b": 0.0}


def test_a_missing_category_names_the_remedy() -> None:
    with pytest.raises(rw.MissingColumnError, match=r"SEC needs the column 'category'.*columns="):
        rw.SEC(rw.PromptPool(ids=["a"]))


@pytest.mark.parametrize(
    "options",
    [{"learning_rate": 0}, {"learning_rate": 2}, {"temperature": 0}, {"advantage": "raw"}, {"columns": ()}],
)
def test_bad_options_are_named(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(rw.ConfigError, match=name):
        rw.SEC(**options)
