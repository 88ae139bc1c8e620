"""PAC against numbers worked out by hand."""

import json
from typing import Any

import numpy as np
import pytest

import rollwise as rw
from rollwise.curricula.pac import PAC, slopes, updated_belief, utilities
from rollwise.testing import CurriculumConformance


def pool_of(sizes: dict[str, int]) -> rw.PromptPool:
    names = [name for name, n in sizes.items() for _ in range(n)]
    return rw.PromptPool(ids=[f"{name}{i}" for name, n in sizes.items() for i in range(n)], columns={"category": names})


def told(pac: PAC, k: int, rewards: dict[str, list[float]]) -> list[rw.Ticket]:
    tickets = pac.ask(k)
    pac.tell([rw.Outcome(t.id, rewards[t.prompt_id[0]]) for t in tickets])
    return tickets


def test_the_slope_by_hand() -> None:
    """The places are 0, 1/3, 2/3, 1. Of 0, 1/3, 1: deviations -4/9, -1/9, 5/9; with 0, .5, .5: (2/9) / (42/81) = 3/7.

    From 1 to 0 between 1/3 and 1 it is -1.5. One point, or none: 0.
    """
    n = np.nan
    rewards = np.array([[0.0, 0.5, n, 0.5], [n, n, n, 1.0], [n, 1.0, n, 0.0], [n] * 4])
    assert slopes(rewards).tolist() == pytest.approx([3 / 7, 0.0, -1.5, 0.0])


def test_the_utility_by_hand() -> None:
    """sum |k| = .04, so s_prog is .75, -.25 and 0: 1.75 * .5, .75 * .4, 1 * .2. Rounding in a slope is no progress."""
    assert utilities(np.array([0.5, 0.4, 0.2]), np.array([0.03, -0.01, 0.0])).tolist() == pytest.approx(
        [0.875, 0.3, 0.2]
    )
    assert utilities(np.array([0.5, 0.4]), np.zeros(2)).tolist() == [0.5, 0.4]
    assert utilities(np.array([0.5, 0.4]), np.array([1e-17, 0.0])).tolist() == pytest.approx([0.5, 0.4], abs=1e-7)


def test_the_belief_by_hand() -> None:
    """Half the equal share at noise .5: precision 1 + .5 / .25 = 3, mean (1 + 2 * .9) / 3; the variance grows after it.

    What was not rolled out keeps its mean, and its variance is 1 + 1^2.
    """
    mean, variance = updated_belief(
        np.ones(2), np.ones(2), np.array([0.9, 0.9]), np.array([0.5, 0.0]), drift=1.0, noise_sd=0.5
    )
    assert mean.tolist() == pytest.approx([2.8 / 3, 1.0])
    assert variance.tolist() == pytest.approx([1 / 3 + 1, 2.0])


def test_two_steps_by_hand() -> None:
    """Centred pay, one prompt each, the paper's defaults: prior N(0, 1), precision 1 a step, delta^2 = .02.

    Step 1: a has .5 (mean reward .5), b 0 (0): u = (.5, 0), means .5 / 2 and 0, variance 1 / 2 + .02 = .52.
    Step 2: a [1,1,1,0] and b [1,0,0,0]: both .375, so s_adv = .4375 and .1875; the slopes are equal, s_prog = .5:
    u = .65625 and .28125, precision 1 / .52 + 1 = 1.52 / .52, means (.25 + .52 u_a) / 1.52 and .52 u_b / 1.52.
    """
    pac = PAC(pool_of({"a": 1, "b": 1}), advantage="centred", cold_steps=0, rails=None)
    told(pac, 2, {"a": [1, 0, 1, 0], "b": [0, 0, 0, 0]})
    assert pac.values() == pytest.approx({"a": 0.25, "b": 0.0})
    told(pac, 2, {"a": [1, 1, 1, 0], "b": [1, 0, 0, 0]})
    assert pac.values() == pytest.approx({"a": 0.59125 / 1.52, "b": 0.14625 / 1.52})
    pac.ask(1)
    assert pac.belief[1].tolist() == pytest.approx([0.52 / 1.52 + 0.02] * 2)


def test_the_precision_is_the_share_of_the_batch_over_an_equal_share() -> None:
    """Four categories and a batch of 8: the equal share is 2 groups. One with 3 has 1.5, and u = 1: 1.5 / 2.5."""
    pac = PAC(pool_of(dict.fromkeys("abcd", 8)), rails=None)
    of_category: dict[str, list[rw.Ticket]] = {name: [] for name in "abcd"}
    for ticket in pac.ask(32):
        of_category[ticket.prompt_id[0]].append(ticket)
    counts = {"a": 3, "b": 1, "c": 4, "d": 0}
    pac.tell([rw.Outcome(t.id, [1, 0]) for name, n in counts.items() for t in of_category[name][:n]])
    assert pac.values() == pytest.approx({"a": 1.5 / 2.5, "b": 0.5 / 1.5, "c": 2 / 3, "d": 0.0})


def test_the_window_forgets() -> None:
    """Centred pay .5, .375, 0 in a window of 2: s_adv = .1875, and the slope is that of the last two: .75 to 1."""
    pac = PAC(pool_of({"a": 1}), advantage="centred", window=2)
    for rewards in ([1, 0, 1, 0], [1, 1, 1, 0], [1, 1, 1, 1]):
        told(pac, 1, {"a": rewards})
    pac.ask(1)
    pay, mean = pac.seen
    assert (pay.tolist(), mean.tolist()) == ([[0.375, 0.0]], [[0.75, 1.0]])


def test_the_window_is_of_steps_not_of_the_steps_that_had_the_category() -> None:
    """Window 2, no drift, two categories, one group a step: precision 2. a pays .5 at step 1, .375 at step 4.

    Step 1: mean 2 * .5 / 3 = 1/3, precision 3. At step 4 the window is steps 3 and 4, so s_adv is .375 and there is no
    slope: (3 / 3 + 2 * .375) / 5 = .35.
    """
    pac = PAC(pool_of({"a": 60, "b": 60}), advantage="centred", window=2, drift=0.0, rails=None)
    for category, rewards in (("a", [1, 0]), ("b", [1, 0]), ("b", [1, 0]), ("a", [1, 1, 1, 0])):
        first = next(t for t in pac.ask(20) if t.prompt_id[0] == category)
        pac.tell([rw.Outcome(first.id, rewards)])
    assert pac.values()["a"] == pytest.approx(0.35)


def test_the_first_steps_are_uniform_over_the_categories() -> None:
    pac = PAC(pool_of({"a": 1, "b": 99}), cold_steps=2, prior_sd=1e-3, drift=0.0, rails=None)
    for _ in range(2):
        (ticket,) = pac.ask(1)
        assert ticket.propensity == pytest.approx({"a": 0.5, "b": 0.5 / 99}[ticket.prompt_id[0]])
        assert ticket.lane == f"task:{ticket.prompt_id[0]}"
        pac.tell([rw.Outcome(ticket.id, [1, 0])])
    assert pac.ask(1)[0].propensity is None  # Thompson: not known


def test_thompson_draws_by_the_beliefs() -> None:
    """N(.5, .3^2) and N(0, .4^2): P(a > b) = Phi(.5 / .5) = .8413; each place of the batch has a draw of its own."""
    pac = PAC(pool_of({"a": 2000, "b": 2000}), cold_steps=0, rails=None, seed=1)
    pac.belief = np.array([[0.5, 0.0], [0.09, 0.16]])
    drawn = [t.prompt_id[0] for t in pac.ask(1500)]
    assert drawn.count("a") / 1500 == pytest.approx(0.8413, abs=0.04)


def test_a_category_with_progress_beats_one_with_the_same_advantage_and_none() -> None:
    """Both groups are always half right in pay; a's reward rises, b's stands still."""
    pac = PAC(pool_of({"a": 8, "b": 8}), rails=None, advantage="centred", cold_steps=100)
    for i in range(10):
        told(pac, 16, {"a": [0.05 * i, 0.05 * i + 0.5], "b": [0.25, 0.75]})
    assert pac.values()["a"] == pytest.approx(2 * pac.values()["b"], rel=0.1)


def test_a_resume_goes_on_the_same_and_finds_categories_by_name() -> None:
    pac = PAC(pool_of({"a": 5, "b": 5}), seed=2, cold_steps=1)
    rewards: dict[str, list[float]] = {"a": [1, 0, 0, 0], "b": [1, 1, 0, 0], "c": [0, 0]}
    for _ in range(4):
        told(pac, 4, rewards)
    pac.ask(1)  # the step is done: a category that joins changes what an equal share is
    state = json.loads(json.dumps(pac.state_dict()))
    wider = PAC(pool_of({"b": 5, "c": 2, "a": 5}), seed=2, cold_steps=1)
    wider.load_state_dict(state)
    assert wider.values() == pytest.approx({**pac.values(), "c": 0.0})


@pytest.mark.parametrize("wrong", [{"window": 1}, {"noise_sd": 0.0}, {"cold_steps": -1}, {"drift": -0.1}])
def test_wrong_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(rw.ConfigError, match=next(iter(wrong))):
        PAC(**wrong)


class TestPAC(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.PAC(pool, cold_steps=2, window=3, **core)


class TestPACOfToldAdvantages(CurriculumConformance):
    def make(self, pool: rw.PromptPool | None = None, **core: Any) -> rw.Curriculum:
        return rw.PAC(pool, advantage="told", cold_steps=1, **core)
