"""GPS and its diversity against numbers worked out by hand."""

import json
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.curricula.families.diversity import Diversity
from rollwise.curricula.gps import GPS, LatentRidge, shared_error
from rollwise.judges import Prompts
from rollwise.testing import CurriculumConformance

SQUARE = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]


def pool_of(vectors: list[list[float]]) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(len(vectors))], columns={"embedding": vectors})


def test_the_shared_error_by_hand() -> None:
    """8 rollouts of error .5 and 8 of .25 against 8 of 0: 6 / 24."""
    assert shared_error(np.array([0.5, 0.25]), np.array([8, 8]), 8.0) == 0.25


def test_the_latent_is_what_the_ridge_misses_of_the_last_batch() -> None:
    """A ridge so stiff that it always says 1/2: pass rates .75 and 1 leave (.25 * 4 + .5 * 4) / (8 + 4)."""
    pool = pool_of(SQUARE)
    judge = LatentRidge(hidden=0, ridge=1e9, latent_prior=4.0)
    judge.bind(pool, seed=0)
    judge.learn(Prompts(pool, np.array([0, 1])), np.array([0.75, 1.0]), np.zeros(2), np.array([4, 4]))
    assert judge.latent == pytest.approx(0.25, abs=1e-6)
    assert judge.predict(Prompts(pool, np.array([2]))).tolist() == pytest.approx([0.75], abs=1e-6)


def test_the_greedy_choice_by_hand() -> None:
    """Scores .3, .2, .1, 0 on a square, lambda .1: p0 first; then p1 has .2 (distance 1), p2 .1 + .1 * 1 more.

    Distances to p0 are 1, 2, 1 less the common 1: p1 .2, p2 .1 + .1, p3 0. p1 comes before p2, as the first of equals.
    Then the mean of p0 and p1 is (.5, .5): p2 .1 + .05, p3 0 + .05.
    """
    diversity = Diversity(pool_of(SQUARE), "Test", weight=0.1)
    slots, scores = np.arange(4), np.array([0.3, 0.2, 0.1, 0.0])
    assert diversity.choose(slots, scores, 3).tolist() == [0, 1, 2]
    diversity = Diversity(pool_of(SQUARE), "Test", weight=0.15)
    assert diversity.choose(slots, scores, 2).tolist() == [0, 2]  # .1 + .15 > .2


def test_the_batches_before_count() -> None:
    """After a batch of p0 alone the mean before is half of (1, 0): of equal scores p2, opposite to it, comes first."""
    diversity = Diversity(pool_of(SQUARE), "Test", weight=0.1)
    diversity.choose(np.array([0]), np.zeros(1), 1)
    diversity.end_step()
    assert diversity.before.tolist() == pytest.approx([0.5, 0.0])
    assert diversity.choose(np.array([1, 2, 3]), np.zeros(3), 1).tolist() == [1]


def test_a_batch_asked_one_by_one_is_that_asked_at_once() -> None:
    diversity, at_once = (Diversity(pool_of(SQUARE), "Test", weight=0.15) for _ in range(2))
    slots, scores = np.arange(4), np.array([0.3, 0.2, 0.1, 0.0])
    first = diversity.choose(slots, scores, 1)
    rest = np.delete(slots, first)
    assert rest[diversity.choose(rest, scores[rest], 1)].tolist() == at_once.choose(slots, scores, 2).tolist()[1:]


def test_gps_takes_middling_prompts_that_lie_apart() -> None:
    """Pass rate 1 - x, the prompts of x = .5 lie on a circle in the other directions."""
    angles = np.linspace(0.0, 2 * np.pi, 12, endpoint=False)
    middling = [[0.5, np.cos(a), np.sin(a)] for a in angles]
    vectors = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], *middling]
    gps = GPS(pool_of(vectors), hidden=0, ridge=1e-3, candidate_multiplier=14, diversity=0.05)
    told = {"p0": [1, 1, 1, 1], "p1": [0, 0, 0, 0]}
    gps.tell([rw.Outcome(t.id, told.get(t.prompt_id, [1, 0])) for t in gps.ask(14)])
    tickets = gps.ask(2)
    first, second = (vectors[int(t.prompt_id[1:])] for t in tickets)
    assert first[0] == second[0] == 0.5
    assert np.dot(first[1:], second[1:]) < -0.5


@pytest.mark.parametrize("kind", [rw.Recommended, rw.GPS])
def test_a_resume_goes_on_the_same(kind: Any) -> None:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((40, 3)).tolist()

    def made() -> rw.Curriculum:
        return kind(pool_of(vectors), seed=3, diversity=0.3)  # type: ignore[no-any-return]

    def step(curriculum: rw.Curriculum, tickets: list[rw.Ticket]) -> list[str]:
        curriculum.tell(rw.Outcome(t.id, [1, int(t.prompt_id[1:]) % 2]) for t in tickets)
        return [t.prompt_id for t in curriculum.ask(4)]

    straight, resumed = made(), made()
    for _ in range(3):
        step(straight, straight.open_tickets())
    resumed.load_state_dict(json.loads(json.dumps(straight.state_dict())), new_incarnation=False)
    for _ in range(3):
        assert step(resumed, resumed.open_tickets()) == step(straight, straight.open_tickets())


def test_diversity_of_recommended_is_an_option() -> None:
    assert "diversity" not in rw.Recommended().options
    with pytest.raises(rw.MissingColumnError, match="diversity of Recommended needs"):
        rw.Recommended(rw.PromptPool(ids=["a"]), diversity=0.1)
    with pytest.raises(rw.ConfigError, match="candidate_multiplier"):
        rw.Recommended(diversity=0.1, candidate_multiplier=None)


class TestGPS(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.GPS(pool, candidate_multiplier=2, hidden=4, **core)


class TestRecommendedWithDiversity(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.Recommended(pool, diversity=0.2, **core)
