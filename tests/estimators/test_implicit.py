"""What a batch implies of other prompts: BOTS, section 3.3 and appendix E.2."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollwise as rw
from rollwise.estimators import (
    Features,
    Interpolation,
    Kernel,
    capability,
    capability_by_least_squares,
    fitted_temperature,
    kernel_rates,
    layer_norm,
    unit_norm,
)


def pool_with(**columns: Any) -> rw.PromptPool:
    return rw.PromptPool(ids=list(map(str, range(len(next(iter(columns.values())))))), columns=columns)


def kernel_of(embedding: np.ndarray, **options: Any) -> Kernel:
    kernel = Kernel(**{"features": "given", **options})
    kernel.bind(pool_with(embedding=embedding), 0)
    return kernel


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
    source = Interpolation()
    source.bind(pool_with(reference_pass_rates=[[0.2, 0.8], [0.4, 0.4], [0.1, 0.5]]), 0)
    first = np.array([0])
    assert source.before(first) is None
    assert source.rates(np.array([1]), np.array([0.9])) is None
    source.settle(first, np.array([0.5]), np.array([4]))
    assert source.capability == pytest.approx(0.5)
    assert source.rates(first, np.array([0.8])) == pytest.approx([0.2 + 0.55 * 0.6, 0.4, 0.1 + 0.55 * 0.4])
    assert source.before(np.array([2])) == pytest.approx([0.3])  # without the batch now under way
    source.settle(first, np.array([0.8]), np.array([4]))
    source.settle(np.array([1]), np.array([0.9]), np.array([4]))
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
    assert kernel_of(embedding, temperature=1.0).before(batch) is None


def test_equation_8_sums_over_the_whole_batch_however_large_the_pool() -> None:
    """100 references and 250,000 prompts, all alike: the mean of all rates, one of them 1, is .01, not that of 80."""
    rates = np.zeros(100)
    rates[7] = 1.0
    found = kernel_of(np.zeros((250_000, 1)), temperature=1.0).rates(np.arange(100), rates)
    assert found is not None
    assert np.ptp(found) == 0.0
    assert found[0] == pytest.approx(0.01)


def test_a_kernel_without_a_limit_is_saved_as_states_of_before_have_it() -> None:
    """Its default was 20 million evaluations."""
    assert Kernel().saved_options()["most"] == 20_000_000
    assert Kernel(most=5).saved_options()["most"] == 5


def test_a_kernel_with_a_limit_takes_fewer_references() -> None:
    """1000 evaluations over 100 prompts leave 10 of the 100 references: every tenth in the order of rates."""
    embedding = np.zeros((100, 2))
    rates = np.arange(100) / 100.0
    few = kernel_of(embedding, temperature=1.0, most=1000)  # 1000 / 100 prompts
    assert few.references == 10
    assert few.rates(np.arange(100), rates).tolist() == pytest.approx([0.45] * 100)  # 0, .1, ..., .9
    all_of_them = kernel_of(embedding, temperature=1.0)
    assert all_of_them.rates(np.arange(100), rates).tolist() == pytest.approx([0.495] * 100)


# ---- the kernel on embeddings of any scale ----


def test_layer_norm_by_hand() -> None:
    """(1, 2, 3): mean 2, variance 2/3: -1.2247, 0, 1.2247. Constant vectors and d = 1 become zero, not NaN."""
    found = layer_norm(np.array([[1.0, 2.0, 3.0], [100.0, 200.0, 300.0], [5.0, 5.0, 5.0], [0.0, 0.0, 0.0]]))
    root = 1.5**0.5
    assert found.tolist() == [pytest.approx(row) for row in ([-root, 0, root], [-root, 0, root], [0] * 3, [0] * 3)]
    assert layer_norm(np.array([[3.0], [4.0]])).tolist() == [[0.0], [0.0]]
    assert not layer_norm(np.full((4, 384), 0.1, dtype=np.float32)).any()  # its std is rounding


def test_unit_norm_by_hand() -> None:
    assert unit_norm(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist() == [[0.6, 0.8], [0.0, 0.0]]


def test_layer_norm_and_the_root_of_d_by_hand() -> None:
    """Standardised (1, -1) and (-1, 1), of length sqrt(2): scores 2 / sqrt(2) = 1.414 and -1.414, tau 1.

    So the rate 1 beside the rate 0 is implied e^1.414 / (e^1.414 + e^-1.414) = .9442 of its like.
    """
    embedding = np.array([[5.0, 1.0], [1.0, 5.0], [0.3, 0.1]])
    kernel = kernel_of(embedding, temperature=1.0, features="layer-norm")
    found = kernel.rates(np.array([0, 1]), np.array([1.0, 0.0]))
    assert found is not None
    assert found.tolist() == pytest.approx([0.9442, 0.0558, 0.9442], abs=1e-4)


def test_the_fitted_temperature_by_hand() -> None:
    """Two pairs of equals, rates 1, 1, 0, 0: the sharper the better, until exp(-1 / tau) is nothing: tau = 1/12.

    The scores' standard deviation is sqrt(2) / 3, and those tried are its multiples by powers of sqrt(2). At the
    multiple 2^-2.5, tau = 1/12 and the error (2 / (e^12 + 2))^2 = 2e-10; at the one before 2e-7.
    """
    scores = np.kron(np.eye(2), np.ones((2, 2)))
    assert fitted_temperature(np.array([1.0, 1.0, 0.0, 0.0]), scores) == pytest.approx(1 / 12)
    assert fitted_temperature(np.array([1.0, 0.0, 1.0, 0.0]), scores) == pytest.approx(8 * 2**0.5 / 3)  # the flattest
    assert fitted_temperature(np.array([0.5, 0.5, 0.5, 0.5]), scores) == pytest.approx(2**0.5 / 3)  # nothing to fit
    assert fitted_temperature(np.array([1.0, 0.0]), np.eye(2)) == 1.0
    assert fitted_temperature(np.array([1.0]), np.eye(1)) == 1.0


@given(st.sampled_from([1e-6, 1.0, 1e4]), st.sampled_from(["unit", "layer-norm", "given"]), st.integers(0, 20))
def test_the_scale_of_the_embeddings_does_not_matter(scale: float, features: Features, seed: int) -> None:
    rng = np.random.default_rng(seed)
    embedding, batch, rates = rng.standard_normal((30, 16)), np.arange(10), rng.random(10)
    one, other = (kernel_of(e, temperature="fit", features=features) for e in (embedding, scale * embedding))
    assert one.rates(batch, rates) == pytest.approx(other.rates(batch, rates), abs=1e-3)


@pytest.mark.parametrize("features", ["unit", "layer-norm", "given"])
@pytest.mark.parametrize("temperature", [1.0, "fit"])
@pytest.mark.parametrize(
    "embedding", [np.ones((6, 1)), np.zeros((6, 3)), np.full((6, 4), 0.1), np.arange(6.0)[:, None]]
)
def test_degenerate_embeddings_imply_rates_within_the_batchs(
    embedding: np.ndarray, temperature: Any, features: Features
) -> None:
    found = kernel_of(embedding, temperature=temperature, features=features).rates(
        np.arange(4), np.array([0, 0.5, 1, 1])
    )
    assert found is not None
    assert np.isfinite(found).all()
    assert 0.0 <= found.min() <= found.max() <= 1.0
    if np.ptp(embedding) == 0.0:
        assert found == pytest.approx(np.full(6, 0.625))


def clusters(d: int, seed: int, *, shared: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors (1500, d) of six clusters, and success rates of sd .4; with a direction shared by all if asked."""
    rng = np.random.default_rng(seed)
    own = rng.integers(0, 6, 1500)
    points = unit_norm(rng.standard_normal((6, d)))[own] + 0.2 * rng.standard_normal((1500, d)) / d**0.5
    points = unit_norm(unit_norm(points) + shared * unit_norm(rng.standard_normal((1, d))))
    return points, np.array([0.0, 0.05, 0.3, 0.7, 0.95, 1.0])[rng.permutation(6)][own]


@pytest.mark.parametrize("form", ["unit", "layer-normed"])
@pytest.mark.parametrize(
    ("d", "shared", "options"),
    [
        (64, 0.0, {"features": "unit", "temperature": "fit"}),  # BOTS's default
        (64, 0.0, {"features": "layer-norm", "temperature": "fit"}),  # DOTS's
        (64, 0.0, {"features": "layer-norm", "temperature": 1.0}),  # the tau of DOTS's release
        (64, 3.0, {"features": "unit", "temperature": "fit"}),  # a direction shared by all, as language models' have
        (64, 3.0, {"features": "layer-norm", "temperature": "fit"}),
        (896, 3.0, {"features": "layer-norm", "temperature": "fit"}),
        (3, 0.0, {"features": "unit", "temperature": "fit"}),
    ],
)
def test_the_implied_rates_are_those_of_the_clusters(d: int, shared: float, options: dict, form: str) -> None:  # type: ignore[type-arg]
    """From 64 prompts of 8 rollouts to 1500. At tau = 1 unit vectors of d = 64 give rates of sd .03."""
    measured = []
    for seed in range(4):
        embedding, truth = clusters(d, seed, shared=shared)
        rng = np.random.default_rng(seed)
        batch = rng.permutation(len(truth))[:64]
        rates = rng.binomial(8, truth[batch]) / 8
        if (
            form == "layer-normed" and d > 3
        ):  # three dimensions less their mean are a circle, which holds no six clusters
            embedding = layer_norm(embedding)
        found = kernel_of(embedding, **options).rates(batch, rates)
        assert found is not None
        measured.append((found.std(), np.corrcoef(found, truth)[0, 1]))
    sd, correlation = np.mean(measured, axis=0)
    assert sd >= 0.3
    assert correlation >= 0.9


def test_the_given_unit_vectors_at_tau_1_are_flat() -> None:
    """What was the default: equation 9 on vectors of length 1 varies by e^1 at most."""
    embedding, truth = clusters(64, 0)
    batch = np.random.default_rng(0).permutation(1500)[:64]
    found = kernel_of(embedding, temperature=1.0, features="given").rates(batch, truth[batch])
    assert found is not None
    assert found.std() < 0.15 < truth.std()
