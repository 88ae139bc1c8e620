"""BOTS against numbers worked out by hand from the paper."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollwise as rw
from rollwise.estimators import bots_update, capability, interpolate, kernel_rates
from rollwise.testing import make_pool


def pool_of(rates: list[list[float]]) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(len(rates))], columns={"reference_pass_rates": rates})


def plain(n: int) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(n)])


def tell(bots: rw.BOTS, successes: dict[str, int], n: int = 8) -> None:
    """Ask for all prompts, tell so many successes of n for those named, and give the others back without any."""
    tickets = bots.ask(len(bots.pool), step=bots.step + 1)
    outcomes = [
        rw.Outcome(t.id, [1.0] * successes[t.prompt_id] + [0.0] * (n - successes[t.prompt_id]))
        if t.prompt_id in successes
        else rw.Outcome(t.id, [], failed=n)
        for t in tickets
    ]
    bots.tell(outcomes)


def test_defaults_are_the_papers() -> None:
    options = rw.BOTS().options
    expected = {"forgetting": 0.1, "implicit_weight": 0.1, "sampling": "thompson", "target": 0.5}
    assert {k: options[k] for k in expected} == expected
    assert rw.BOTS().belief.prior == (1.0, 1.0)


def test_equation_1_for_a_prompt_that_was_rolled_out() -> None:
    """Beta(1, 1), 6 of 8: alpha = .9 + .1 + 6 = 7, beta = 3. Then 2 of 8: 6.3 + .1 + 2 = 8.4 and 2.7 + .1 + 6 = 8.8."""
    bots = rw.BOTS(plain(1))
    tell(bots, {"p0": 6})
    assert [x.tolist() for x in bots.posterior()] == [[pytest.approx(7.0)], [pytest.approx(3.0)]]
    tell(bots, {"p0": 2})
    assert [x.tolist() for x in bots.posterior()] == [[pytest.approx(8.4)], [pytest.approx(8.8)]]


def test_equations_1_to_5_for_a_prompt_that_was_not() -> None:
    """Batch p0: 4 of 8, references .2, .8: mu = .5. p1 between .1 and .5: rate .3, so rho n rate = .1 * 8 * .3 = .24.

    alpha_1 = 1 + .24, beta_1 = 1 + .56. Next, 7 of 8 on p0: mu = (.875 - .2) / .6 = 1.125, averaged .9 * .5 +
    .1 * 1.125 = .5625; rate .1 + .5625 * .4 = .325; alpha = .9 * 1.24 + .1 + .26 = 1.476, beta = .9 * 1.56 + .1 + .54.
    """
    bots = rw.BOTS(pool_of([[0.2, 0.8], [0.1, 0.5]]))
    tell(bots, {"p0": 4})
    alpha, beta = bots.posterior()
    assert (alpha[1], beta[1]) == (pytest.approx(1.24), pytest.approx(1.56))
    assert (alpha[0], beta[0]) == (pytest.approx(5.0), pytest.approx(5.0))
    tell(bots, {"p0": 7})
    alpha, beta = bots.posterior()
    assert (alpha[1], beta[1]) == (pytest.approx(1.476), pytest.approx(2.044))
    bots.ask(1)  # closes the step; what it takes into the beliefs is what was shown before
    assert bots.metrics()["capability"] == pytest.approx(0.5625)
    assert np.array_equal(bots.posterior(), (alpha, beta))


def test_capability_extrapolates_and_interpolation_clips() -> None:
    assert capability(0.9, 0.2, 0.6, least_gap=0.01) == pytest.approx(1.75)
    assert capability(0.5, 0.6, 0.3, least_gap=0.01) == pytest.approx(
        1 / 3
    )  # (.5 - .6) / (.3 - .6), the order reversed
    assert interpolate(1.75, np.array([[0.2, 0.6], [0.1, 0.9]])).tolist() == pytest.approx([0.9, 1.0])
    assert interpolate(-1.0, np.array([[0.2, 0.6]])).tolist() == [0.0]


def test_equal_references_on_a_batch_do_not_poison_the_average() -> None:
    """Trinity's gap + 1e-6 makes 149,999 of this; ours leaves the coefficient as it was."""
    bots = rw.BOTS(pool_of([[0.35, 0.35], [0.2, 0.8]]))
    tell(bots, {"p0": 4})
    bots.ask(1)
    assert "capability" not in bots.metrics()
    assert bots.posterior()[0][1] == pytest.approx(1.0)


@given(
    forgetting=st.floats(0.01, 0.99),
    rho=st.floats(0, 1),
    n=st.integers(1, 16),
    rolled=st.lists(st.booleans(), max_size=60),
)
def test_proposition_2_bounds_the_effective_sample_size(
    forgetting: float, rho: float, n: int, rolled: list[bool]
) -> None:
    alpha, beta = np.ones(1), np.ones(1)
    for t, direct in enumerate(rolled, start=1):
        s = np.array([float(n // 2)]) if direct else np.zeros(1)
        f = n - s if direct else np.zeros(1)
        pseudo = np.array([n * 0.3])
        shared: dict[str, Any] = {"prior": 1.0, "forgetting": forgetting, "implicit_weight": rho}
        alpha = bots_update(alpha, explicit=s, implicit=s if direct else pseudo, **shared)
        beta = bots_update(beta, explicit=f, implicit=f if direct else n - pseudo, **shared)
        reached = (1 - (1 - forgetting) ** t) / forgetting
        size = float(alpha[0] + beta[0])
        assert 2 + rho * n * reached - 1e-6 <= size <= 2 + n * reached + 1e-6


def test_proposition_2_limits_are_reached() -> None:
    """n0 = 2, n = 8, lambda = rho = .1: never rolled out 2 + 8 = 10, always 2 + 80 = 82."""
    bots = rw.BOTS(pool_of([[0.2, 0.8], [0.1, 0.5]]))
    for _ in range(200):
        tell(bots, {"p0": 4})
    sizes = np.add(*bots.posterior())
    assert sizes.tolist() == pytest.approx([82.0, 10.0], rel=1e-6)


def test_smaller_lambda_forgets_slower_as_equation_1_says() -> None:
    sizes = []
    for forgetting in (0.05, 0.5):
        bots = rw.BOTS(plain(1), forgetting=forgetting)
        for _ in range(100):
            tell(bots, {"p0": 4})
        sizes.append(float(np.add(*bots.posterior())[0]))
    assert sizes == pytest.approx([2 + 8 / 0.05, 2 + 8 / 0.5], rel=1e-2)


def test_kernel_evidence_is_a_similarity_weighted_mean() -> None:
    """Equations 8 and 9, tau = 1: from (1, 0) the similarities to (1, 0) and (0, 1) are e and 1: rate .75 e/(e+1)."""
    embedding = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    rates = kernel_rates(np.array([0.75, 0.0]), embedding, np.array([0, 1]), temperature=1.0, chunk=2)
    e = np.e
    assert rates.tolist() == pytest.approx([0.75 * e / (e + 1), 0.75 / (e + 1), 0.75 * e / (e + 1)])
    assert rates.min() >= 0  # and never outside the batch's own range: the kernel can't extrapolate
    assert rates.max() <= 0.75


def test_kernel_evidence_reaches_the_beliefs() -> None:
    pool = rw.PromptPool(ids=["p0", "p1"], columns={"embedding": [[1.0, 0.0], [1.0, 0.0]]})
    bots = rw.BOTS(pool, implicit="kernel")
    tell(bots, {"p0": 6})
    assert bots.posterior()[0][1] == pytest.approx(1 + 0.1 * 8 * 0.75)


def test_without_references_it_works_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        bots = rw.BOTS(plain(3))
    assert "reference_pass_rates" in caplog.text
    tell(bots, {"p0": 8})
    assert bots.posterior()[0].tolist() == pytest.approx([9.0, 1.0, 1.0])
    for implicit, column in (("interpolation", "reference_pass_rates"), ("kernel", "embedding")):
        with pytest.raises(rw.MissingColumnError, match=column):
            rw.BOTS(plain(3), implicit=implicit)  # type: ignore[arg-type]


@pytest.mark.parametrize("target", [0.5, 0.8])
def test_the_nearest_to_the_target_are_chosen_not_the_farthest(target: float) -> None:
    bots = rw.BOTS(plain(9), sampling="mean", target=target, forgetting=0.0)
    tell(bots, {f"p{i}": i for i in range(9)})
    mean = (1 + np.arange(9)) / 10
    expected = [f"p{i}" for i in np.argsort(np.abs(mean - target), kind="stable")[:3]]
    tickets = bots.ask(3)
    assert {t.prompt_id for t in tickets} == set(expected)
    assert [t.predicted for t in tickets] == pytest.approx([mean[int(t.prompt_id[1:])] for t in tickets])


def test_thompson_sampling_chooses_as_often_as_the_beliefs_say() -> None:
    """Beta(9, 1), Beta(5, 5), Beta(1, 1) after 8, 4 and no successes: against a plain Monte-Carlo of step 1 and 2."""
    bots = rw.BOTS(plain(3), seed=1, forgetting=0.0, rails=None)
    tell(bots, {"p0": 8, "p1": 4})
    counts = np.zeros(3)
    for _ in range(3000):
        (ticket,) = bots.ask(1)
        counts[int(ticket.prompt_id[1:])] += 1
        bots.tell([rw.Outcome(ticket.id, [])])
        bots.new_round()  # nothing was learnt, so only a new round draws anew
    rng = np.random.default_rng(0)
    draws = rng.beta([9.0, 5.0, 1.0], [1.0, 5.0, 1.0], size=(200_000, 3))
    expected = np.bincount(np.abs(draws - 0.5).argmin(axis=1), minlength=3) / 200_000
    assert counts / 3000 == pytest.approx(expected, abs=0.04)


def test_asking_one_at_a_time_is_asking_for_all_at_once() -> None:
    together, apart = (rw.BOTS(plain(50), seed=3, rails=None) for _ in range(2))
    for _ in range(4):
        a = together.ask(16, step=together.step + 1)
        step = apart.step + 1
        b = [apart.ask(1, step=step)[0] for _ in range(16)]
        assert [t.prompt_id for t in a] == [t.prompt_id for t in b]
        for curriculum, tickets in ((together, a), (apart, b)):
            curriculum.tell([rw.Outcome(t.id, [int(t.prompt_id[1:]) % 2, 0, 1]) for t in tickets])


def test_one_step_is_one_update_however_many_tells_it_took() -> None:
    one, many = (rw.BOTS(pool_of([[0.1 * i, 0.1 * i + 0.2] for i in range(8)]), seed=0) for _ in range(2))
    for bots, parts in ((one, 1), (many, 4)):
        tickets = bots.ask(4)
        outcomes = [rw.Outcome(t.id, [1, 0, int(t.prompt_id[1:]) % 2]) for t in tickets]
        for start in range(0, 4, 4 // parts):
            bots.tell(outcomes[start : start + 4 // parts])
    assert np.array_equal(one.posterior(), many.posterior())


def test_groups_of_one_and_partial_groups_count_what_they_have() -> None:
    """MoPPS's ternary precedence made every alpha and beta 8 with n = 1."""
    bots = rw.BOTS(plain(2))
    first, second = bots.ask(2, n_rollouts=8)
    bots.tell([rw.Outcome(first.id, [1]), rw.Outcome(second.id, [1, 0, 0])])
    alpha, beta = bots.posterior()
    by_id = {
        t.prompt_id: (alpha[bots.pool.slot(t.prompt_id)], beta[bots.pool.slot(t.prompt_id)]) for t in (first, second)
    }
    assert by_id == {first.prompt_id: (2.0, 1.0), second.prompt_id: (2.0, 3.0)}


def test_the_state_holds_everything_of_the_belief() -> None:
    """Trinity's selector forgets alpha, beta and the capability coefficient on resume."""
    rates = [[0.05 * i, 0.05 * i + 0.3] for i in range(12)]
    bots = rw.BOTS(pool_of(rates), seed=0)
    for _ in range(5):
        bots.tell([rw.Outcome(t.id, [1, int(t.prompt_id[1:]) % 2, 0]) for t in bots.ask(4)])
    again = rw.BOTS(pool_of(rates), seed=9)
    again.load_state_dict(json.loads(json.dumps(bots.state_dict())))
    assert np.array_equal(again.posterior(), bots.posterior())
    assert [t.prompt_id for t in again.ask(6)] == [t.prompt_id for t in bots.ask(6)]
    assert again.metrics() == bots.metrics()


@pytest.mark.parametrize(
    "options",
    [
        {"forgetting": 1.5},
        {"implicit_weight": -0.1},
        {"target": 2},
        {"momentum": float("nan")},
        {"sampling": "greedy"},
        {"implicit": "magic"},
        {"prior": 1.0},
        {"prior": (0.0, 1.0)},
        {"least_gap": 0.0},
        {"kernel_temperature": 0},
        {"kernel_temperature": "fitted"},
        {"features": "whitened"},
    ],
)
def test_bad_options_are_named(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(rw.ConfigError, match=name):
        rw.BOTS(**options)


def test_the_neutral_options_change_nothing() -> None:
    """The families, the draws and the adaptation are additions: spelt out, the defaults are the BOTS of the paper."""
    rates = [[0.05 * i, 0.05 * i + 0.3] for i in range(12)]
    spelt: dict[str, Any] = {"belief": "beta", "prior": (1.0, 1.0), "adaptive": False, "capability": "ratio"}
    one, two = rw.BOTS(pool_of(rates), seed=2), rw.BOTS(pool_of(rates), seed=2, draw="top", update="all", **spelt)
    for _ in range(5):
        a, b = one.ask(4), two.ask(4)
        assert [t.prompt_id for t in a] == [t.prompt_id for t in b]
        for bots, tickets in ((one, a), (two, b)):
            bots.tell([rw.Outcome(t.id, [1, int(t.prompt_id[1:]) % 2, 0]) for t in tickets])
    assert np.array_equal(one.posterior(), two.posterior())


@pytest.mark.parametrize("belief", ["beta", "gaussian", "dirichlet"])
def test_every_family_finds_the_prompts_near_the_target(belief: Any) -> None:
    """Rates 0, 1/16, ..., 1: after 40 steps of 8, most of what is asked for lies between .25 and .75."""
    bots, rng = rw.BOTS(plain(17), belief=belief, seed=0, rails="off"), np.random.default_rng(0)
    late: list[float] = []
    for step in range(40):
        tickets = bots.ask(4)
        p = np.array([int(t.prompt_id[1:]) / 16 for t in tickets])
        late += p.tolist() if step >= 20 else []
        groups = (rng.random((4, 8)) < p[:, None]).astype(float)
        bots.tell([rw.Outcome(t.id, g) for t, g in zip(tickets, groups, strict=True)])
    assert np.mean((np.array(late) >= 0.25) & (np.array(late) <= 0.75)) > 0.75  # 9 of 17 by chance


def test_told_only_updates_by_hand() -> None:
    """lambda .5: p0 told 2 of 4: .5 + .5 + 2 = 3; p1 told nothing stays, in the second step too."""
    bots = rw.BOTS(plain(2), forgetting=0.5, update="told")
    tell(bots, {"p0": 2, "p1": 3}, n=4)
    assert [p.tolist() for p in bots.posterior()] == [pytest.approx([3.0, 4.0]), pytest.approx([3.0, 2.0])]
    tell(bots, {"p0": 4}, n=4)
    assert [p.tolist() for p in bots.posterior()] == [pytest.approx([6.0, 4.0]), pytest.approx([2.0, 2.0])]


def test_an_adaptive_step_by_hand() -> None:
    """p0, Beta(1, 1): 8 of 8: E = .25; u^2 = 1/12, v = 1/6, chance = 1/12 + 1/48 = 5/48; lambda = .25 - 5/48 over .25.

    That is .58, so .5 from the next step on; this one's update takes the .1 given: alpha = 1 + 8. Then 0 of 8 with
    lambda .5: alpha = 4.5 + .5 = 5, beta = .5 + .5 + 8 = 9.
    """
    bots = rw.BOTS(plain(1), adaptive=True)
    tell(bots, {"p0": 8})
    assert [p.tolist() for p in bots.posterior()] == [pytest.approx([9.0]), pytest.approx([1.0])]
    tell(bots, {"p0": 0})
    assert bots.metrics()["forgetting"] == 0.5
    assert [p.tolist() for p in bots.posterior()] == [pytest.approx([5.0]), pytest.approx([9.0])]


@pytest.mark.parametrize(("acquisition", "first"), [("target", "p4"), ("variance", "p4"), ("uncertainty", "p9")])
def test_another_acquisition_on_the_same_belief(acquisition: Any, first: str) -> None:
    """p4 has Beta(5, 5), of rate and variance nearest the middle; p9, Beta(1, 1.5), is the least sure: sd
    sqrt(.4 * .6 / 3.5) = .26, against sqrt(.25 / 11) = .15 at most."""
    bots = rw.BOTS(plain(10), sampling="mean", acquisition=acquisition, forgetting=0.0, rails=None)
    tell(bots, {**{f"p{i}": i for i in range(9)}, "p4": 4})
    bots.columns["alpha"][9], bots.columns["beta"][9] = 1.0, 1.5
    assert bots.ask(1)[0].prompt_id == first


@pytest.mark.parametrize("capability", ["least-squares", "ratio"])
def test_what_was_told_may_all_have_left_the_pool(capability: Any) -> None:
    curriculum = rw.BOTS(make_pool(8), capability=capability, rails=None)
    tickets = curriculum.ask(2)
    curriculum.tell([rw.Outcome(t.id, [1, 1]) for t in tickets])
    curriculum.rebind(curriculum.pool.minus({t.prompt_id for t in tickets}))
    assert len(curriculum.ask(3)) == 3


@pytest.mark.parametrize("options", [{"candidate_multiplier": 4}, {"belief": "gaussian"}])
def test_not_strict_goes_on_with_other_options(options: dict[str, Any]) -> None:
    saved = rw.BOTS(make_pool(8), seed=0)
    saved.tell([rw.Outcome(t.id, [1, 0]) for t in saved.ask(4)])
    other = rw.BOTS(make_pool(8), seed=0, **options)
    with pytest.raises(rw.StateError, match="strict=False"):
        other.load_state_dict(saved.state_dict())
    other.load_state_dict(saved.state_dict(), strict=False)
    assert len(other.ask(8)) == 8
    assert other.metrics()["told"] == 4


@pytest.mark.parametrize(
    "look", [rw.BOTS().posterior, rw.MoPPS().posterior, rw.MaPP().posterior, rw.EmpiricalBayes().priors]
)
def test_a_belief_is_of_prompts(look: Callable[[], object]) -> None:
    with pytest.raises(rw.UnboundError, match="no prompts yet"):
        look()
