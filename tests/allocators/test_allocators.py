"""How many rollouts each prompt gets: numbers by hand, the greatest sum by brute force, and the budget to the last."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollwise as rw
from rollwise.allocators import ALLOCATORS, Rates, Seen, make_allocator
from rollwise.allocators.greedy import in_proportion, most_valuable
from rollwise.allocators.knapsack import beta_moment, usable
from rollwise.curricula.seam.allotment import rates_of

ALL: list[tuple[str, dict[str, Any]]] = [
    ("knapsack", {}),
    ("knapsack", {"estimate": "posterior"}),
    ("hit-utility", {}),
    ("hit-utility", {"belief": "last"}),
    ("variance-informed", {}),
    ("variance-informed", {"rule": "vip-rloo"}),
    ("variance-informed", {"rule": "gvm"}),
]


def rates(last: list[float], count: int = 8) -> Rates:
    """Of prompts whose last group of `count` had these shares solved."""
    array = np.array(last)
    solved = np.nan_to_num(array) * count
    return Rates(1.0 + solved, 1.0 + np.where(np.isnan(array), 0, count) - solved, array)


def divisions(k: int, low: int, high: int, total: int) -> Iterator[tuple[int, ...]]:
    return (sizes for sizes in product(range(low, high + 1), repeat=k) if sum(sizes) == total)


def test_the_increment_of_knapsack_is_that_of_its_value_by_hand() -> None:
    """p = 1/2: value (1 - 2 / 2^N) / 8, so from N = 2 to 3 it rises from 1/16 to 3/32: by 1/32."""
    knapsack = rw.Knapsack()
    assert knapsack.values(rates([0.5]), np.array([2, 3])).tolist() == [[1 / 32, 1 / 64]]
    assert usable(np.array([0.5, 0.25]), 0.9).tolist() == [3, 8]  # ln 0.1 / ln 0.75 = 8.004


def test_knapsack_divides_as_the_paper_says() -> None:
    """Never visited: the mean. p = 1: the least. Half: 3 beside the least, all that it can use. The rest: to p = 0."""
    assert rw.Knapsack().allocate(rates([np.nan, 1.0, 0.5, 0.0]), 8).tolist() == [8, 2, 5, 17]
    assert rw.Knapsack().allocate(rates([np.nan, 1.0, 0.5]), 8).tolist() == [13, 6, 5]  # nobody at 0: to the others
    assert rw.Knapsack().allocate(rates([np.nan, 1.0, 1.0]), 8).tolist() == [8, 8, 8]
    assert rw.Knapsack(max_rollouts=9).allocate(rates([np.nan, 1.0, 0.5, 0.0]), 8).tolist() == [9, 5, 9, 9]


def test_no_prompt_with_contrast_is_held_back() -> None:
    """37.5 % and 93.75 %: together they can use 2 (4 + 35) > 24, so the division is the best of all, [13, 13, 3, 3]."""
    last = [0.375, 0.375, 0.9375, 0.9375]
    assert rw.Knapsack().allocate(rates(last, 16), 8).tolist() == [13, 13, 3, 3]


def test_the_expectation_of_the_increment_by_hand() -> None:
    """Uniform belief: E[p^3 (1-p)^3] + E[p^2 (1-p)^4] = 3! 3! / 7! + 2! 4! / 7!."""
    value = rw.Knapsack(estimate="posterior").values(Rates(np.ones(1), np.ones(1), np.array([np.nan])), np.array([2]))
    assert value[0, 0] == pytest.approx(36 / 5040 + 48 / 5040)
    assert beta_moment(np.array([2.0]), np.array([3.0]), 1, 2)[0] == pytest.approx(2 * 3 * 4 / (5 * 6 * 7))


def test_hit_utility_by_hand() -> None:
    """Uniform belief: E[p (1-p)^l] = 1 / ((l+1) (l+2))."""
    values = rw.HitUtility().values(Rates(np.ones(1), np.ones(1), np.ones(1)), np.array([2, 3]))
    assert values[0] == pytest.approx([1 / 12, 1 / 20])


def test_variance_informed_by_hand() -> None:
    """p = 1/2: 4 p (1-p) = 1, and (n-1) / n^2 falls from 2/9 to 3/16. GVM: 1 / sqrt(p + a / p)."""
    half = Rates(np.array([5.0]), np.array([5.0]), np.array([0.5]))
    assert rw.VarianceInformed().values(half, np.array([3]))[0] == pytest.approx([2 / 9 - 3 / 16])
    with pytest.raises(rw.ConfigError, match="min_rollouts must be at least 3 with rule='vip'.*got 2"):
        rw.VarianceInformed(min_rollouts=2)
    two = Rates(np.array([1.0, 4.0]), np.array([9.0, 6.0]), np.full(2, np.nan))  # p = .1 and .4
    gvm = rw.VarianceInformed(rule="gvm", smoothing=0.01, min_rollouts=1)
    shares = np.array([0.1 + 0.1, 0.4 + 0.025]) ** -0.5
    assert gvm.allocate(two, 8).tolist() == np.round(16 * shares / shares.sum()).tolist() == [9, 7]
    assert (gvm.weight, rw.VarianceInformed().weight) == ("prompt", "prompt")
    rloo = rw.VarianceInformed(rule="vip-rloo", min_rollouts=2)
    assert rloo.values(half, np.array([2, 3]))[0] == pytest.approx([1 / 1 - 1 / 2, 1 / 2 - 1 / 3])
    with pytest.raises(rw.ConfigError, match="at least 2 with rule='vip-rloo', got 1"):
        rw.VarianceInformed(rule="vip-rloo", min_rollouts=1)


def test_the_weight_is_an_option_whose_default_is_the_papers() -> None:
    assert [rw.Knapsack().weight, rw.Knapsack(weight="prompt").weight] == ["rollout", "prompt"]
    assert rw.VarianceInformed(weight="rollout").weight == "rollout"
    assert "weight" not in rw.Knapsack().saved_options()  # as states of before
    one, other = (rw.Uniform(pool(), seed=0, allocator=rw.Knapsack(weight=w)) for w in (None, "prompt"))
    with pytest.raises(rw.StateError, match="weight"):
        other.load_state_dict(one.state_dict())


@pytest.mark.parametrize("rule", ["vip", "vip-rloo"])
def test_variance_informed_lowers_the_variance_that_its_weight_gives(rule: str) -> None:
    """The sum of (sum of A h over n)^2 of prompts that weigh the same, drawn 4,000 times, h = +-1 with equal chance."""
    p, rng = np.array([0.5] * 4 + [0.05] * 6 + [0.95] * 6), np.random.default_rng(0)
    allocator = rw.VarianceInformed(rule=rule)  # type: ignore[arg-type]
    assert allocator.weight == "prompt"

    def variance(sizes: np.ndarray) -> float:
        total = 0.0
        for chance, n in zip(p, sizes.tolist(), strict=True):
            rewards = (rng.random((4000, n)) < chance).astype(float)
            advantages = rewards - rewards.mean(axis=1, keepdims=True)
            advantages *= n / (n - 1) if rule == "vip-rloo" else 1.0
            total += float((advantages * rng.choice([-1.0, 1.0], size=(4000, n))).mean(axis=1).var())
        return total

    sizes = allocator.allocate(Rates(100 * p, 100 * (1 - p), p), 8)
    assert variance(sizes) < 0.95 * variance(np.full(16, 8))


@given(
    st.lists(st.floats(0.02, 0.98), min_size=2, max_size=4),
    st.sampled_from([case for case in ALL if case[1].get("rule") != "gvm"]),
    st.integers(3, 5),
)
def test_the_division_is_the_best_of_all(shares: list[float], case: tuple[str, dict[str, Any]], mean: int) -> None:
    allocator = make_allocator(case[0], **case[1], min_rollouts=3, max_rollouts=7)
    believed = rates(shares)
    if case == ("knapsack", {}) and np.minimum(usable(np.array(shares), 0.9), 7).sum() < (mean - 3) * len(shares):
        return  # they can't use the budget; see above
    total = mean * len(shares)
    steps = allocator.values(believed, np.arange(3, 7))
    assert (np.diff(steps, axis=1) <= 1e-12).all()
    worth = np.concatenate([np.zeros((len(shares), 1)), np.cumsum(steps, axis=1)], axis=1)
    sizes = allocator.allocate(believed, mean)
    best = max(sum(worth[i, n - 3] for i, n in enumerate(d)) for d in divisions(len(shares), 3, 7, total))
    assert sum(worth[i, n - 3] for i, n in enumerate(sizes)) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize(("name", "options"), ALL)
@given(
    st.lists(st.one_of(st.just(np.nan), st.floats(0.0, 1.0)), min_size=1, max_size=40), st.integers(3, 12), st.data()
)
def test_the_sum_is_the_budget_always(
    name: str, options: dict[str, Any], last: list[float], mean: int, data: st.DataObject
) -> None:
    high = data.draw(st.integers(mean, 40))
    sizes = make_allocator(name, min_rollouts=3, max_rollouts=high, **options).allocate(rates(last), mean)
    assert sizes.sum() == mean * len(last)
    assert sizes.min() >= 3
    assert sizes.max() <= high


def test_shares_within_bounds() -> None:
    assert in_proportion(np.array([1.0, 1.0, 1.0]), 1, 9, 10).tolist() == [4, 3, 3]
    assert in_proportion(np.array([100.0, 1.0]), 2, 6, 8).tolist() == [6, 2]
    assert in_proportion(np.array([1e-200, 1.0, 1.0]), 1, 32, 25).tolist() == [1, 12, 12]
    assert most_valuable(np.ones((2, 3)), np.array([1, 3]), 9).tolist() == [1, 3]


def test_a_mean_outside_the_bounds_is_refused() -> None:
    with pytest.raises(rw.ConfigError, match="Knapsack gives each prompt 4 to 6 rollouts, and the mean is to be 8"):
        rw.Knapsack(min_rollouts=4, max_rollouts=6).allocate(rates([0.5]), 8)
    with pytest.raises(rw.ConfigError, match="max_rollouts must be at least min_rollouts=4, got 3"):
        rw.Knapsack(min_rollouts=4, max_rollouts=3)


@pytest.mark.parametrize(("name", "options"), [*ALL, ("vip", {})])
def test_a_bound_beyond_the_budget_is_no_bound(name: str, options: dict[str, Any]) -> None:
    """With 2^53, for none, all values up to there were made: a MemoryError."""
    shares, whole = rates([0.125, 0.5, 0.0, np.nan, 0.75]), 5 * 8
    free, bounded = (make_allocator(name, max_rollouts=most, **options) for most in (2**53, whole))
    assert free.allocate(shares, 8).tolist() == bounded.allocate(shares, 8).tolist()


def test_a_bound_of_hora_beyond_the_budget_is_no_bound() -> None:
    after = Seen(1, [np.array([1.0, 0.0]), np.array([0.0, 0.0])], 1.0)
    free, bounded = (make_allocator("hora", max_rollouts=most) for most in (2**53, 8))
    assert free.more(after, 4).tolist() == bounded.more(after, 4).tolist()  # type: ignore[attr-defined]


# ---- in a curriculum ----


def pool(n: int = 60) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(n)])


def step(curriculum: rw.Curriculum, rng: np.random.Generator) -> list[rw.Ticket]:
    tickets = curriculum.ask(8, n_rollouts=8)
    chance = [int(t.prompt_id[1:]) / 60 for t in tickets]
    rewards = [(rng.random(t.n_rollouts) < p).astype(float) for t, p in zip(tickets, chance, strict=True)]
    curriculum.tell([rw.Outcome(t.id, r) for t, r in zip(tickets, rewards, strict=True)])
    return tickets


@pytest.mark.parametrize(("name", "options"), ALL)
@pytest.mark.parametrize("kind", [rw.Uniform, rw.Recommended, rw.BOTS, rw.PrioritizedReplay, rw.VCRL])
def test_tickets_have_their_own_numbers_and_a_state_goes_on(
    kind: type[rw.Curriculum], name: str, options: dict[str, Any]
) -> None:
    made = lambda: kind(pool(), seed=0, allocator={"name": name, **options})  # noqa: E731
    curriculum, rng = made(), np.random.default_rng(0)
    sizes = [[t.n_rollouts for t in step(curriculum, rng)] for _ in range(12)]
    assert [sum(own) for own in sizes] == [64] * 12
    if name != "variance-informed":  # of prompts chosen for much the same variance
        assert len({n for own in sizes for n in own}) > 1
    other = made()
    other.load_state_dict(curriculum.state_dict())
    asked = [[(t.prompt_id, t.n_rollouts) for t in c.ask(8, n_rollouts=8)] for c in (curriculum, other)]
    assert asked[0] == asked[1]
    with pytest.raises(rw.StateError, match="allocator"):
        kind(pool(), seed=0).load_state_dict(curriculum.state_dict())


def test_what_the_rails_choose_has_the_mean() -> None:
    curriculum = rw.Recommended(pool(), seed=0, allocator="knapsack", rails={"explore": 0.25})
    rng = np.random.default_rng(0)
    tickets = [t for _ in range(20) for t in step(curriculum, rng)]
    railed = {t.n_rollouts for t in tickets if t.lane == "rail-explore"}
    assert railed == {8}


def test_refusals() -> None:
    curriculum = rw.Uniform(pool(), allocator="knapsack")
    with pytest.raises(rw.ConfigError, match="an allocator divides rollouts among prompts; say how many"):
        curriculum.ask(4)
    with pytest.raises(rw.ConfigError, match="2 to 4 rollouts, and the mean is to be 1"):
        curriculum.ask(4, n_rollouts=1)
    assert curriculum.metrics()["asked"] == 0
    with pytest.raises(rw.ConfigError, match="SPEED begins each group with a screening.*so Progressive can't make it"):
        rw.SPEED(pool(), allocator="progressive")
    with pytest.raises(rw.ConfigError, match="knapsak"):
        rw.Uniform(pool(), allocator="knapsak")
    with pytest.raises(rw.ConfigError, match="allocator must be a name"):
        rw.Uniform(pool(), allocator=3)  # type: ignore[arg-type]


class Steep(rw.Allocator):
    """All to the first."""

    def values(self, rates: Rates, sizes: np.ndarray) -> np.ndarray:
        return np.arange(len(rates.alpha), 0, -1)[:, None] * np.ones(len(sizes))


def test_an_allocator_of_ones_own() -> None:
    tickets = rw.Uniform(pool(), allocator=Steep(max_rollouts=20)).ask(4, n_rollouts=8)
    assert [t.n_rollouts for t in tickets] == [20, 8, 2, 2]
    in_rounds = {"hora", "progressive", "reinforce-ada"}
    assert set(ALLOCATORS) == {"hit-utility", "knapsack", "variance-informed", "vip"} | in_rounds


@pytest.mark.parametrize("worth", [None, np.ones(6), np.ones((6, 2)), np.full((2, 6), np.nan), [["a"] * 6] * 2])
def test_an_allocator_whose_values_are_not_one_for_each_prompt_and_size_is_named(worth: Any) -> None:
    class Mine(rw.Allocator):
        def values(self, rates: Rates, sizes: np.ndarray) -> np.ndarray:
            return worth  # type: ignore[no-any-return]

    curriculum = rw.Uniform(rw.PromptPool(ids=["a", "b"]), allocator=Mine())
    with pytest.raises(rw.ConfigError, match=r"Mine.values must give numbers of shape \(2, 6\), one for each prompt"):
        curriculum.ask(2, n_rollouts=4)
    assert curriculum.open_tickets() == []


@pytest.mark.parametrize("power", [2.0, 8.0, 40.0])
def test_gvm_divides_also_where_the_belief_is_all_but_zero(power: float) -> None:
    p = np.array([1e-9, 0.5, 0.5, 0.5])
    allocator = rw.VarianceInformed(rule="gvm", power=power, min_rollouts=1)
    assert allocator.allocate(Rates(100 * p, 100 * (1 - p), p), 8).sum() == 32


def test_a_mixture_has_the_belief_of_its_lanes() -> None:
    lanes = {"a": (1.0, rw.MoPPS(candidate_multiplier=None))}
    curriculum = rw.Mixture(pool(), seed=0, rails=None, lanes=lanes, allocator="hit-utility")
    rng = np.random.default_rng(0)
    for _ in range(20):
        step(curriculum, rng)
    slots = np.arange(60)
    mean, _ = curriculum.believed(slots)
    assert mean.tolist() == curriculum.expected(slots).tolist()


def test_a_reward_for_the_format_is_no_success() -> None:
    """0.1 for any answer and 1 of 4 solved, on the prior of a uniform success rate: Beta(1 + 1, 1 + 3), mean 1/3.

    The mean score is 0.1 + 0.9 / 3. See test_a_floor_of_the_rewards_is_no_success_rate for the prior.
    """
    curriculum = rw.EmpiricalBayes(pool(2), rails="off", allocator="hit-utility")
    first, belief = np.array([0]), curriculum.belief
    belief.add(first, [np.array([1.0, 0.1, 0.1, 0.1])])
    belief.forget_and_learn()
    belief.prior, belief.inside = (np.array([1.1]), np.array([0.9])), np.array([0.045])
    assert curriculum.expected(first) == pytest.approx([0.4])
    mean, deviation = curriculum.believed(first)
    assert mean == pytest.approx([1 / 3])
    assert deviation**2 == pytest.approx([2 * 4 / (6 * 6 * 7)])


def test_a_prompt_of_which_nothing_is_known_is_not_taken_for_solved_or_hopeless() -> None:
    """Mean 1/2 and deviation 1/2, as Gaussian beliefs begin, are those of two points, where no rollout is worth any.

    As Beta(1, 1), E[p (1-p)^l] = 1 / ((l+1) (l+2)): the 7 from l = 2 to 8 are worth 1/90 or more, and of Beta(4, 4), of
    deviation 1/6, the 5 to l = 6: 6/429. Its next is worth 4/429 < 1/90. As two points the first prompt got the least.
    """
    curriculum = rw.BOTS(pool(2), belief="gaussian", allocator="hit-utility", seed=0)
    mean, deviation = curriculum.believed(np.arange(2))
    assert (mean.tolist(), deviation.tolist()) == ([0.5, 0.5], [0.5, 0.5])
    believed = np.array([0.5, 0.5]), np.array([0.5, 1 / 6])
    found = rates_of(curriculum.columns, np.arange(2), believed)
    assert found.alpha == pytest.approx([1.0, 4.0])
    assert found.beta == pytest.approx([1.0, 4.0])
    assert rw.HitUtility().allocate(found, 8).tolist() == [9, 7]


def test_a_screened_group_is_remembered_whole() -> None:
    """3 of 4 at the screening, 0 of the other 4: 3 of 8."""
    curriculum = rw.SPEED(rw.PromptPool(ids=["a", "b"]), seed=0, allocator="knapsack")
    curriculum.tell([rw.Outcome(t.id, [1, 1, 1, 0]) for t in curriculum.probe(8, n_rollouts=8, wanted=2)])
    curriculum.tell([rw.Outcome(t.id, [0] * t.n_rollouts) for t in curriculum.ask(2, n_rollouts=8)])
    assert curriculum.columns["last_solved"].tolist() == [0.375, 0.375]
    assert curriculum.columns["last_count"].tolist() == [8, 8]


def test_a_screening_that_leaves_nothing_to_divide_is_refused() -> None:
    curriculum = rw.PilotCommit(pool(), seed=0, allocator="knapsack")
    with pytest.raises(rw.ConfigError, match="8 screening rollouts leave none of a group of 8 to be made: lower scr"):
        curriculum.ask(4, n_rollouts=8)
    assert len(curriculum.ask(4, n_rollouts=9)) == 4
