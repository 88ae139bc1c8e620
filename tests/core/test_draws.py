"""The trees against obvious oracles, and the laws of the draws."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.draws import GroupedMaxTree, MaxTree, SumTree, pack, rank_of_fewest, rank_of_scores, ties, ties_below

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


# ---- one slot at a time, and groups ----


@given(n=st.integers(1, 40), steps=steps, seed=st.integers(0, 99))
def test_one_slot_at_a_time_is_all_at_once(n: int, steps: list, seed: int) -> None:
    """The short cut for one slot leaves every node as the general way does, and takes the same slot off the top."""
    rng = np.random.default_rng(seed)
    one, many = MaxTree(n), MaxTree(n)
    sums_one, sums_many = SumTree(n), SumTree(n)
    keys = rng.permutation(10_000).astype(np.uint64)  # distinct, so that the top is unique
    for turn, (_, _, amount) in enumerate(steps):
        slots = rng.choice(n, size=min(n, amount), replace=False)
        values = keys[turn * 40 : turn * 40 + len(slots)]
        for slot, value in zip(slots, values, strict=True):
            one.set(np.array([slot]), value)
            sums_one.set(np.array([slot]), np.array([float(value)]))
        twice = np.concatenate([slots, slots])  # never a single one
        many.set(twice, np.concatenate([values, values]))
        sums_many.set(twice, np.concatenate([values, values]).astype(float))
        assert np.array_equal(one._nodes, many._nodes)
        assert np.array_equal(sums_one._nodes, sums_many._nodes)
        assert one.top(1).tolist() == many.top(2)[:1].tolist()
        if sums_one.total:
            points = np.append(rng.random(5), [0.0, np.nextafter(1.0, 0.0)]) * sums_one.total
            alone = [sums_one._descend(point).item() for point in points[:, None]]
            assert alone == sums_many._descend(points).tolist()
        gone = one.pop(1)
        many.set(np.concatenate([gone, gone]), 0)
        assert np.array_equal(one._nodes, many._nodes)
        sums_one.fill(np.zeros(n))
        sums_many.fill(np.zeros(n))


def test_of_equal_keys_the_single_top_is_in_slot_order() -> None:
    tree = MaxTree(5)
    tree.fill(np.array([3, 7, 7, 7, 1], dtype=np.uint64))
    assert [tree.pop(1).tolist() for _ in range(6)] == [[1], [2], [3], [0], [4], []]


def test_nothing_set_and_nothing_taken() -> None:
    for tree in (MaxTree(3), SumTree(3)):
        tree.set(np.empty(0, dtype=np.int64), 5)
        assert not tree.get(np.arange(3)).any()
    assert MaxTree(3).top(0).tolist() == MaxTree(1).top(1).tolist() == MaxTree(3).top(2).tolist() == []


@given(
    groups=st.lists(st.integers(0, 6), min_size=1, max_size=40),
    k=st.integers(0, 12),
    amounts=st.lists(st.integers(1, 40), max_size=6),
    seed=st.integers(0, 99),
)
def test_grouped_max_tree_agrees_with_sorting(groups: list[int], k: int, amounts: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    group_of = np.unique(groups, return_inverse=True)[1]
    tree, oracle = GroupedMaxTree(group_of), np.zeros(len(groups), dtype=np.uint64)
    for turn, amount in enumerate(amounts):
        slots = rng.choice(len(groups), size=min(amount, len(groups)), replace=False)
        keys = (
            rng.permutation(np.arange(1000))[: len(slots)].astype(np.uint64) * 10 + turn
        )  # all distinct, some never 0
        keys[rng.random(len(slots)) < 0.3] = 0
        tree.set(slots, keys)
        oracle[slots] = keys
        best = [s for s in np.argsort(-oracle.astype(np.int64), kind="stable").tolist() if oracle[s]]
        assert oracle[tree.top(k)].tolist() == oracle[best[:k]].tolist()
        for group in range(int(group_of.max()) + 1):
            expected = [s for s in best if group_of[s] == group][:k]
            assert tree.top(k, group=group).tolist() == expected


@given(st.integers(0, 2**64), st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**40)), min_size=2))
def test_a_tie_of_one_prompt_is_that_of_many(seed: int, prompts: list[tuple[int, int]]) -> None:
    hashes = np.array([hashed for hashed, _ in prompts], dtype=np.uint32)
    visits = np.array([visit for _, visit in prompts], dtype=np.int64)
    alone = [ties(seed, hashes[i : i + 1], visits[i : i + 1]).item() for i in range(len(prompts))]
    assert alone == ties(seed, hashes, visits).tolist()


@given(st.integers(1, 300), st.integers(0, 2**32))
def test_a_tree_after_many_small_changes_is_one_filled_at_once(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, small = np.zeros(n, dtype=np.uint64), MaxTree(n)
    sums, weights = SumTree(n), np.zeros(n)
    for _ in range(20):
        slots = rng.permutation(n)[: rng.integers(1, 10)]
        values[slots] = rng.integers(0, 5, len(slots))
        weights[slots] = rng.integers(0, 5, len(slots))
        small.set(slots, values[slots])
        sums.set(slots, weights[slots])
    whole, summed = MaxTree(n), SumTree(n)
    whole.fill(values)
    summed.fill(weights)
    assert np.array_equal(small._nodes, whole._nodes)
    assert np.array_equal(sums._nodes, summed._nodes)
    for k in (1, 2, 7, n):
        best = np.lexsort((np.arange(n), ~values))[:k]
        assert values[small.top(k)].tolist() == [v for v in values[best].tolist() if v]


def test_a_copied_tree_is_apart() -> None:
    tree = MaxTree(8)
    tree.fill(np.arange(8, dtype=np.uint64))
    twin = copy.deepcopy(tree)
    twin.set(np.array([1, 2, 7]), 0)
    assert (tree.top(1).tolist(), twin.top(1).tolist()) == ([7], [6])
    assert pickle.loads(pickle.dumps(twin)).top(2).tolist() == [6, 5]


@given(st.integers(0, 2**64), st.integers(0, 2**31), st.integers(0, 2**32 - 1), st.sampled_from([1, 7, 40_000]))
def test_ties_below_a_bound_are_found_without_the_ties(seed: int, visit: int, bound: int, n: int) -> None:
    hashes = np.random.default_rng(seed).integers(0, 2**32, n, dtype=np.uint32)
    exact = ties(seed, hashes, np.full(n, visit, dtype=np.int64)).astype(np.int64)
    found = ties_below(seed, hashes, visit, bound)
    assert found[exact <= bound].all()
    assert not found[exact > bound + 1].any()
