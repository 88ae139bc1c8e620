"""Measures of a success head, each against a number that is worked out by hand."""

import math

import numpy as np
import pytest

from rollwise.errors import ConfigError
from rollwise.evaluation.calibration import roc_auc
from rollwise.inference.evaluation.best_of_n_curve import selection_table
from rollwise.inference.measures.measures import (
    auc_at_steps,
    calibration_error,
    classified,
    gate,
    joint_fit,
    sampling_floor,
    total_variation,
    within_prompt_auc,
)


def test_within_prompt_auc_by_hand() -> None:
    """Prompt 0: good .9, .6, bad .7: pairs (.9 > .7) won, (.6 < .7) lost: 1 of 2. Prompt 1: good .2, bad .1, .2, .3:

    won, tied, lost: 1.5 of 3. Prompt 2: all good, no pair. Together (1 + 1.5) / 5 = .5.
    """
    score = [0.9, 0.6, 0.7, 0.2, 0.1, 0.2, 0.3, 0.99]
    good = [1, 1, 0, 1, 0, 0, 0, 1]
    assert within_prompt_auc(score, good, [0, 0, 0, 1, 1, 1, 1, 2]) == 0.5
    assert math.isnan(within_prompt_auc([0.1, 0.9], [1, 1], [0, 0]))


def test_pooled_auc_is_fooled_by_easy_prompts_and_the_within_one_is_not() -> None:
    """Easy prompt: values .9, .8 with one failure, at .9; hard prompt: .2, .1 with one success, at .1.

    Pooled pairs (good, bad): (.8, .9) lost, (.8, .2) won, (.1, .9) lost, (.1, .2) lost: .25. Within: 0 of 2.
    """
    score, good, prompt = [0.9, 0.8, 0.2, 0.1], [0, 1, 0, 1], [0, 0, 1, 1]
    assert roc_auc(score, good) == 0.25
    assert within_prompt_auc(score, good, prompt) == 0.0


def test_auc_at_steps_takes_those_alive_and_what_a_policy_sees() -> None:
    """Lengths 3, 3, 1, 2 of good, bad, bad, good. At 0: V(x) of all four, .5 each: pooled .5.

    After 1 token: the third is done. Reads so far: .5, .5, .5: all tie, .5. After 2: two are alive; means of two reads:
    (.5 + .9) / 2 = .7 and (.5 + .1) / 2 = .3: 1. With a window of 1 the same order.
    """
    values = [np.array([0.5, 0.9, 0.0]), np.array([0.5, 0.1, 1.0]), np.array([0.5]), np.array([0.5, 0.0])]
    at = auc_at_steps(values, [1, 0, 0, 1], [0, 0, 0, 0], [0, 1, 2, 3])
    assert [(a["step"], a["alive"]) for a in at] == [(0, 4), (1, 3), (2, 2), (3, 0)]
    assert [a["pooled"] for a in at[:3]] == [0.5, 0.5, 1.0]
    assert [a["within"] for a in at[:3]] == [0.5, 0.5, 1.0]
    assert math.isnan(at[3]["pooled"])


def test_gate_has_its_bounds_in_the_middle() -> None:
    assert [gate(x) for x in (0.651, 0.65, 0.6, 0.599)] == ["aggressive", "careful", "careful", "off"]


def test_total_variation_by_hand() -> None:
    """|.5 - .2| + |.5 - .3| + |0 - .5| = 1, halved."""
    assert total_variation([0.5, 0.5, 0.0], [0.2, 0.3, 0.5]) == pytest.approx(0.5)
    assert total_variation([1, 0], [0, 1]) == 1.0


def test_sampling_floor_of_a_coin() -> None:
    """Two draws of a fair coin: half the time both sides (distance 0), else one twice (distance 1/2): 1/4 on average.

    20,000 draws have a standard error of .0018.
    """
    assert sampling_floor([0.5, 0.5], 2, draws=20_000) == pytest.approx(0.25, abs=0.008)
    assert sampling_floor([0.5, 0.5], 2, seed=1) == sampling_floor([0.5, 0.5], 2, seed=1)


def test_joint_fit_by_hand() -> None:
    """Two states, one length bin; shares (0, 1) and (.5, .5). The head says (.25, .75) and (.5, .5).

    Head: (.25 + 0) / 2 = .125. Blind, each the other's shares: (.5 + .5) / 2 = .5. Floor: 0 for the sure prompt, 1/4
    for the coin (test above), so .125. With one length the reward's marginal is the joint.
    """
    fit = joint_fit([[1, 1], [0, 1]], [[[0.25], [0.75]], [[0.5], [0.5]]], draws=20_000)
    assert (fit.head, fit.blind, fit.reward) == (0.125, 0.5, 0.125)
    assert fit.floor == pytest.approx(0.125, abs=0.005)
    assert (fit.prompts, fit.rollouts) == (2, 2)
    with pytest.raises(ConfigError, match="P >= 2"):
        joint_fit([[1]], [[[0.5], [0.5]]])


def test_the_rewards_marginal_forgives_a_wrong_length() -> None:
    """R = 2, L = 2: all rollouts succeed in bin 1 (label 3); the head is sure of success, but in bin 0: 1 and 0."""
    fit = joint_fit([[3, 3], [3, 3]], [[[0.0, 0.0], [1.0, 0.0]]] * 2)
    assert (fit.head, fit.reward, fit.floor, fit.blind) == (1.0, 0.0, 0.0, 0.0)


def test_calibration_error_by_hand() -> None:
    """Equal width, two bins: [.1, .2, .3] with 1 success: |.333 - .2| * 3 = .4; [.9] with 1: |1 - .9| = .1: .5 / 4.

    Equal mass, two of two: [.1, .2] with 0: .3; [.3, .9] with 2: |2 - 1.2| = .8: 1.1 / 4.
    """
    said, came = [0.1, 0.2, 0.3, 0.9], [0, 0, 1, 1]
    assert calibration_error(said, came, bins=2) == pytest.approx(0.125)
    assert calibration_error(said, came, bins=2, equal_mass=True) == pytest.approx(0.275)
    assert math.isnan(calibration_error([], []))


def test_classified_by_hand() -> None:
    """Yes at .5 or more: yes, yes, no, no, yes against 1, 0, 1, 0, 1: TP 2, FP 1, FN 1: F1 4 / 6, 3 of 5 right.

    Always yes: b = .6: F1 = 1.2 / 1.6 = .75, accuracy .6: the better F1 says nothing of a head.
    """
    said, came = [0.9, 0.5, 0.4, 0.1, 0.7], [1, 0, 1, 0, 1]
    found, always = classified(said, came), classified(said, came, threshold=-np.inf)
    assert (found.f1, found.accuracy) == (pytest.approx(4 / 6), 0.6)
    assert (always.f1, always.accuracy) == (0.75, 0.6)
    assert math.isnan(classified([0.1], [0]).f1)


def test_selection_table_by_hand() -> None:
    """One prompt, K = 3 of 6, two disjoint groups.

    Group 1: values .9, .5, .4, answers a, b, b, good 0, 1, 1: value 0, majority b 1, weighted .9 : .9 ties, sums equal,
    a comes first: 0. Group 2: values .8, .1, .1, answers c, d, d, good 1, 0, 0: value 1, majority 0, weighted 1.
    Means: value .5, majority .5, weighted .5, random (2/3 + 1/3) / 2 = .5, oracle 1.
    """
    values, answers = [0.9, 0.5, 0.4, 0.8, 0.1, 0.1], ["a", "b", "b", "c", "d", "d"]
    good = [0, 1, 1, 1, 0, 0]
    found = selection_table(values, answers, good, [7] * 6, 3)
    expected = {"value-end": 0.5, "majority": 0.5, "weighted-majority": 0.5, "random": 0.5, "oracle": 1.0}
    assert found == pytest.approx(expected)


def test_the_majority_of_the_selection_table_does_not_see_the_head() -> None:
    """Two answers tie: the head would take the second, which is right; self-consistency takes the first."""
    found = selection_table([0.1, 0.9], ["a", "b"], [0, 1], [0, 0], 2)
    assert (found["majority"], found["value-end"], found["weighted-majority"]) == (0.0, 1.0, 1.0)


def test_by_value_the_selection_table_takes_one_that_was_cut_off_only_where_none_finished() -> None:
    """Groups of 2: .9 was cut off, so .2 is taken, which is right; in the second both were, so .8, which is right."""
    values, good = [0.9, 0.2, 0.8, 0.4], [0, 1, 1, 0]
    found = selection_table(values, ["a"] * 4, good, [0] * 4, 2, truncated=[True, False, True, True])
    assert found["value-end"] == 1.0


def test_selection_table_weighs_prompts_equally() -> None:
    """Prompt 0, always good, has 2 rollouts, prompt 1, always bad, 4: the mean over prompts is .5, not 1/3."""
    good = [1, 1, 0, 0, 0, 0]
    found = selection_table([0.5] * 6, ["a"] * 6, good, [0, 0, 1, 1, 1, 1], 2)
    assert set(found.values()) == {0.5}
    with pytest.raises(ConfigError, match="2 rollouts, fewer than k = 3"):
        selection_table([0.5] * 6, ["a"] * 6, good, [0, 0, 1, 1, 1, 1], 3)
