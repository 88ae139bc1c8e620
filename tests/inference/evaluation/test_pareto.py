"""Savings against full best-of-N: paired, at matched cost, held out."""

import itertools

import numpy as np
import pytest

from rollwise.errors import ConfigError
from rollwise.inference.evaluation.best_of_n_curve import best_of_curve, matched_cost, mean_curve
from rollwise.inference.evaluation.pareto import PolicyRun, front, held_out, paired_bootstrap, summarise
from rollwise.inference.policies.selection import select


def run(
    setting: str, accuracy: list[float], cost: list[float], steps: list[float] | None = None, seed: int = 0
) -> PolicyRun:
    return PolicyRun(setting, seed, np.array(accuracy), np.array(cost), np.array(steps or cost))


def test_best_of_curve_by_hand() -> None:
    """K = 3: values .9, .5, .7 with rewards 0, 1, 1 and lengths 2, 4, 6. By value: 0, 1 (.7), 1 (.5).

    n = 1: 2/3. n = 2: the best is in 2 of 3 subsets (reward 0), else .7 (reward 1): 1/3. n = 3: 0.
    Cost: 4, 8, 12. Steps, the longest: n = 1: 4; n = 2: 6 in 2 of 3, else 4: 16/3; n = 3: 6.
    """
    curve = best_of_curve([[0.9, 0.5, 0.7]], [[0, 1, 1]], [[2, 4, 6]])
    np.testing.assert_allclose(curve.accuracy[:, 0], [2 / 3, 1 / 3, 0])
    np.testing.assert_allclose(curve.row_forwards[:, 0], [4, 8, 12])
    np.testing.assert_allclose(curve.steps[:, 0], [4, 16 / 3, 6])


def test_by_value_those_that_were_cut_off_come_last() -> None:
    """As above, but the .9 was cut off: .7 (1), .5 (1), .9 (0). n = 1: 2/3. n = 2 and 3: one that finished is there."""
    curve = best_of_curve([[0.9, 0.5, 0.7]], [[0, 1, 1]], [[2, 4, 6]], truncated=[[True, False, False]])
    np.testing.assert_allclose(curve.accuracy[:, 0], [2 / 3, 1, 1])


def test_the_exact_curve_is_that_of_all_subsets_also_with_ties() -> None:
    rng = np.random.default_rng(3)
    values, rewards = rng.random((4, 5)).round(1), rng.integers(0, 2, (4, 5))
    curve = best_of_curve(values, rewards, np.ones((4, 5)))
    for n, i in itertools.product(range(1, 6), range(4)):
        subsets = [list(s) for s in itertools.combinations(range(5), n)]
        won = [rewards[i, s[select(values[i, s], ["a"] * n)]] for s in subsets]
        assert curve.accuracy[n - 1, i] == pytest.approx(np.mean(won))


def test_majority_curve_by_hand() -> None:
    """Answers a, b, b with rewards 1, 0, 0; values .9, .5, .1. n = 2: {a, b1}: a tie, the higher sum is a's: 1;

    {a, b2}: 1; {b1, b2}: 0: 2/3. n = 3: b: 0.
    """
    curve = best_of_curve([[0.9, 0.5, 0.1]], [[1, 0, 0]], [[1, 1, 1]], answers=[["a", "b", "b"]], rule="majority")
    np.testing.assert_allclose(curve.accuracy[:, 0], [1 / 3, 2 / 3, 0])
    with pytest.raises(ConfigError, match="needs answers"):
        best_of_curve([[0.9]], [[1]], [[1]], rule="majority")


def test_matched_cost_mixes_the_two_whole_n_around_it() -> None:
    """Costs 4, 8, 12: a cost of 5 is a quarter of the way from 1 to 2: accuracy 2/3 - 1/12 = 7/12, cost 5.

    Below 4 it is best-of-1, beyond 12 best-of-3.
    """
    curve = best_of_curve([[0.9, 0.5, 0.7]], [[0, 1, 1]], [[2, 4, 6]])
    assert matched_cost(curve, 5).accuracy[0] == pytest.approx(7 / 12)
    assert matched_cost(curve, 5).row_forwards[0] == pytest.approx(5)
    assert matched_cost(curve, 5).setting == "best-of-1.25"
    assert matched_cost(curve, 1).accuracy[0] == pytest.approx(2 / 3)
    assert matched_cost(curve, 99).accuracy[0] == pytest.approx(0)
    assert mean_curve([curve, curve]).accuracy[1, 0] == pytest.approx(1 / 3)


def test_summary_by_hand() -> None:
    """Accuracies .5, 1, 0: mean .5, standard deviation sqrt((0 + .25 + .25) / 2) = .5."""
    found = summarise([run("p", a, [2, 4], seed=s) for s, a in enumerate(([1, 0], [1, 1], [0, 0]))])
    assert (found.accuracy.mean, found.accuracy.sd) == (0.5, 0.5)
    assert (found.row_forwards.mean, found.row_forwards.sd) == (3.0, 0.0)
    np.testing.assert_allclose(found.by_prompt.accuracy, [2 / 3, 1 / 3])
    with pytest.raises(ConfigError, match="3 distinct seeds"):
        summarise([run("p", [1], [1], seed=s) for s in (0, 1, 1)])
    with pytest.raises(ConfigError, match="one setting"):
        summarise([run(name, [1], [1], seed=s) for s, name in enumerate("ppq")])


def test_paired_bootstrap_by_hand() -> None:
    """Two prompts: gaps 0 and -1, costs 1, 3 against 4, 4. Difference -.5, saving 1 - 4/8 = .5.

    Resamples: (0, 0), (0, 1), (1, 0), (1, 1): differences 0, -.5, -.5, -1, savings .75, .5, .5, .25; each end has a
    chance of 1/4, far more than the tails: the intervals are [-1, 0] and [.25, .75].
    """
    found = paired_bootstrap(run("p", [1, 0], [1, 3]), run("none", [1, 1], [4, 4], [8, 8]))
    assert (found.accuracy.value, found.saving.value, found.steps_saving.value) == (-0.5, 0.5, 0.75)
    assert (found.accuracy.low, found.accuracy.high) == (-1.0, 0.0)
    assert (found.saving.low, found.saving.high) == (0.25, 0.75)
    again = paired_bootstrap(run("p", [1, 0], [1, 3]), run("none", [1, 1], [4, 4], [8, 8]))
    assert again == found


def test_pairing_takes_out_what_prompts_have_in_common() -> None:
    """Both right on the same half of 100 prompts: accuracies vary between resamples, their difference never."""
    half = [1.0, 0.0] * 50
    found = paired_bootstrap(run("p", half, [1] * 100), run("none", half, [2] * 100))
    assert found.accuracy.low == found.accuracy.high == 0.0
    with pytest.raises(ConfigError, match="same prompts"):
        paired_bootstrap(run("p", [1], [1]), run("none", [1, 1], [1, 1]))


def test_held_out_unmasks_the_winners_curse() -> None:
    """Two settings, each good on one half of the prompts and useless on the other: chosen where good, scored where not.

    Baseline right everywhere at cost 8. On its own half each is right at cost 1, so it is chosen, with a gap of 0; on
    the other half it scores 0: a gap of -1, in both folds. The saving is 1 - 1/8.
    """
    none = run("none", [1] * 10, [8] * 10)
    probe = held_out({}, none, seed=5)
    assert [fold.setting for fold in probe.folds] == ["none", "none"]
    second, first = (set(fold.prompts) for fold in probe.folds)  # the first fold is chosen on the first half
    one = run("one", [float(i in first) for i in range(10)], [1] * 10)
    two = run("two", [float(i in second) for i in range(10)], [1] * 10)
    found = held_out({"one": one, "two": two}, none, seed=5)
    assert [(f.setting, f.chosen_on, f.scored_on) for f in found.folds] == [("one", 0, -1), ("two", 0, -1)]
    assert found.paired.accuracy.value == -1.0
    assert found.paired.saving.value == 0.875
    assert first | second == set(range(10))


def test_held_out_takes_the_cheapest_within_the_tolerance() -> None:
    """Gaps -.2 at cost 1 and 0 at cost 4: at a tolerance of .01 the second, at .2 the first."""
    none = run("none", [1] * 10, [8] * 10)
    rough = PolicyRun("rough", 0, np.full(10, 0.8), np.full(10, 1.0), np.full(10, 9.0))
    fine = PolicyRun("fine", 0, np.full(10, 1.0), np.full(10, 4.0), np.full(10, 2.0))
    both = {"rough": rough, "fine": fine}
    assert [f.setting for f in held_out(both, none).folds] == ["fine", "fine"]
    assert [f.setting for f in held_out(both, none, tolerance=0.2).folds] == ["rough", "rough"]
    assert [f.setting for f in held_out(both, none, tolerance=0.2, objective="steps").folds] == ["fine", "fine"]
    with pytest.raises(ConfigError, match="objective"):
        held_out(both, none, objective="seconds")
    with pytest.raises(ConfigError, match="2 prompts"):
        held_out({}, run("none", [1], [1]))


def test_front_keeps_what_nothing_beats() -> None:
    assert front([8, 3, 3, 2, 5], [0.9, 0.8, 0.7, 0.8, 0.8]) == [3, 0]
    assert front([1, 1], [0.5, 0.5]) == [0]
