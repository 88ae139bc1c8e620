"""Moving averages of scores and their squares, by hand."""

import numpy as np
import pytest

from rollwise.columns import Columns
from rollwise.estimators import AverageBelief, ema


def used(n: int) -> AverageBelief:
    belief = AverageBelief()
    belief.use(Columns(n, belief.columns_spec))
    return belief


def test_never_told_is_a_half_of_the_greatest_variance() -> None:
    belief = used(2)
    assert belief.mean().tolist() == [0.5, 0.5]
    assert belief.reward_variance().tolist() == [0.25, 0.25]
    assert belief.uncertainty().tolist() == [0.5, 0.5]
    assert belief.effective_size().tolist() == [0.0, 0.0]


def test_two_steps_by_hand() -> None:
    """Scores 1, 0, 0, 0: mean .25, square .25, variance .1875. Then .5, .5, weight .8: mean .05 + .4 = .45, square
    .05 + .2 = .25, variance .25 - .2025 = .0475.
    """
    belief = used(2)
    belief.add(np.array([1]), [np.array([1.0, 0.0, 0.0, 0.0])])
    assert belief.mean()[1] == 0.5  # taken in once a step
    belief.forget_and_learn(0.8)
    assert (belief.mean()[1], belief.reward_variance()[1]) == (pytest.approx(0.25), pytest.approx(0.1875))
    belief.add(np.array([1]), [np.array([0.5, 0.5])])
    belief.forget_and_learn(0.8)
    assert (belief.mean()[1], belief.reward_variance()[1]) == (pytest.approx(0.45), pytest.approx(0.0475))
    assert belief.effective_size().tolist() == [0.0, 2.0]
    assert belief.mean(np.array([1, 0])).tolist() == pytest.approx([0.45, 0.5])


def test_several_tells_of_one_step_are_one_observation_of_all_their_rollouts() -> None:
    """1, 1 and then 0: mean 2/3, not the mean of 1 and 0."""
    belief = used(1)
    belief.add(np.array([0]), [np.array([1.0, 1.0])])
    belief.add(np.array([0]), [np.array([0.0])])
    belief.forget_and_learn(0.5)
    assert belief.mean().tolist() == pytest.approx([2 / 3])
    assert belief.effective_size().tolist() == [1.0]
    belief.forget_and_learn(0.5)  # a step without news forgets nothing
    assert belief.mean().tolist() == pytest.approx([2 / 3])


def test_the_uncertainty_by_hand() -> None:
    """One group of variance 0: ((0 + .25) / 2) / 2 = 1/16. Three of variance .1875: ((.5625 + .25) / 4) / 4 = .0508."""
    belief = used(1)
    belief.add(np.array([0]), [np.array([1.0, 1.0])])
    belief.forget_and_learn(0.5)
    assert belief.uncertainty().tolist() == pytest.approx([0.25])
    belief = used(1)
    for _ in range(3):
        belief.add(np.array([0]), [np.array([1.0, 0.0, 0.0, 0.0])])
        belief.forget_and_learn(0.5)
    assert (belief.uncertainty() ** 2).tolist() == pytest.approx([0.8125 / 16])


def test_samples_have_the_mean_and_the_spread_believed() -> None:
    belief = used(1)
    belief.add(np.array([0]), [np.array([1.0, 0.0, 0.0, 0.0])])
    belief.forget_and_learn(0.5)
    samples = belief.sample(np.random.default_rng(0), np.zeros(40_000, dtype=np.int64))
    assert samples.mean() == pytest.approx(0.25, abs=0.01)
    assert samples.std() == pytest.approx(belief.uncertainty()[0], rel=0.02)


def test_the_first_observation_starts_an_average() -> None:
    assert ema(np.array([np.nan, 0.5]), np.array([1.0, 1.0]), 0.8).tolist() == pytest.approx([1.0, 0.9])
