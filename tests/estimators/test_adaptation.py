"""Self-adaptive lambda and rho (BOTS, appendix E.4.2), by the rule that `Adaptation` gives."""

import json
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.estimators import Adaptation, ImplicitEvidence, drift_share


def learn(adaptation: Adaptation, rate: float, mean: float, sd: float, count: float, implied: float | None) -> None:
    adaptation.learn(
        np.array([rate]),
        np.array([count]),
        mean=np.array([mean]),
        sd=np.array([sd]),
        variance=np.array([mean * (1.0 - mean) - sd**2]),
        implied=None if implied is None else np.array([implied]),
    )


def test_two_steps_by_hand() -> None:
    """rho_0 = .2; the first step starts the averages.

    1: rate .9, belief .5 with sd .1, 4 rollouts: E = .16; v = .25 - .01 = .24; chance = .01 + .06 = .07;
       lambda = .09 / .16 = .5625, at most .5. Implied .7: E~ = .04; rho = .2 * .32 / .2 = .32.
    2: rate .4, belief .5, the same: squared error .01, E = .144 + .001 = .145; chance stays .07; lambda = .075 / .145.
       Implied 0: .16; E~ = .036 + .016 = .052; rho = .2 * .29 / .197.
    """
    adaptation = Adaptation(forgetting=0.1, implicit_weight=0.2, adaptive=True)
    learn(adaptation, 0.9, 0.5, 0.1, 4, 0.7)
    assert adaptation.forgetting == 0.5
    assert adaptation.implicit_weight == pytest.approx(0.32)
    learn(adaptation, 0.4, 0.5, 0.1, 4, 0.0)
    assert adaptation.forgetting == 0.5  # .517
    assert adaptation.averages == pytest.approx({"error": 0.145, "chance": 0.07, "implied_error": 0.052})
    assert adaptation.implicit_weight == pytest.approx(0.2 * 0.29 / 0.197)


def test_lambda_between_its_limits_by_hand() -> None:
    """E = .0625, chance = .01 + .24/8 = .04: .0225 / .0625 = .36. Then no error at all: nothing to explain, .01."""
    adaptation = Adaptation(forgetting=0.1, implicit_weight=0.1, adaptive=True)
    learn(adaptation, 0.75, 0.5, 0.1, 8, None)
    assert adaptation.forgetting == pytest.approx(0.36)
    assert adaptation.implicit_weight == 0.1  # nothing was implied
    for _ in range(20):
        learn(adaptation, 0.5, 0.5, 0.1, 8, None)
    assert adaptation.forgetting == 0.01


@pytest.mark.parametrize(("prior", "n"), [((1.0, 1.0), 1), ((1.0, 1.0), 8), ((6.0, 2.0), 4), ((0.5, 3.0), 16)])
def test_chance_is_the_whole_variance_of_a_rate_that_does_not_drift(prior: tuple[float, float], n: int) -> None:
    """Var(k / n) of a Beta-binomial: with p drawn from the belief and k from p, E is chance, and lambda is small."""
    rng = np.random.default_rng(0)
    alpha, beta = prior
    mean = alpha / (alpha + beta)
    sd = np.sqrt(mean * (1 - mean) / (alpha + beta + 1))
    rates = rng.binomial(n, rng.beta(alpha, beta, 200_000)) / n
    adaptation = Adaptation(forgetting=0.1, implicit_weight=0.0, adaptive=True)
    same = np.ones(len(rates))
    variance = (mean * (1 - mean) - sd**2) * same
    adaptation.learn(rates, n * same, mean=mean * same, sd=sd * same, variance=variance, implied=None)
    assert adaptation.averages["chance"] == pytest.approx(adaptation.averages["error"], rel=0.02)


def test_chance_of_continuous_rewards_is_what_their_own_belief_expects() -> None:
    """Gaussian, sigma_0 = .5, sigma = .25, 4 rollouts: u^2 + sigma^2 / 4 = .25 + .0625 / 4 = .265625."""
    bots = rw.BOTS(rw.PromptPool(ids=["a"]), belief="gaussian", reward_sd=0.25, adaptive=True)
    bots.tell([rw.Outcome(t.id, [0.5, 0.75, 0.5, 0.25]) for t in bots.ask(1)])
    bots.ask(1)
    assert bots.adaptation.averages["chance"] == pytest.approx(0.265625)


def test_the_share_of_drift() -> None:
    assert drift_share(0.5, 0.25) == 0.5
    assert drift_share(0.1, 0.2) == drift_share(0.0, 0.0) == 0.0


def test_off_by_default_nothing_moves() -> None:
    bots = rw.BOTS(rw.PromptPool(ids=["a"]))
    assert bots.options["adaptive"] is False
    for _ in range(5):
        bots.tell([rw.Outcome(t.id, [1.0]) for t in bots.ask(1)])
    assert (bots.adaptation.forgetting, bots.adaptation.implicit_weight) == (0.1, 0.1)
    assert not {"forgetting", "implicit_weight"} & set(bots.metrics())


def world(reference: Any, rates: Any, steps: int = 60, **options: Any) -> rw.BOTS:
    """BOTS on 40 prompts whose rates at a step are `rates(step)` (40,), with 8 rollouts each."""
    pool = rw.PromptPool(ids=[f"p{i}" for i in range(40)], columns={"reference_pass_rates": reference})
    bots = rw.BOTS(pool, adaptive=True, rails="off", **options)
    rng = np.random.default_rng(0)
    for step in range(steps):
        tickets = bots.ask(10)
        p = rates(step)[[int(t.prompt_id[1:]) for t in tickets]]
        groups = rng.random((10, 8)) < p[:, None]
        bots.tell([rw.Outcome(t.id, g.astype(float)) for t, g in zip(tickets, groups, strict=True)])
    return bots


def test_drift_raises_lambda_and_standing_still_lowers_it() -> None:
    weak = np.linspace(0.05, 0.6, 40)
    reference = np.stack([weak, weak + 0.3], axis=1).tolist()
    still = world(reference, lambda step: weak + 0.1, implicit="none")
    moving = world(reference, lambda step: np.clip(weak + 0.4 * (step // 6 % 2), 0, 1), implicit="none")
    assert still.metrics()["forgetting"] < 0.1 < moving.metrics()["forgetting"]
    assert moving.metrics()["forgetting"] <= 0.5


def test_a_good_implicit_estimator_raises_rho_and_a_bad_one_lowers_it() -> None:
    """The rates are halfway between the references, or the opposite of it."""
    weak = np.linspace(0.0, 0.6, 40)
    reference = np.stack([weak, weak + 0.4], axis=1).tolist()
    good = world(reference, lambda step: weak + 0.2, steps=20, forgetting=0.5)
    bad = world(reference, lambda step: weak[::-1] + 0.2, steps=20, forgetting=0.5)
    assert bad.metrics()["implicit_weight"] < 0.1 < good.metrics()["implicit_weight"] <= 1.0


@pytest.mark.parametrize(("solved", "rho"), [([8, 8, 0, 0], 0.2), ([8, 0, 8, 0], 0.04)])
def test_rho_follows_the_kernel(solved: list[int], rho: float) -> None:
    """Two pairs of twins, each predicted by the other. Beliefs say .5 of all: E = .25.

    Alike, E~ = 0 and rho = .1 * 2 * .25 / .25; opposite, E~ = 1 and rho = .1 * 2 * .25 / 1.25.
    """
    pool = rw.PromptPool(ids=["p0", "p1", "p2", "p3"], columns={"embedding": [[1.0, 0.0]] * 2 + [[0.0, 1.0]] * 2})
    for implicit in ("kernel", ["kernel", "kernel"]):
        bots = rw.BOTS(pool, implicit=implicit, adaptive=True, kernel_temperature=0.01)
        groups = {f"p{i}": [1.0] * k + [0.0] * (8 - k) for i, k in enumerate(solved)}
        bots.tell([rw.Outcome(t.id, groups[t.prompt_id]) for t in bots.ask(4)])
        bots.ask(1)
        assert bots.metrics()["implicit_weight"] == pytest.approx(rho)


def test_a_source_without_predictions_is_refused_where_they_are_compared() -> None:
    class Mean(ImplicitEvidence):
        def bind(self, pool: rw.PromptPool, seed: int) -> None:
            self.n = len(pool)

        def rates(self, slots: np.ndarray, rates: np.ndarray) -> np.ndarray:
            return np.full(self.n, rates.mean())

    pool = rw.PromptPool(ids=["a"])
    with pytest.raises(rw.ConfigError, match=r"Mean makes none: implement its `before` or `held_out`"):
        rw.BOTS(pool, implicit=Mean(), adaptive=True)
    assert len(rw.BOTS(pool, implicit=Mean(), adaptive="score").ask(1)) == 1


def test_the_coefficients_go_on_after_a_resume() -> None:
    weak = np.linspace(0.0, 0.6, 40)
    reference = np.stack([weak, weak + 0.4], axis=1).tolist()
    bots = world(reference, lambda step: weak, steps=7)
    again = rw.BOTS(bots.pool, adaptive=True, rails="off")
    again.load_state_dict(json.loads(json.dumps(bots.state_dict())))
    assert again.adaptation.averages == bots.adaptation.averages
    for curriculum in (bots, again):
        curriculum.tell([rw.Outcome(t.id, [1.0, 0.0]) for t in curriculum.ask(10)])
        curriculum.ask(1)
    assert again.metrics() == bots.metrics()
    assert again.adaptation.averages == bots.adaptation.averages


def test_loaded_where_it_is_off_the_given_coefficients_hold() -> None:
    weak = np.linspace(0.0, 0.6, 40)
    bots = world(np.stack([weak, weak + 0.4], axis=1).tolist(), lambda step: weak, steps=7)
    fixed = rw.BOTS(bots.pool, forgetting=0.3, rails="off")
    fixed.load_state_dict(bots.state_dict(), strict=False)
    assert (fixed.adaptation.forgetting, fixed.adaptation.implicit_weight) == (0.3, 0.1)


def test_coefficients_by_the_score() -> None:
    """Gains .2, .1 and -.2, averaged with momentum .5: .2, .15 and -.025, of .2 at most, so f = 1, .75 and 0.

    lambda = .01 + f (.1 - .01), rho = .4 f.
    """
    bots = rw.BOTS(rw.PromptPool(ids=["a"]), adaptive="score", forgetting=0.1, implicit_weight=0.4)
    found = []
    for score in (0.2, 0.4, 0.5, 0.3):
        bots.note_score(score)
        found.append((bots.adaptation.forgetting, bots.adaptation.implicit_weight))
    assert found == [(0.1, 0.4), pytest.approx((0.1, 0.4)), pytest.approx((0.0775, 0.3)), pytest.approx((0.01, 0.0))]


@pytest.mark.parametrize(
    "curriculum",
    [
        rw.BOTS(rw.PromptPool(ids=["a"]), adaptive="score"),
        rw.GaussianTarget(rw.PromptPool(ids=["a"], columns={"pass_rate": [0.5]}), patience=1),
    ],
    ids=["BOTS", "GaussianTarget"],
)
@pytest.mark.parametrize("score", [float("nan"), float("inf"), None])
def test_a_score_that_is_no_number_is_refused(curriculum: rw.Curriculum, score: Any) -> None:
    """An evaluation without rewards has none. It would stay in the averages, and no state could be saved any more."""
    for known in (0.25, 0.5):
        curriculum.note_score(known)
    before = json.dumps(curriculum.state_dict(), allow_nan=False)
    with pytest.raises(rw.ConfigError, match="the score of an evaluation must be a number"):
        curriculum.note_score(score)
    assert json.dumps(curriculum.state_dict(), allow_nan=False) == before
