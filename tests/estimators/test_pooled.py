"""The pooled belief against numbers worked out by hand, and against itself written prompt by prompt."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollwise as rw
from rollwise.columns import Columns
from rollwise.estimators import PooledBelief

GROUPS = np.array([0, 0, 1, 1])


def belief_of(told: dict[int, list[float]], groups: np.ndarray = GROUPS, **options: float) -> PooledBelief:
    belief = PooledBelief(**options)
    belief.use(Columns(len(groups), belief.columns_spec))
    belief.divide(groups, int(groups.max()) + 1)
    belief.add(np.array(list(told)), [np.array(scores) for scores in told.values()])
    belief.forget_and_learn()
    return belief


def test_before_anything_is_told_every_prior_is_flat() -> None:
    """m = 1/2, u = 1/6: t = (1/6) / (1/4) = 2/3, s = 2, so Beta(1, 1)."""
    belief = PooledBelief()
    belief.use(Columns(2, belief.columns_spec))
    assert [p.tolist() for p in belief.parameters()] == [pytest.approx([1, 1])] * 2
    assert belief.reward_variance().tolist() == pytest.approx([1 / 6] * 2)


def test_priors_worked_out() -> None:
    """Group 0: 2 of 4 and 0 of 4, so means 1/2 and 0, unbiased variances 4/3 * 1/4 = 1/3 and 0; group 1: nothing.

    All: m = (1/2 + 0 + 2/2) / 4 = 3/8, u = (1/3 + 0 + 2/6) / 4 = 1/6.
    Group 0: m = (1/2 + 2 * 3/8) / 4 = 5/16, u = (1/3 + 2/6) / 4 = 1/6; t = (1/6) / (55/256) = 128/165, s = 128/37.
    Group 1: m = 3/8, u = 1/6; t = (1/6) / (15/64) = 32/45, s = 32/13.
    """
    belief = belief_of({0: [1, 0, 1, 0], 1: [0, 0, 0, 0]})
    a, b = belief.prior
    assert a.tolist() == pytest.approx([40 / 37, 12 / 13])
    assert b.tolist() == pytest.approx([88 / 37, 20 / 13])


def test_beliefs_worked_out() -> None:
    """Prompt 0: alpha = 40/37 + 2, beta = 88/37 + 2; a step later, without news, .95 * 2 of both are left."""
    belief = belief_of({0: [1, 0, 1, 0], 1: [0, 0, 0, 0]})
    alpha, beta = (Fraction(40, 37) + 2, Fraction(88, 37) + 2)
    n = alpha + beta
    assert belief.mean()[0] == pytest.approx(float(alpha / n))
    assert belief.uncertainty()[0] == pytest.approx(math.sqrt(alpha * beta / (n * n * (n + 1))))
    first = alpha * beta / (n * (n + 1))
    assert belief.reward_variance()[0] == pytest.approx(float(first))
    second = first * (alpha + 1) * (beta + 1) / ((n + 2) * (n + 3))
    assert belief.variance_sd()[0] == pytest.approx(math.sqrt(second - first * first))
    belief.forget_and_learn()
    a, b = belief.prior
    assert belief.parameters(np.array([0]))[0][0] == pytest.approx(a[0] + 1.9)
    assert belief.parameters(np.array([1]))[1][0] == pytest.approx(b[0] + 3.8)


def test_new_outcomes_can_replace_half_of_the_old() -> None:
    """1 of 4, and a step later 4 of 4: half of .95 * 4 rollouts and of .95 * 1 successes are left, and 4 come."""
    belief = belief_of({0: [1, 0, 0, 0]}, renewal=0.5)
    belief.add(np.array([0]), [np.ones(4)])
    belief.forget_and_learn()
    assert belief.columns["rollouts"][0] == pytest.approx(0.5 * 0.95 * 4 + 4)
    assert belief.columns["successes"][0] == pytest.approx(0.5 * 0.95 * 1 + 4)


def test_a_group_left_alone_drifts_back_to_the_average_of_all() -> None:
    belief = belief_of({0: [0] * 8, 1: [0] * 8, 2: [1, 0] * 4, 3: [1, 0] * 4}, drift=0.2)
    apart = belief.prior[0] / sum(belief.prior)
    for _ in range(40):
        belief.add(np.array([2, 3]), [np.array([1.0, 0.0] * 4)] * 2)
        belief.forget_and_learn()
    mean = belief.prior[0] / sum(belief.prior)
    assert apart[0] < 0.3 < 0.45 < mean[0] == pytest.approx(mean[1], abs=0.01)


def test_a_group_is_remembered_by_its_last_prompts_however_long_ago() -> None:
    """Told 8 of it in a step, a memory of 8 prompts keeps 1/e of what was; told none, (1 - drift) of it."""
    groups = np.repeat([0, 1], 20)
    belief = belief_of({0: [1, 0], 20: [1, 0]}, groups, memory=8.0, drift=0.02)
    belief.add(np.arange(1, 9), [np.zeros(2)] * 8)
    belief.forget_and_learn()
    assert belief.columns["weight"][[0, 1, 20]].tolist() == pytest.approx([0.98 / math.e, 1.0, 0.98])


def test_the_same_mean_of_unlike_and_of_like_prompts_makes_unlike_priors() -> None:
    """Half solved, half hopeless: the next can be either, t is cut at .05. All in the middle: so is the next one."""
    some = np.arange(40)
    unlike = {i: [float(i % 2)] * 8 for i in some}
    like = {i: [1.0, 0.0] * 4 for i in some}
    sizes = [sum(belief_of(told, np.zeros(40, dtype=int)).prior)[0] for told in (unlike, like)]
    assert sizes[0] == pytest.approx(0.05 / 0.95, rel=0.2)
    assert sizes[1] == pytest.approx(0.95 / 0.05)


def test_graded_rewards_that_never_differ_teach_nothing() -> None:
    """Always 0.1: p(1-p) is .09, the variance 0. With enough of it seen, little more than 0 is expected."""
    belief = belief_of({0: [0.1] * 64, 1: [0.1] * 64, 2: [0, 0, 0, 0.4] * 16, 3: [0.1] * 64}, np.zeros(4, dtype=int))
    expected = belief.reward_variance()
    assert expected[0] < 0.005 < 0.02 < expected[2]
    assert belief.mean()[0] == pytest.approx(0.1, abs=0.01)


def test_a_floor_of_the_rewards_is_no_success_rate() -> None:
    """Prompts that earn 0.1 or 1 are believed in as those that earn 0 or 1 are, if a prior of 0.1 or 1 is given, too.

    Prior: A = 2 (0.1 + 1) / 2 = 1.1, B = 0.9, w = .045. With 1 of 4 solved A = 1.1 + 1.3, B = .9 + 2.7, W = .09 + .27:
    the floor is .36 / 3.6 = .1, and Beta(2.4 - .4, 4) = Beta(1 + 1, 1 + 3); the variance is .81 of that of 0 and 1.
    """
    told = np.array([1.0, 0.0, 0.0, 0.0])
    plain, graded = belief_of({0: told.tolist()}), belief_of({0: (0.1 + 0.9 * told).tolist()})
    for belief, prior, inside in ((plain, (1.0, 1.0), 0.0), (graded, (1.1, 0.9), 0.045)):
        belief.prior = tuple(np.full(2, p) for p in prior)  # type: ignore[assignment]
        belief.inside = np.full(2, inside)
    first = np.array([0])
    assert graded.floor(first)[0] == pytest.approx(0.1)
    assert [p[0] for p in plain.parameters(first)] == pytest.approx([2, 4])
    assert [p[0] for p in graded.parameters(first)] == pytest.approx([2, 4])
    assert graded.mean(first)[0] == pytest.approx(2.4 / 6) == pytest.approx(0.1 + 0.9 * plain.mean(first)[0])
    assert graded.uncertainty(first)[0] == pytest.approx(0.9 * plain.uncertainty(first)[0])
    assert graded.reward_variance(first)[0] == pytest.approx(0.81 * 8 / 42)
    assert graded.variance_sd(first)[0] == pytest.approx(0.81 * plain.variance_sd(first)[0])


def test_the_prior_of_graded_rewards_is_worth_as_many_rollouts() -> None:
    """Group 0: 0.1, 0.1, 1, 1 and four times 0.1. Of all m = (.55 + .1 + 2/2) / 4 = .4125, so here (.65 + .825) / 4.

    v = 4/3 * .2025 = .27: of all (.27 + 0 + 2/6) / 4 = .150833, group (.27 + 2 * .150833) / 4 = .142917.
    w = (.045 + .09) / 4 = .03375 of all, of the group (.135 + .0675) / 4 = .050625.
    m = 1.475 / 4 = .36875; t = .142917 / (.36875 * .63125 - .050625) = .142917 / .182148 = .784617, s = 3.642857.
    """
    belief = belief_of({0: [0.1, 0.1, 1, 1], 1: [0.1] * 4})
    a, b = belief.prior
    assert a[0] + b[0] == pytest.approx(3.6428, rel=1e-3)
    assert a[0] / (a[0] + b[0]) == pytest.approx(0.36875)


def test_prompts_that_all_earn_the_floor_are_not_in_doubt() -> None:
    """One category earns 0.1 whatever is said, the other 0.1 or 1: for all optimism the first comes far behind."""
    groups = np.repeat([0, 1], 20)
    told = {i: [0.1] * 8 for i in range(15)} | {i: [1.0] + [0.1] * 7 for i in range(20, 35)}
    belief = belief_of(told, groups)
    hopeful = belief.reward_variance() + 1.5 * belief.variance_sd()
    assert hopeful[19] < 0.4 * hopeful[39]
    assert hopeful[0] < 0.2 * hopeful[20]


def test_one_rollout_says_nothing_of_the_variance() -> None:
    """Means 1 and 0 of one rollout each: the spread stays that of Beta(1, 1), 1/6, not 0."""
    belief = belief_of({0: [1], 1: [0]})
    assert belief.prior[0].tolist() == pytest.approx([1, 1])
    assert belief.prior[1].tolist() == pytest.approx([1, 1])


def test_what_has_faded_away_is_gone() -> None:
    belief = belief_of({0: [1, 0]}, forgetting=0.5, drift=0.5)
    for _ in range(40):
        belief.forget_and_learn()
    assert belief.columns["rollouts"].tolist() == [0] * 4 == belief.columns["weight"].tolist()
    assert belief.columns["successes"].tolist() == [0] * 4


@pytest.mark.parametrize("told", [{0: [1, 0, 1, 0, 1, 1], 2: [0, 0, 0, 0]}, {0: [1, 0.1, 0.1, 0.3], 2: [0.1] * 4}])
def test_the_expected_variance_is_that_of_samples(told: dict[int, list[float]]) -> None:
    belief = belief_of(told)
    rng = np.random.default_rng(0)
    draws = np.array([belief.sample(rng) for _ in range(40_000)])
    variance = (draws - belief.floor()) * (1 - draws)
    assert variance.mean(axis=0) == pytest.approx(belief.reward_variance(), abs=0.003)
    assert variance.std(axis=0) == pytest.approx(belief.variance_sd(), abs=0.003)
    assert draws.std(axis=0) == pytest.approx(belief.uncertainty(), abs=0.004)


scores = st.lists(st.sampled_from([0.0, 0.1, 1.0]), min_size=1, max_size=8)
steps = st.lists(st.dictionaries(st.integers(0, 5), scores, max_size=4), max_size=8)


@given(steps=steps)
def test_against_the_algorithm_prompt_by_prompt(steps: list[dict[int, list[float]]]) -> None:
    groups = np.array([0, 1, 0, 1, 2, 2])
    belief = PooledBelief(forgetting=0.1, renewal=0.4, drift=0.3, memory=3.0, borrowed=1.5)
    belief.use(Columns(6, belief.columns_spec))
    belief.divide(groups, 3)
    own = [[0.0, 0.0, 0.0] for _ in range(6)]  # sum, number and sum of s(1-s)
    last: dict[int, tuple[float, float | None, float]] = {}  # mean, unbiased variance, mean of s(1-s)
    weight: dict[int, float] = {}
    for told in steps:
        for slot in told:
            belief.add(np.array([slot]), [np.array(told[slot])])
        belief.forget_and_learn()
        for slot in range(6):
            own[slot] = [0.9 * value for value in own[slot]]
            like = sum(groups[slot] == groups[other] for other in told)
            weight[slot] = weight.get(slot, 0.0) * 0.7 * math.exp(-like / 3.0)
            if slot in told:
                s = told[slot]
                new = [sum(s), len(s), sum(x * (1 - x) for x in s)]
                own[slot] = [0.6 * old + more for old, more in zip(own[slot], new, strict=True)]
                last[slot] = (np.mean(s), np.var(s, ddof=1) if len(s) > 1 else None, new[2] / len(s))
                weight[slot] = 1.0

    def pooled(group: int | None, values: dict[int, float], first: float) -> float:
        mine = [i for i in values if group in (None, groups[i])]
        back = first if group is None else pooled(None, values, first)
        return (sum(weight[i] * values[i] for i in mine) + 1.5 * back) / (sum(weight[i] for i in mine) + 1.5)

    for slot in range(6):
        g = int(groups[slot])
        m = pooled(g, {i: v[0] for i, v in last.items()}, 0.5)
        v = pooled(g, {i: x[1] for i, x in last.items() if x[1] is not None}, 1 / 6)
        w = pooled(g, {i: x[2] for i, x in last.items()}, 0.0)
        t = min(max(v / (m * (1 - m) - w), 0.05), 0.95)
        s = t / (1 - t)
        a, b, inside = s * m + own[slot][0], s * (1 - m) + own[slot][1] - own[slot][0], s * w + own[slot][2]
        rate, floor = a / (a + b), inside / b
        over = (rate - floor) / (1 - floor)
        assert belief.mean()[slot] == pytest.approx(rate, abs=1e-9)
        assert belief.floor()[slot] == pytest.approx(floor, abs=1e-9)
        assert belief.parameters()[0][slot] == pytest.approx(over * (a + b), abs=1e-9)
        assert belief.parameters()[1][slot] == pytest.approx((1 - over) * (a + b), abs=1e-9)
    variance = belief.reward_variance()
    assert ((variance >= 0) & (variance <= 0.25)).all()
    assert ((belief.floor() >= 0) & (belief.floor() < 1)).all()


@pytest.mark.parametrize("options", [{"forgetting": -0.1}, {"renewal": 2.0}, {"drift": 1.5}, {"borrowed": 0.0}])
def test_numbers_out_of_range(options: dict[str, float]) -> None:
    with pytest.raises(rw.ConfigError, match=next(iter(options))):
        PooledBelief(**options)
