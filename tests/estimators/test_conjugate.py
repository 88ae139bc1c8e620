"""BOTS, equations 1 to 3, 10 and 11: three families by hand, against closed forms, and against Monte Carlo."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollwise as rw
from rollwise.columns import Columns
from rollwise.estimators import BetaBelief, Conjugate, DirichletBelief, GaussianBelief, make_belief, make_conjugate


def used(belief: Conjugate, n: int = 1, **parameters: list[float]) -> Conjugate:
    """The belief over n prompts, with these parameters."""
    columns = Columns(n, belief.columns_spec)
    belief.use(columns)
    for name, values in parameters.items():
        columns[name][:] = values
    return belief


def told(belief: Conjugate, **groups: list[float]) -> None:
    """Scores of the prompts s0, s1, ..."""
    slots = np.array([int(name[1:]) for name in groups])
    belief.add(slots, [np.array(scores, dtype=float) for scores in groups.values()])


FAMILIES: list[Any] = [BetaBelief, GaussianBelief, DirichletBelief]


# ---- the update, by hand ----


def test_the_gaussian_prior_is_the_papers_without_its_slip() -> None:
    """mu_0 = .8, sigma_0 = .5, sigma = .25: nu_0 = (.25 / .5)^2 = .25 and chi_0 = .8 * .25 = .2.

    Appendix E.4.1 has chi_0 = mu_0 / sigma_0^2 = 3.2, with which the prior mean chi_0 / nu_0 would be 12.8, not .8.
    """
    belief = used(GaussianBelief(prior=(0.8, 0.5), reward_sd=0.25))
    assert belief.prior == (pytest.approx(0.2), 0.25)
    assert belief.mean().tolist() == pytest.approx([0.8])
    assert belief.uncertainty().tolist() == pytest.approx([0.5])


def test_equations_10_and_11_for_gaussian_rewards() -> None:
    """Prior chi = .125, nu = .25 (mu_0 = sigma_0 = .5, sigma = .25); lambda = .2, rho = .25.

    s0 has scores .5, .7, .9: T = 2.1, n = 3, explicit and implicit alike: chi = .8 * .125 + .2 * .125 + 2.1 = 2.225,
    nu = .25 + 3 = 3.25. s1 has none; implied rate .4 of n = 3: chi = .125 + .25 * .4 * 3 = .425, nu = .25 + .75 = 1.
    """
    belief = used(GaussianBelief(), 2)
    told(belief, s0=[0.5, 0.7, 0.9])
    new = belief.updated(forgetting=0.2, implicit_weight=0.25, implied=np.array([0.9, 0.4]), n=3.0, told_only=False)
    assert [p.tolist() for p in new] == [pytest.approx([2.225, 0.425]), pytest.approx([3.25, 1.0])]
    belief.settle(new)
    assert belief.mean().tolist() == pytest.approx([2.225 / 3.25, 0.425])
    assert belief.uncertainty().tolist() == pytest.approx([0.25 / np.sqrt(3.25), 0.25])
    again = belief.updated(forgetting=0.2, implicit_weight=0.25, implied=None, n=0.0, told_only=False)
    assert again[0].tolist() == pytest.approx([0.8 * 2.225 + 0.025, 0.8 * 0.425 + 0.025])  # nothing was told: forgets
    assert again[1].tolist() == pytest.approx([0.8 * 3.25 + 0.05, 0.85])


def test_equation_10_for_graded_rewards() -> None:
    """Levels 0, .1, 1, one pseudo-count each; lambda = .1, rho = .2.

    s0 has 1, .1, .1, 0: counts 1, 2, 1, so 2, 3, 2. s1 has none; implied .25 of n = 4: 1 at the top, 3 at the bottom,
    of weight .2: 1.6, 1, 1.2. Its mean is (.1 + 1.2) / 3.8.
    """
    belief = used(DirichletBelief(), 2)
    told(belief, s0=[1.0, 0.1, 0.1, 0.0])
    new = belief.updated(forgetting=0.1, implicit_weight=0.2, implied=np.array([0.0, 0.25]), n=4.0, told_only=False)
    assert [p.tolist() for p in new] == [
        pytest.approx([2.0, 1.6]),
        pytest.approx([3.0, 1.0]),
        pytest.approx([2.0, 1.2]),
    ]
    belief.settle(new)
    assert belief.mean().tolist() == pytest.approx([2.3 / 7, 1.3 / 3.8])


def test_a_score_counts_for_the_nearest_level() -> None:
    """Limits halfway: .05 and .55 between 0, .1 and 1; a score on the limit counts for the lower."""
    belief = DirichletBelief()
    counts = belief.statistics([np.array([0.04, 0.05, 0.06, 0.54, 0.56, 1.0]), np.array([]), np.array([0.1])])
    assert [c.tolist() for c in counts] == [[2, 0, 0], [2, 0, 1], [2, 0, 0]]


def test_implied_counts_have_the_mean_implied_within_the_levels() -> None:
    """Levels .2, .5, .8: .35 of 8 is a quarter of the way, 6 below and 2 above; what is beyond is clipped."""
    belief = DirichletBelief(levels=(0.2, 0.5, 0.8))
    low, middle, high = belief.implied_statistics(np.array([0.35, 0.0, 1.0]), 8.0)
    assert (low.tolist(), middle.tolist(), high.tolist()) == (
        pytest.approx([6.0, 8.0, 0.0]),
        [0.0, 0.0, 0.0],
        pytest.approx([2.0, 0.0, 8.0]),
    )


def test_a_dirichlet_of_two_levels_is_the_beta() -> None:
    scores = [1.0, 0.0, 0.0, 1.0, 1.0]
    beta, dirichlet = used(BetaBelief(prior=(2.0, 3.0))), used(DirichletBelief(levels=(0.0, 1.0), prior=(3.0, 2.0)))
    for belief in (beta, dirichlet):
        told(belief, s0=scores)
        belief.forget_and_learn(0.3)
    for method in ("mean", "uncertainty", "reward_variance"):
        assert getattr(beta, method)() == pytest.approx(getattr(dirichlet, method)())
    assert [p.tolist() for p in beta.parameters] == [p.tolist() for p in dirichlet.parameters[::-1]]


def test_the_beta_is_equation_1() -> None:
    """alpha 3, beta 1, lambda .1, 2 of 3: .9 * 3 + .1 + 2 = 4.8 and .9 + .1 + 1 = 2."""
    belief = used(BetaBelief(), alpha=[3.0], beta=[1.0])
    told(belief, s0=[1.0, 1.0, 0.0])
    belief.forget_and_learn(0.1)
    assert [p.tolist() for p in belief.parameters] == [pytest.approx([4.8]), pytest.approx([2.0])]


@pytest.mark.parametrize("make", FAMILIES)
def test_told_only_leaves_the_others_alone_and_forgets_those_told(make: Any) -> None:
    belief = used(make(), 2)
    belief.settle([p * 3.0 for p in belief.parameters])
    before = [p.copy() for p in belief.parameters]
    told(belief, s0=[1.0, 0.0])
    new = belief.updated(forgetting=0.5, implicit_weight=0.0, implied=None, n=2.0, told_only=True)
    everyone = belief.updated(forgetting=0.5, implicit_weight=0.0, implied=None, n=2.0, told_only=False)
    for old, now, both in zip(before, new, everyone, strict=True):
        assert now[1] == old[1]
        assert now[0] == both[0]
        assert both[1] != old[1]


@pytest.mark.parametrize("make", FAMILIES)
def test_what_was_heard_is_the_sum_of_all_tells_of_the_step(make: Any) -> None:
    belief = used(make(), 3)
    told(belief, s2=[1.0, 0.0], s0=[0.1])
    told(belief, s2=[1.0, 1.0])
    slots, count, rates = belief.heard()
    assert slots.tolist() == [0, 2]
    assert count.tolist() == pytest.approx([1.0, 4.0])
    assert rates.tolist() == pytest.approx([0.1, 0.75])
    belief.forget_and_learn(0.1)
    assert len(belief.heard()[0]) == 0


@given(
    family=st.sampled_from(FAMILIES),
    forgetting=st.floats(0.01, 0.99),
    rho=st.floats(0, 1),
    n=st.integers(1, 16),
    rolled=st.lists(st.booleans(), max_size=40),
)
def test_proposition_2_bounds_every_familys_effective_sample_size(
    family: Any, forgetting: float, rho: float, n: int, rolled: list[bool]
) -> None:
    """n_0 + rho n r_t <= n_t <= n_0 + n r_t, r_t = (1 - (1 - lambda)^t) / lambda: equation 11 is the same for nu."""
    belief = used(family())
    n_0 = float(belief.effective_size()[0])
    for t, direct in enumerate(rolled, start=1):
        if direct:
            told(belief, s0=[float(i % 2) for i in range(n)])
        belief.settle(
            belief.updated(
                forgetting=forgetting, implicit_weight=rho, implied=np.array([0.3]), n=float(n), told_only=False
            )
        )
        reached = (1 - (1 - forgetting) ** t) / forgetting
        size = float(belief.effective_size()[0])
        assert n_0 + rho * n * reached - 1e-6 <= size <= n_0 + n * reached + 1e-6


# ---- what they believe: closed forms against Monte Carlo ----

STATES: list[Any] = [
    (lambda: used(BetaBelief(), alpha=[4.8], beta=[2.0]), None),
    (lambda: used(GaussianBelief(reward_sd=0.3), chi=[2.4], nu=[4.0]), None),
    (lambda: used(DirichletBelief(), alpha_0=[2.0], alpha_1=[3.0], alpha_2=[1.5]), (0.0, 0.1, 1.0)),
]


@pytest.mark.parametrize(("make", "levels"), STATES)
def test_the_samples_have_the_mean_and_the_spread_believed(make: Any, levels: Any) -> None:
    belief = make()
    rng, draws = np.random.default_rng(0), 40_000
    samples = belief.sample(rng, np.zeros(draws, dtype=np.int64))
    assert samples.mean() == pytest.approx(belief.mean()[0], abs=5 * belief.uncertainty()[0] / draws**0.5)
    assert samples.std() == pytest.approx(belief.uncertainty()[0], rel=0.02)


def test_the_reward_variance_is_that_of_a_rollout_given_the_prompt() -> None:
    """Beta(4.8, 2): E[p(1-p)] by drawing p. Dirichlet: the variance of a score by drawing shares. Gaussian: sigma^2."""
    rng = np.random.default_rng(1)
    p = rng.beta(4.8, 2.0, 100_000)
    assert STATES[0][0]().reward_variance()[0] == pytest.approx((p * (1 - p)).mean(), rel=0.01)
    assert STATES[1][0]().reward_variance()[0] == pytest.approx(0.09)
    shares, levels = rng.dirichlet([2.0, 3.0, 1.5], 100_000), np.array([0.0, 0.1, 1.0])
    variance = shares @ levels**2 - (shares @ levels) ** 2
    assert STATES[2][0]().reward_variance()[0] == pytest.approx(variance.mean(), rel=0.01)


def test_beta_by_hand() -> None:
    """Beta(1, 1): mean 1/2, variance 1/12, E[p(1-p)] = 1/6. Beta(6, 2): 3/4, 6*2/(64*9), 12/(8*9)."""
    belief = used(BetaBelief(), 2, alpha=[1.0, 6.0], beta=[1.0, 2.0])
    assert belief.mean().tolist() == pytest.approx([1 / 2, 3 / 4])
    assert (belief.uncertainty() ** 2).tolist() == pytest.approx([1 / 12, 12 / (64 * 9)])
    assert belief.reward_variance().tolist() == pytest.approx([1 / 6, 12 / 72])


def test_dirichlet_by_hand() -> None:
    """Counts 1, 1, 1 of 0, .1, 1: mean 1.1/3; E of a square 1.01/3; V = 1.01/3 - (1.1/3)^2 = 1.82/9; V/4 and 3V/4."""
    belief = used(DirichletBelief())
    assert belief.mean().tolist() == pytest.approx([1.1 / 3])
    assert (belief.uncertainty() ** 2).tolist() == pytest.approx([1.82 / 36])
    assert belief.reward_variance().tolist() == pytest.approx([3 * 1.82 / 36])


def test_rounding_never_makes_a_variance_negative() -> None:
    """A belief all but certain of one level: mean square less squared mean is a rounding error of either sign."""
    counts = np.random.default_rng(0).uniform(1, 1e6, size=500)
    belief = used(
        DirichletBelief(levels=(0.0, 0.1, 0.7)),
        500,
        alpha_0=[1e-20] * 500,
        alpha_1=counts.tolist(),
        alpha_2=[1e-20] * 500,
    )
    assert np.isfinite(belief.uncertainty()).all()
    assert (belief.reward_variance() >= 0).all()


# ---- BOTS with them ----


def bots_pool() -> rw.PromptPool:
    return rw.PromptPool(ids=["p0", "p1"], columns={"reference_pass_rates": [[0.2, 0.8], [0.1, 0.5]]})


def one_step(bots: rw.BOTS, rewards: list[float]) -> None:
    """Only p0's rollouts have rewards."""
    tickets = bots.ask(2, step=bots.step + 1)
    bots.tell([rw.Outcome(t.id, rewards if t.prompt_id == "p0" else []) for t in tickets])


def test_gaussian_bots_end_to_end_by_hand() -> None:
    """lambda .1, rho .1, prior (.125, .25). p0: .5, .3, .7, .5: T = 2, n = 4: chi 2.125, nu 4.25, mean .5.

    The batch's mean .5 is halfway between .2 and .8, so p1 is implied .3: chi = .125 + .1 * 4 * .3 = .245, nu = .65.
    Then p0: 1, 1, 1, .5: mean .875, mu = 1.125, averaged .9 * .5 + .1125 = .5625; p1 implied .1 + .5625 * .4 = .325:
    chi = .9 * .245 + .0125 + .13 = .363, nu = .9 * .65 + .025 + .4 = 1.01. p0: .9 * 2.125 + .0125 + 3.5 = 5.425 and
    .9 * 4.25 + .025 + 4 = 7.85.
    """
    bots = rw.BOTS(bots_pool(), belief="gaussian")
    one_step(bots, [0.5, 0.3, 0.7, 0.5])
    assert [p.tolist() for p in bots.posterior()] == [pytest.approx([2.125, 0.245]), pytest.approx([4.25, 0.65])]
    one_step(bots, [1.0, 1.0, 1.0, 0.5])
    assert [p.tolist() for p in bots.posterior()] == [pytest.approx([5.425, 0.363]), pytest.approx([7.85, 1.01])]
    (first, second) = bots.ask(2)
    expected = {"p0": 5.425 / 7.85, "p1": 0.363 / 1.01}
    assert {t.prompt_id: t.predicted for t in (first, second)} == pytest.approx(expected)


def test_dirichlet_bots_end_to_end_by_hand() -> None:
    """lambda .1, rho .1, one each. p0: 1, .1, 0, 0: counts 2, 1, 1, so 3, 2, 2; its rate is 1.1/4 = .275.

    mu = (.275 - .2) / .6 = .125, p1 implied .1 + .125 * .4 = .15: .6 of 4 at the top, 3.4 at the bottom, weight .1:
    1.34, 1, 1.06. Nothing told in the next step: nothing changes, since equation 1 is for steps with a batch.
    """
    bots = rw.BOTS(bots_pool(), belief="dirichlet")
    one_step(bots, [1.0, 0.1, 0.0, 0.0])
    expected = [pytest.approx([3.0, 1.34]), pytest.approx([2.0, 1.0]), pytest.approx([2.0, 1.06])]
    assert [p.tolist() for p in bots.posterior()] == expected
    bots.ask(2)
    bots.ask(1, step=bots.step + 1)
    assert [p.tolist() for p in bots.posterior()] == expected


def test_a_continuous_reward_of_one_kind_is_told_from_a_mixed_one() -> None:
    """Both have mean .5: the Beta can't tell them apart, the averages of score and square can (issue: any reward)."""
    flat, mixed = [0.5] * 4, [0.0, 1.0, 0.0, 1.0]
    for estimator, tells in (("average", True), ("dirichlet", True), ("beta", False)):
        options = {"levels": (0.0, 0.5, 1.0)} if estimator == "dirichlet" else {}
        selector = rw.Selector(
            rw.PromptPool(ids=["flat", "mixed"]), estimator=estimator, estimator_options=options, rails="off"
        )
        rewards = {"flat": flat, "mixed": mixed}
        selector.tell([rw.Outcome(t.id, rewards[t.prompt_id]) for t in selector.ask(2)])
        selector.ask(1)
        variance = selector.belief.reward_variance()
        assert (variance[1] > 1.2 * variance[0]) == tells


# ---- options ----


@pytest.mark.parametrize(
    ("family", "options", "reason"),
    [
        ("gaussian", {"prior": (0.5, 0.0)}, "sigma_0"),
        ("gaussian", {"reward_sd": 0.0}, "reward_sd"),
        ("gaussian", {"reward_sd": -1.0}, "reward_sd"),
        ("gaussian", {"reward_sd": float("nan")}, "reward_sd"),
        ("gaussian", {"reward_sd": "much"}, "reward_sd"),
        ("gaussian", {"levels": (0.0, 1.0)}, "levels"),
        ("dirichlet", {"levels": (0.0,)}, "levels"),
        ("dirichlet", {"levels": (0.0, 0.0, 1.0)}, "levels"),
        ("dirichlet", {"levels": (0.0, 2.0)}, "levels"),
        ("dirichlet", {"levels": ("low", "high")}, "levels"),
        ("dirichlet", {"prior": (1.0, 1.0)}, "3 numbers"),
        ("dirichlet", {"prior": (1.0, 0.0, 1.0)}, "numbers > 0"),
        ("beta", {"reward_sd": 0.2}, "reward_sd"),
        ("beta", {"prior": (float("inf"), 1.0)}, "2 numbers"),
        ("cauchy", {}, "cauchy"),
    ],
)
def test_bad_options_of_a_belief_are_named(family: str, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(rw.ConfigError, match=reason):
        make_belief(family, options)
    with pytest.raises(rw.ConfigError, match=reason):
        rw.BOTS(belief=family, **options)  # type: ignore[arg-type]


def test_averages_are_no_conjugate_belief() -> None:
    with pytest.raises(rw.ConfigError, match="average"):
        make_conjugate("average")
    assert make_belief("beta", {"prior": None}).columns_spec == BetaBelief().columns_spec
