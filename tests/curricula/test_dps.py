"""DPS against numbers worked out by hand."""

import json
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.curricula.dps import DPS, PARTLY, SOLVED, UNSOLVED, transition_counts, transitions
from rollwise.testing import CurriculumConformance

SHOWS = {UNSOLVED: [0.0, 0.0], PARTLY: [1.0, 0.0], SOLVED: [1.0, 1.0]}


def plain(n: int) -> rw.PromptPool:
    return rw.PromptPool(ids=[f"p{i}" for i in range(n)])


def step(dps: rw.Curriculum, shown: dict[str, int]) -> None:
    """One step in which the prompts named show these states, and the others nothing."""
    tickets = dps.ask(len(dps.pool))
    dps.tell([rw.Outcome(t.id, SHOWS[shown[t.prompt_id]] if t.prompt_id in shown else []) for t in tickets])


def test_the_transitions_by_hand() -> None:
    """Columns (1, 2, 1), (1, 1, 2), (1, 1, 1) of sums 4, 4, 3."""
    phi = transitions(np.array([[[1.0, 1.0, 1.0], [2.0, 1.0, 1.0], [1.0, 2.0, 1.0]]]))[0]
    assert phi.ravel().tolist() == pytest.approx([1 / 4, 1 / 4, 1 / 3, 1 / 2, 1 / 4, 1 / 3, 1 / 4, 1 / 2, 1 / 3])


def test_the_expected_transition_by_hand() -> None:
    """Solved was seen: Phi(3, .) = (.25, .5, .25) times (.2, .6, .2) is (.05, .3, .05), of sum .4."""
    phi = np.array([[[0.5, 0.25, 0.25], [0.25, 0.25, 0.5], [0.25, 0.5, 0.25]]])
    counts = transition_counts(phi, np.array([[0.2, 0.6, 0.2]]), np.array([SOLVED]))[0]
    assert counts.tolist() == [[0.0] * 3, [0.0] * 3, pytest.approx([0.125, 0.75, 0.125])]


def test_two_steps_by_hand() -> None:
    """alpha_0 = 1, lambda = .7. p0 shows partly: its row of counts grows to 4/3, so Phi(partly, .) = (4/3) / (10/3).

    Then p0 shows partly again: the transition partly -> partly counts whole. alpha(partly, .) = .7 * 4/3 + .3 + (0, 1,
    0) = 1.2333, 2.2333, 1.2333; the column of partly sums to 4.2333: mu = 2.2333 / 4.2333. p1, without outcomes in
    the second step, is at 1.2333 / 3.2333.
    """
    dps = DPS(plain(2))
    step(dps, {"p0": PARTLY, "p1": PARTLY})
    dps.ask(1)
    assert dps.beliefs().tolist() == [pytest.approx([0.3, 0.4, 0.3])] * 2
    dps = DPS(plain(2))
    step(dps, {"p0": PARTLY, "p1": PARTLY})
    step(dps, {"p0": PARTLY})
    dps.ask(1)
    assert dps.beliefs()[0].tolist() == pytest.approx([1 / 4.233333, 2.233333 / 4.233333, 1 / 4.233333], abs=1e-6)
    assert dps.beliefs()[1].tolist() == pytest.approx([1 / 3.233333, 1.233333 / 3.233333, 1 / 3.233333], abs=1e-6)


@pytest.mark.parametrize(("state", "likely"), [(UNSOLVED, 0.3), (PARTLY, 0.4), (SOLVED, 0.3)])
def test_a_state_makes_itself_likely(state: int, likely: float) -> None:
    dps = DPS(plain(1))
    step(dps, {"p0": state})
    dps.ask(1)
    assert dps.beliefs()[0, PARTLY] == pytest.approx(likely)
    assert int(np.argmax(dps.beliefs()[0])) == state


def test_without_outcomes_the_belief_becomes_uniform_and_the_prompt_is_followed_no_longer() -> None:
    dps = DPS(plain(2), forgetting=0.5)
    step(dps, {"p0": SOLVED, "p1": SOLVED})
    for _ in range(32):  # .5^30 < 1e-9
        step(dps, {"p1": SOLVED})
    dps.ask(1)
    assert dps.beliefs()[0].tolist() == [1 / 3] * 3
    assert dps.metrics()["followed"] == 1.0


def test_the_partly_solved_come_first_and_the_solved_last() -> None:
    dps = DPS(plain(4), candidate_multiplier=None)
    for _ in range(3):
        step(dps, {"p0": SOLVED, "p1": PARTLY, "p2": UNSOLVED})
    ids = [t.prompt_id for t in dps.ask(4)]
    assert ids[:2] == ["p1", "p3"]


def test_graded_rewards_and_means() -> None:
    """All equal at .5 is unsolved (1 is solved), different is partly, and so is a mean that does not say which."""
    dps = DPS(plain(3))
    (a, b, c) = sorted(dps.ask(3), key=lambda t: t.prompt_id)
    dps.tell([rw.Outcome(a.id, [0.5, 0.5]), rw.Outcome(b.id, [0.5, 0.6]), rw.Outcome(c.id, mean=0.5, count=4)])
    dps.ask(1)
    assert dps.beliefs()[:, PARTLY].tolist() == pytest.approx([0.3, 0.4, 0.4])


def test_different_groups_of_one_step_are_partly_solved() -> None:
    dps = DPS(plain(1), expire_after=1)
    (late,) = dps.ask(1, step=1)
    (present,) = dps.ask(1, step=3)
    dps.tell([rw.Outcome(late.id, [1, 1]), rw.Outcome(present.id, [0, 0])])
    dps.ask(1)
    assert dps.beliefs()[0, PARTLY] == pytest.approx(0.4)


def test_a_resume_into_another_pool_finds_beliefs_by_id() -> None:
    dps, rng = DPS(plain(12), seed=3), np.random.default_rng(0)
    for _ in range(5):
        dps.tell([rw.Outcome(t.id, rng.integers(0, 2, 4)) for t in dps.ask(4)])
    dps.ask(1)
    other = DPS(rw.PromptPool(ids=[f"p{i}" for i in reversed(range(2, 14))]), seed=3)
    other.load_state_dict(json.loads(json.dumps(dps.state_dict())))
    kept = [f"p{i}" for i in range(2, 12)]
    ours, theirs = dps.pool.slots_of(kept), other.pool.slots_of(kept)
    assert other.beliefs(theirs).tolist() == dps.beliefs(ours).tolist()
    assert other.metrics()["followed"] == len(other.slots) <= 10


class TestDPS(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.DPS(pool, candidate_multiplier=2, **core)


class TestDPSOfThePool(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.DPS(pool, candidate_multiplier=None, forgetting=0.9, **core)
