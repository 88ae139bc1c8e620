"""MaPP against numbers worked out by hand."""

import json
import math
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.acquisition import mixed_probability
from rollwise.testing import CurriculumConformance


def plain(n: int) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(n)])


def score(alpha: float, beta: float, rollouts: int) -> float:
    return float(mixed_probability(np.array([alpha]), np.array([beta]), rollouts)[0])


@pytest.mark.parametrize(
    ("alpha", "beta", "rollouts", "by_hand"),
    [
        (1.0, 1.0, 2, 1 / 3),  # p uniform: 1 - E[p^2] - E[(1-p)^2] = 1 - 1/3 - 1/3
        (1.0, 1.0, 8, 7 / 9),  # 1 - 2/9
        (2.0, 1.0, 3, 1 / 2),  # B(5,1) / B(2,1) = (1/5) / (1/2) = .4, B(2,4) / B(2,1) = (1/20) / (1/2) = .1
        (3.0, 1.0, 2, 3 / 10),  # 2 E[p(1-p)] = 2 * 3 * 1 / (4 * 5)
        (1.0, 1.0, 1, 0.0),  # a group of one is never mixed
    ],
)
def test_the_score_by_hand(alpha: float, beta: float, rollouts: int, by_hand: float) -> None:
    assert score(alpha, beta, rollouts) == pytest.approx(by_hand, abs=1e-12)
    assert score(beta, alpha, rollouts) == pytest.approx(by_hand, abs=1e-12)


def test_the_score_is_the_ratio_of_beta_functions() -> None:
    def log_beta(a: float, b: float) -> float:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

    rng = np.random.default_rng(0)
    for a, b, g in zip(rng.uniform(0.1, 50, 50), rng.uniform(0.1, 50, 50), rng.integers(2, 64, 50), strict=True):
        right, wrong = log_beta(a + g, b) - log_beta(a, b), log_beta(a, b + g) - log_beta(a, b)
        assert score(a, b, int(g)) == pytest.approx(1 - math.exp(right) - math.exp(wrong), abs=1e-9)


def test_the_score_of_what_is_nearly_certain_keeps_its_digits() -> None:
    """2 a b / ((a + b) (a + b + 1)) with a = 1e9 and b = 1e-6: 2e-15, where 1 - B / B has no digit left."""
    assert score(1e9, 1e-6, 2) == pytest.approx(2e-15, rel=1e-6)
    assert score(1e-6, 1e9, 2) == pytest.approx(2e-15, rel=1e-6)
    assert 0.0 <= score(1e-300, 1e300, 64) < 1e-300


def test_the_belief_is_mopps() -> None:
    """lambda .5, 6 of 8: alpha = .5 + .5 + 6 = 7, beta = 3; then 2 of 8: 3.5 + .5 + 2 and 1.5 + .5 + 6."""
    mapp = rw.MaPP(plain(1), forgetting=0.5)
    for k, expected in ((6, [7.0, 3.0]), (2, [6.0, 8.0])):
        mapp.tell([rw.Outcome(t.id, [1.0] * k + [0.0] * (8 - k)) for t in mapp.ask(1)])
        assert [float(x[0]) for x in mapp.posterior()] == pytest.approx(expected)


def test_the_defaults_are_the_papers() -> None:
    """Appendix B.2: lambda .5, Beta(1, 1), candidates 8 times the batch."""
    mapp = rw.MaPP(plain(1))
    for _ in range(2):
        mapp.tell([rw.Outcome(t.id, [1.0] * 6 + [0.0] * 2) for t in mapp.ask(1)])
    assert [float(x[0]) for x in mapp.posterior()] == pytest.approx([0.5 * 7 + 0.5 + 6, 0.5 * 3 + 0.5 + 2])
    assert mapp.options["candidate_multiplier"] == 8


def test_only_those_rolled_out_are_updated() -> None:
    mapp = rw.MaPP(plain(3), forgetting=0.5)
    mapp.tell([rw.Outcome(mapp.ask(1)[0].id, [1, 1, 0, 0])])
    assert sorted(mapp.posterior()[0].tolist()) == [1.0, 1.0, 3.0]


def test_prompts_are_drawn_in_proportion_to_the_score() -> None:
    """G = 2: Beta(1, 1) scores 1/3 and Beta(9, 1) 18/110, so the first comes first in .6707 of the draws."""
    first = 0
    for seed in range(1000):
        mapp = rw.MaPP(plain(2), seed=seed, group_size=2)
        mapp.belief.parameters[0][1] = 9.0
        first += mapp.ask(1)[0].prompt_id == "p0"
    assert first / 1000 == pytest.approx(0.6707, abs=0.05)


def test_the_group_size_is_that_of_ask() -> None:
    """Beta(1, 1): 1 - 2 / (G + 1)."""
    mapp = rw.MaPP(plain(4))
    for asked, rollouts in ((None, 8), (2, 2), (3, 3), (None, 3)):
        mapp.ask(1, n_rollouts=asked)
        assert mapp.scores(None).tolist() == pytest.approx([1 - 2 / (rollouts + 1)] * 4)


def test_scores_that_are_kept_are_those_of_the_beliefs() -> None:
    mapp, rng = rw.MaPP(plain(30), forgetting=0.3, candidate_multiplier=None), np.random.default_rng(0)
    for _ in range(6):
        mapp.tell([rw.Outcome(t.id, rng.integers(0, 2, 4)) for t in mapp.ask(5, n_rollouts=4)])
    mapp.ask(1)
    assert mapp.scores(None).tolist() == mixed_probability(*mapp.belief.parameters, 4).tolist()


def test_a_lane_of_a_mixture_knows_the_group_size() -> None:
    mixture = rw.Mixture(plain(4), lanes={"mapp": (1.0, rw.MaPP())}, rails=None)
    mixture.ask(1, n_rollouts=3)
    assert mixture.children["mapp"].rollouts == 3  # type: ignore[attr-defined]


def test_a_resume_goes_on_with_the_group_size() -> None:
    mapp = rw.MaPP(plain(20), seed=3)
    mapp.tell([rw.Outcome(t.id, [1, 0, 0]) for t in mapp.ask(5, n_rollouts=3)])
    mapp.ask(3, n_rollouts=3)
    other = rw.MaPP(plain(20), seed=3)
    other.load_state_dict(json.loads(json.dumps(mapp.state_dict())))
    assert [t.prompt_id for t in other.ask(6)] == [t.prompt_id for t in mapp.ask(6)]


class TestMaPP(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.MaPP(pool, forgetting=0.2, **core)


class TestMaPPOfCandidates(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.MaPP(pool, candidate_multiplier=2, **core)
