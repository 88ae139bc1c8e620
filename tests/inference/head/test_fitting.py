"""The fit: the right minimum, proven; better than the paper's recipe; refused where there is nothing to learn."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rollwise.errors import ConfigError
from rollwise.inference.files.rollout_set import RolloutSet
from rollwise.inference.fitting.fitting import fit_head, position_weights
from rollwise.inference.fitting.paper_fitting import fit_paper
from rollwise.inference.head.hidden import gather_states
from rollwise.inference.head.spec import HeadSpec, edges_for
from rollwise.models import load_policy

torch = pytest.importorskip("torch")
TWO = HeadSpec(edges=(0, 4))
SPEC = HeadSpec(rewards=(0.0, 0.1, 1.0), edges=edges_for(8))


@pytest.fixture(scope="module")
def data(toy: Path, rolled: Path) -> tuple[Any, np.ndarray, np.ndarray]:
    """States, labels and whose rollout's each is, of a real model."""
    rollouts = RolloutSet.read(rolled)
    states, owner, remaining, _ = gather_states(load_policy(toy / "one")[0], rollouts)
    return states, SPEC.labels(remaining, rollouts.rewards[owner]), owner


def test_the_minimum_by_hand() -> None:
    """One feature that is always 1, labels 0, 0, 0, 1: almost without a penalty the chances are 3/4 and 1/4.

    So the rows differ by ln 3 = 1.0986, and the cross-entropy is -(3 ln 0.75 + ln 0.25) / 4 = 0.5623, which is also
    that of the frequencies, the baseline. The penalty is symmetric, so the rows are 0.5493 and -0.5493.
    """
    fit = fit_head(torch.ones(4, 1), [0, 0, 0, 1], TWO, l2=1e-7)
    assert fit.weight[:, 0].tolist() == pytest.approx([0.5493, -0.5493], abs=1e-3)
    assert fit.cross_entropy == pytest.approx(0.5623, abs=1e-4)
    assert fit.baseline == pytest.approx(0.5623, abs=1e-4)


def test_the_penalty_by_hand() -> None:
    """The same with l2 = 0.1: by symmetry the rows are w and -w, and 2 w (0.1) = 3/4 - p, p = 1 / (1 + e^-2w).

    At w = 0.3571: p = 1 / (1 + e^-0.7142) = 0.6713 and 0.75 - 0.6713 = 0.0787; 0.2 * 0.3571 = 0.0714. Too small. At
    w = 0.3750: p = 0.6792, 0.0708 against 0.0750. Between them at w = 0.3680: p = 0.6761, 0.0739 against 0.0736; at
    0.3685: p = 0.6763, 0.0737 against 0.0737.
    """
    fit = fit_head(torch.ones(4, 1), [0, 0, 0, 1], TWO, l2=0.1)
    assert fit.weight[:, 0].tolist() == pytest.approx([0.3685, -0.3685], abs=5e-4)
    assert fit.converged


def test_the_gap_is_a_proof(data: tuple[Any, np.ndarray, np.ndarray]) -> None:
    """No other point lies lower by more than the gap, and the gradient is that of automatic differentiation."""
    states, labels, _ = data
    fit = fit_head(states, labels, SPEC)
    assert fit.converged
    weight = fit.weight.double().requires_grad_()

    def objective(w: Any) -> Any:
        return torch.nn.functional.cross_entropy(states.double() @ w.T, torch.as_tensor(labels)) + 1e-4 * (w**2).sum()

    value = objective(weight)
    value.backward()
    assert float(weight.grad.norm()) == pytest.approx(fit.gradient_norm, rel=0.05, abs=2e-6)
    long = fit_head(states.double(), labels, SPEC, max_iterations=3000)  # on and on, in float64
    assert float(objective(long.weight.double())) >= float(value.detach()) - fit.gap - 1e-9
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        step = torch.randn(fit.weight.shape, generator=generator, dtype=torch.float64) * 0.01
        assert float(objective(fit.weight.double() + step)) > float(value.detach()) - fit.gap


def test_it_beats_the_papers_recipe_on_the_same_data(data: tuple[Any, np.ndarray, np.ndarray]) -> None:
    states, labels, owner = data
    solved = fit_head(states, labels, SPEC)
    paper = fit_paper(states, labels, SPEC, rollouts=owner)
    assert solved.cross_entropy < paper.cross_entropy < math.log(SPEC.size)  # where both begin
    assert solved.cross_entropy < solved.baseline
    assert paper.iterations == 2 * 5  # fewer than 160 rollouts in batches of 32, twice
    assert not paper.converged
    assert paper.to_dict()["gap"] is None
    anew = torch.nn.functional.cross_entropy(states @ paper.weight.T, torch.as_tensor(labels))
    assert float(anew) == pytest.approx(paper.cross_entropy, abs=1e-5)
    again = fit_paper(states, labels, SPEC, rollouts=owner)
    assert torch.equal(again.weight, paper.weight)
    assert not torch.equal(fit_paper(states, labels, SPEC, rollouts=owner, seed=1).weight, paper.weight)


def test_weights_are_repetitions(data: tuple[Any, np.ndarray, np.ndarray]) -> None:
    states, labels, _ = data
    times = np.arange(len(labels)) % 3
    weighted = fit_head(states, labels, SPEC, weights=times, l2=1e-3)
    repeated = fit_head(states[np.repeat(np.arange(len(labels)), times)], np.repeat(labels, times), SPEC, l2=1e-3)
    assert weighted.cross_entropy == pytest.approx(repeated.cross_entropy, abs=1e-4)
    assert torch.allclose(weighted.weight, repeated.weight, atol=0.05)


def test_weights_of_rollouts_by_hand() -> None:
    """Rollouts of 3 and 1 positions: alike by position 1/4 each, by rollout 1/6 and 1/2."""
    assert position_weights([7, 7, 7, 9]).tolist() == [0.25] * 4
    assert position_weights([7, 7, 7, 9], "rollout").tolist() == pytest.approx([1 / 6] * 3 + [1 / 2])
    with pytest.raises(ConfigError, match="weighting"):
        position_weights([0], "prompt")  # type: ignore[arg-type]


def test_one_that_has_not_converged_says_so(data: tuple[Any, np.ndarray, np.ndarray]) -> None:
    states, labels, _ = data
    fit = fit_head(states, labels, SPEC, l2=1e-9, max_iterations=1)
    assert not fit.converged
    assert fit.gap > 1e-4
    assert math.isfinite(fit.cross_entropy)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, 1, 1], "reward state 1: there is nothing to tell apart"),
        ([0, 0, 0], "reward state 0: there is nothing to tell apart"),
        ([0, 1], "states must be"),
        ([0, 1, 2], "from 0 to 1"),
        ([0.0, 1.0, 1.0], "whole numbers"),
    ],
)
def test_labels_that_teach_nothing_are_refused(labels: list[Any], message: str) -> None:
    for fit in (fit_head, lambda *given: fit_paper(*given, rollouts=[0, 1, 2])):
        with pytest.raises(ConfigError, match=message):
            fit(torch.ones(3, 2), labels, TWO)


def test_numbers_that_can_not_be_used_are_refused() -> None:
    good = torch.ones(2, 2)
    with pytest.raises(ConfigError, match="NaN or infinity"):
        fit_head(good * math.nan, [0, 1], TWO)
    with pytest.raises(ConfigError, match="l2"):
        fit_head(good, [0, 1], TWO, l2=0.0)
    with pytest.raises(ConfigError, match="weights"):
        fit_head(good, [0, 1], TWO, weights=[0.0, 0.0])
    with pytest.raises(ConfigError, match="rollouts must be"):
        fit_paper(good, [0, 1], TWO, rollouts=[0])


def test_states_of_great_norm_are_solved_in_double_precision() -> None:
    """As in pretrained models, where a few hidden units are hundreds of times as large as the others."""
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(400, 24, generator=generator)
    states[:, :3] = 300.0 + 30.0 * states[:, :3]
    labels = ((states[:, 5] > 0).long() * 7 + torch.randint(0, 7, (400,), generator=generator)).numpy()
    fit = fit_head(states, labels, HeadSpec())
    assert fit.converged
    assert fit.gap < 1e-4
