"""The trees against obvious oracles, and the laws of the draws."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.draws import MaxTree, SumTree, pack, rank_of_fewest, rank_of_scores, ties

steps = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.integers(0, 2**32), st.integers(1, 40)),
        st.tuples(st.just("pop"), st.just(0), st.integers(0, 12)),
    ),
    max_size=20,
)


@given(n=st.integers(1, 40), steps=steps, seed=st.integers(0, 99))
def test_max_tree_agrees_with_sorting(n: int, steps: list, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree, oracle = MaxTree(n), np.zeros(n, dtype=np.uint64)
    for action, high, amount in steps:
        if action == "set":
            slots = rng.choice(n, size=min(n, amount), replace=False)
            keys = rng.integers(0, high, size=len(slots), endpoint=True).astype(np.uint64)
            tree.set(slots, keys)
            oracle[slots] = keys
        else:
            order = np.lexsort((np.arange(n), -oracle.astype(object)))
            expected = [s for s in order if oracle[s] > 0][:amount]
            popped = tree.pop(amount)
            assert oracle[popped].tolist() == oracle[expected].tolist()  # equal keys may go either way at the edge
            assert len(set(popped.tolist())) == len(popped)
            oracle[popped] = 0


@given(weights=st.lists(st.sampled_from([0.0, 1e-9, 0.3, 1.0, 2.0**40]), min_size=1, max_size=40), k=st.integers(0, 50))
def test_sum_tree_draws_every_positive_weight_and_no_other(weights: list[float], k: int) -> None:
    tree = SumTree(len(weights))
    tree.fill(np.array(weights))
    slots, propensity = tree.draw(np.random.default_rng(0), k)
    positive = {i for i, w in enumerate(weights) if w > 0}
    assert len(slots) == len(set(slots.tolist())) == min(k, len(positive))
    assert set(slots.tolist()) <= positive
    assert ((propensity > 0) & (propensity <= 1)).all()
    left = [w for i, w in enumerate(weights) if i not in set(slots.tolist())]
    assert tree.total == pytest.approx(sum(left), rel=1e-9)


def test_proportional_draws_follow_successive_sampling() -> None:
    """Weights 3, 2, 1: P(first = a) = 3/6; P(a then b) = 3/6 * 2/3; and the propensities say so."""
    counts: dict[tuple[int, int], int] = {}
    rng, trials = np.random.default_rng(1), 6000
    tree = SumTree(3)
    for _ in range(trials):
        tree.fill(np.array([3.0, 2.0, 1.0]))
        slots, propensity = tree.draw(rng, 2)
        counts[tuple(slots.tolist())] = counts.get(tuple(slots.tolist()), 0) + 1
        weights = np.array([3.0, 2.0, 1.0])[slots]
        assert propensity.tolist() == pytest.approx([weights[0] / 6, weights[1] / (6 - weights[0])])
    expected = {(0, 1): 1 / 3, (0, 2): 1 / 6, (1, 0): 1 / 4, (1, 2): 1 / 12, (2, 0): 1 / 10, (2, 1): 1 / 15}
    for pair, p in expected.items():
        assert counts[pair] / trials == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) / trials))


@given(st.lists(st.floats(0, 1e6, width=32), min_size=2, max_size=20))
def test_ranks_keep_the_order_of_scores(scores: list[float]) -> None:
    array = np.array(scores)
    assert np.argsort(rank_of_scores(array), kind="stable").tolist() == np.argsort(array, kind="stable").tolist()


def test_keys_rank_first_and_break_ties_second() -> None:
    keys = pack(rank_of_scores(np.array([0.2, 0.25, 0.2])), np.array([5, 0, 9], dtype=np.uint32))
    assert np.argsort(keys).tolist() == [0, 2, 1]
    assert pack(np.zeros(1, np.uint32), np.zeros(1, np.uint32)).tolist() == [1]  # 0 would mean absent
    assert np.argsort(rank_of_fewest(np.array([3, 0, 2**40, 1]))).tolist() == [2, 0, 3, 1]


def test_ties_look_uniform_and_change_with_seed_and_visit() -> None:
    hashes = np.arange(4000, dtype=np.uint32)
    a, b = ties(0, hashes, np.zeros(4000, np.int64)), ties(0, hashes, np.ones(4000, np.int64))
    c = ties(1, hashes, np.zeros(4000, np.int64))
    for x in (a, b, c):
        assert abs(x.mean() / 2**32 - 0.5) < 0.02
    for x, y in ((a, b), (a, c)):
        assert abs(np.corrcoef(x, y)[0, 1]) < 0.06
