"""What a batch implies of other prompts: BOTS, section 3.3 and appendix E.2."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollwise as rw
from rollwise.estimators import Interpolation, Kernel, capability, capability_by_least_squares, kernel_rates


def test_least_squares_by_hand() -> None:
    """Gaps .6 and .2, rates .3 and 0 above the weak: (.6 * .3 + .2 * 0) / (.36 + .04) = .45; the ratio says .15/.4."""
    references = np.array([[0.2, 0.8], [0.5, 0.7]])
    rates = np.array([0.5, 0.5])
    assert capability_by_least_squares(rates, references, least_gap=0.01) == pytest.approx(0.45)
    assert capability(0.5, 0.35, 0.75, least_gap=0.01) == pytest.approx(0.375)


def test_least_squares_is_the_minimum() -> None:
    rng = np.random.default_rng(0)
    references, rates = rng.random((30, 2)), rng.random(30)
    weak, gap = references[:, 0], references[:, 1] - references[:, 0]
    found = capability_by_least_squares(rates, references, least_gap=0.01)
    grid = np.linspace(-2, 2, 40_001)
    errors = ((rates - weak - grid[:, None] * gap) ** 2).sum(axis=1)
    assert found == pytest.approx(grid[errors.argmin()], abs=2e-4)


@pytest.mark.parametrize("gap", [0.0, 0.0099])
def test_no_gap_says_nothing(gap: float) -> None:
    """A gap of .01 is the least, of the mean for the ratio, root mean squared for least squares."""
    references = np.array([[0.3, 0.3 + gap]] * 2)
    assert capability(0.5, 0.3, 0.3 + gap, least_gap=0.01) is None
    assert capability_by_least_squares(np.array([0.5, 0.5]), references, least_gap=0.01) is None
    assert capability_by_least_squares(np.array([0.5, 0.5]), references + [[0.0, 0.011]], least_gap=0.01) is not None


@given(st.floats(-3, 3), st.integers(1, 20), st.integers(0, 9))
def test_a_policy_on_the_line_is_found_by_both(mu: float, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    weak = rng.random(n) * 0.5
    references = np.stack([weak, weak + 0.1 + 0.4 * rng.random(n)], axis=1)
    rates = weak + mu * (references[:, 1] - weak)
    assert capability_by_least_squares(rates, references, least_gap=0.01) == pytest.approx(mu, abs=1e-9)
    assert capability(rates.mean(), *references.mean(axis=0), least_gap=0.01) == pytest.approx(mu, abs=1e-9)


def test_the_capability_has_momentum_and_the_first_batch_starts_it() -> None:
    """mu = .5, then 1 with gamma .9: .55. A batch without a gap leaves it."""
    source = Interpolation(
        np.array([[0.2, 0.8], [0.4, 0.4], [0.1, 0.5]]), momentum=0.9, least_gap=0.01, least_squares=False
    )
    first = np.array([0])
    assert source.before(first) is None
    assert source.rates(np.array([1]), np.array([0.9])) is None
    source.settle(first, np.array([0.5]))
    assert source.capability == pytest.approx(0.5)
    assert source.rates(first, np.array([0.8])) == pytest.approx([0.2 + 0.55 * 0.6, 0.4, 0.1 + 0.55 * 0.4])
    assert source.before(np.array([2])) == pytest.approx([0.3])  # without the batch now under way
    source.settle(first, np.array([0.8]))
    source.settle(np.array([1]), np.array([0.9]))
    assert source.capability == pytest.approx(0.55)


def test_bots_by_least_squares() -> None:
    """p0, p1 as in the first test: mu .45; p2 between .1 and .5 is implied .28, of 2 rollouts, weight .1: 1.056."""
    pool = rw.PromptPool(ids=["p0", "p1", "p2"], columns={"reference_pass_rates": [[0.2, 0.8], [0.5, 0.7], [0.1, 0.5]]})
    bots = rw.BOTS(pool, capability="least-squares")
    bots.tell([rw.Outcome(t.id, [] if t.prompt_id == "p2" else [1.0, 0.0]) for t in bots.ask(3)])
    assert bots.posterior()[0][2] == pytest.approx(1.056)


def test_the_kernel_does_not_overflow_and_does_not_mind_its_chunks() -> None:
    """Equation 9 at tau = .001: exponents of 1000 and more; all weight goes to the nearest."""
    rng = np.random.default_rng(0)
    embedding = np.eye(5)[rng.integers(0, 5, 40)]
    batch = np.array([int(np.flatnonzero(embedding[:, i])[0]) for i in range(5)])
    rates = np.array([0.0, 0.25, 0.5, 0.75, 1.0])
    expected = rates[embedding.argmax(axis=1)]
    for chunk in (1, 7, 1000):
        found = kernel_rates(rates, embedding, batch, temperature=0.001, chunk=chunk)
        assert found == pytest.approx(expected)
    assert Kernel(embedding, temperature=1.0).before(batch) is None


def test_a_kernel_over_many_prompts_takes_fewer_references() -> None:
    """1000 evaluations over 100 prompts leave 10 of the 100 references: every tenth in the order of rates."""
    embedding = np.zeros((100, 2))
    rates = np.arange(100) / 100.0
    few = Kernel(embedding, temperature=1.0, most=1000)  # 1000 / 100 prompts
    assert few.references == 10
    assert few.rates(np.arange(100), rates).tolist() == pytest.approx([0.45] * 100)  # 0, .1, ..., .9
    all_of_them = Kernel(embedding, temperature=1.0)
    assert all_of_them.rates(np.arange(100), rates).tolist() == pytest.approx([0.495] * 100)
