"""Uniform and Ordered: rounds without replacement."""

import copy
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollwise as rw


@given(n=st.integers(1, 30), sizes=st.lists(st.integers(1, 30), min_size=1, max_size=20), resume_at=st.integers(0, 19))
def test_uniform_visits_every_prompt_once_an_epoch_across_resume(n: int, sizes: list[int], resume_at: int) -> None:
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(n)])
    curriculum: rw.Curriculum = rw.Uniform(pool, seed=1)
    order: list[str] = []
    for turn, size in enumerate(sizes):
        if turn == resume_at:
            saved, curriculum = curriculum.state_dict(), rw.Uniform(pool, seed=9)
            curriculum.load_state_dict(saved)
        tickets = curriculum.ask(size)
        order += [t.prompt_id for t in tickets]
        curriculum.tell([rw.Outcome(t.id, [1, 0]) for t in tickets])
    for start in range(0, len(order), n):
        epoch = order[start : start + n]
        assert len(set(epoch)) == len(epoch)
    assert max(Counter(order).values()) - min(Counter(order)[i] for i in pool.ids) <= 1


def test_uniform_epochs_come_in_different_orders() -> None:
    curriculum = rw.Uniform(rw.PromptPool(ids=[f"p{i}" for i in range(50)]), seed=0)
    epochs = []
    for _ in range(2):
        tickets = curriculum.ask(50)
        epochs.append([t.prompt_id for t in tickets])
        curriculum.tell([rw.Outcome(t.id, [1]) for t in tickets])
    assert sorted(epochs[0]) == sorted(epochs[1])
    assert epochs[0] != epochs[1]
    assert curriculum.metrics()["epoch"] == 2


def test_who_is_in_flight_at_its_turn_is_served_later_in_the_same_epoch() -> None:
    curriculum = rw.Uniform(rw.PromptPool(ids=["a", "b", "c"]), seed=0)
    (slow,) = curriculum.ask(1)
    rest = curriculum.ask(2)
    curriculum.tell([rw.Outcome(t.id, [1]) for t in rest])
    again = [t.prompt_id for t in curriculum.ask(2)]
    assert slow.prompt_id not in again
    curriculum.tell([rw.Outcome(slow.id, [1])])
    assert [t.prompt_id for t in curriculum.ask(1)] == [slow.prompt_id]


def test_prompts_that_join_later_join_the_round_under_way() -> None:
    old = rw.Uniform(rw.PromptPool(ids=["a", "b"]), seed=0)
    for _ in range(5):
        old.tell([rw.Outcome(t.id, [1]) for t in old.ask(2)])
    grown = rw.Uniform(rw.PromptPool(ids=["a", "b", "new"]), seed=0)
    grown.load_state_dict(old.state_dict())
    assert sorted(t.prompt_id for t in grown.ask(3)) == ["a", "b", "new"]
    assert grown.metrics()["epoch"] == 6


@pytest.mark.parametrize(("direction", "first"), [("easy-to-hard", ["e", "m", "h"]), ("hard-to-easy", ["h", "m", "e"])])
def test_ordered_goes_through_the_pool_by_difficulty_again_and_again(direction: str, first: list[str]) -> None:
    pool = rw.PromptPool(ids=["m", "h", "e"], columns={"difficulty": [0.5, 0.9, 0.1]})
    curriculum = rw.Ordered(pool, direction=direction)  # type: ignore[arg-type]
    seen = []
    for _ in range(6):
        (ticket,) = curriculum.ask(1)
        seen.append(ticket.prompt_id)
        curriculum.tell([rw.Outcome(ticket.id, [1])])
    assert seen == first * 2


def test_ordered_breaks_ties_by_seed_not_by_row() -> None:
    def order(seed: int) -> list[str]:
        pool = rw.PromptPool(ids=[f"p{i}" for i in range(30)], columns={"difficulty": [1.0] * 30})
        return [t.prompt_id for t in rw.Ordered(pool, seed=seed).ask(30)]

    assert order(0) == order(0) != order(1)
    assert order(0) != [f"p{i}" for i in range(30)]


def test_ordered_refuses_what_it_can_not_sort() -> None:
    with pytest.raises(rw.ConfigError, match="direction"):
        rw.Ordered(direction="sideways")  # type: ignore[arg-type]
    with pytest.raises(rw.PoolError, match="finite number"):
        rw.Ordered(rw.PromptPool(ids=["a"], columns={"level": ["x"]}), column="level")
    with pytest.raises(rw.PoolError, match="finite number"):
        rw.Ordered(rw.PromptPool(ids=["a"], columns={"level": [float("nan")]}), column="level")


RATES = [[0.2, 0.5], [0.2, 0.9], [0.7, 0.8], [0.0, 1.0], [0.7, 0.75]]
"""Of a weak and a strong reference. Easiest first: .7 (.8 before .75), .2 (.9 before .5), .0."""


@pytest.mark.parametrize(("direction", "order"), [("easy-to-hard", [2, 4, 1, 0, 3]), ("hard-to-easy", [3, 0, 1, 4, 2])])
def test_the_weak_references_pass_rates_decide_then_the_strong_ones(direction: str, order: list[int]) -> None:
    """BOTS, appendix B.6: sorted by the success rates of one model, with those of another for ties."""
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(5)], columns={"reference_pass_rates": RATES})
    curriculum = rw.Ordered(pool, column="reference_pass_rates", direction=direction)  # type: ignore[arg-type]
    for _ in range(2):
        tickets = [curriculum.ask(1)[0] for _ in range(5)]
        assert [t.prompt_id for t in tickets] == [f"p{i}" for i in order]
        curriculum.tell([rw.Outcome(t.id, [1]) for t in tickets])


def test_pass_rates_of_more_references_sort_as_python_sorts_tuples() -> None:
    rates = [[(i * 7 % 3) / 2, (i * 5 % 4) / 3, i / 40] for i in range(40)]
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(40)], columns={"rates": rates})
    by_hand = sorted(range(40), key=lambda i: tuple(-r for r in rates[i]))
    assert [t.prompt_id for t in rw.Ordered(pool, column="rates").ask(40)] == [f"p{i}" for i in by_hand]


def test_ordered_keeps_the_order_of_equal_ones_over_a_resume_with_another_seed() -> None:
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(40)], columns={"difficulty": [i % 2 for i in range(40)]})
    straight = rw.Ordered(pool, seed=1)
    for _ in range(7):
        straight.tell([rw.Outcome(t.id, [1]) for t in straight.ask(9)])
        resumed = rw.Ordered(pool, seed=2)
        resumed.load_state_dict(straight.state_dict())
        assert [t.prompt_id for t in resumed.ask(40)] == [t.prompt_id for t in copy.deepcopy(straight).ask(40)]
