"""Stopping rules of self-consistency, against numbers worked out by hand."""

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import beta

from rollwise.errors import ConfigError
from rollwise.inference.policies.agreement import (
    RULES,
    AdaptiveConsistency,
    Agreement,
    EarlyStopping,
    Full,
    StoppingRule,
    least_stop,
    majority,
    majority_stays,
    make_rule,
    replay,
    top_counts,
)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (1, 0, 3 / 4),  # n=2 coins: P(at most 1 head) = (1 + 2) / 4; by calculus, 1 - (1/2)^2
        (3, 0, 15 / 16),  # Beta(4, 1): 1 - (1/2)^4
        (4, 0, 31 / 32),
        (2, 1, 11 / 16),  # n=4: (1 + 4 + 6) / 16
        (4, 1, 57 / 64),  # n=6: (1 + 6 + 15 + 20 + 15) / 64
        (6, 1, 247 / 256),  # n=8: 256 - (8 + 1) = 247 of 256
        (2, 2, 1 / 2),
    ],
)
def test_the_probability_that_the_majority_stays(first: int, second: int, expected: float) -> None:
    assert majority_stays(first, second) == expected


def test_it_is_the_beta_distributions_upper_half() -> None:
    for first in range(0, 60, 7):
        for second in range(0, 60, 7):
            assert majority_stays(first, second) == pytest.approx(beta(first + 1, second + 1).sf(0.5), abs=1e-12)


def test_it_holds_for_counts_of_thousands() -> None:
    assert majority_stays(3000, 3000) == pytest.approx(0.5)
    assert majority_stays(5000, 1) == 1.0


def test_adaptive_consistency_needs_four_alike_or_six_against_one() -> None:
    """3 alike: 15/16 = .9375 <= .95; 4: 31/32 = .969. 5 against 1: 120/128 = .9375; 6 against 1: 247/256 = .965."""
    rule = AdaptiveConsistency()
    assert not rule.agreed(["a"] * 3)
    assert rule.agreed(["a"] * 4)
    assert not rule.agreed([*"aaaba", "a"])
    assert rule.agreed([*"aabaaaa"])
    # Only the two most frequent count: the third answer changes nothing.
    assert rule.agreed([*"aabaaaa"]) == rule.agreed([*"aabcaaaa"])
    assert replay(rule, ["a", "b", *"aaaaaaa"]) == Agreement(7, "a", "agreed")
    assert not rule.agreed([])
    assert not rule.agreed([None] * 50)


def test_adaptive_consistency_stops_at_its_threshold() -> None:
    """Its authors' code stops at a probability of at least the threshold. 2 alike: 7/8; 3 alike: 15/16; 2 to 2: 1/2."""
    assert replay(AdaptiveConsistency(threshold=7 / 8), ["a"] * 9) == Agreement(2, "a", "agreed")
    assert replay(AdaptiveConsistency(threshold=15 / 16), ["a"] * 9) == Agreement(3, "a", "agreed")
    assert AdaptiveConsistency(threshold=0.5).agreed([*"abab"])
    assert not AdaptiveConsistency(threshold=0.5).agreed([None])


def test_esc_looks_at_whole_windows_that_do_not_overlap() -> None:
    rule = EarlyStopping(window=3)
    # Samples 2-4 agree, but no window does: [a b b], [b b c], then [c c c].
    answers = [*"abbbbcccc"]
    assert [rule.agreed(answers[:n]) for n in range(1, 10)] == [False] * 8 + [True]
    # The vote is over all samples, not over the window that agreed: b 4 times, c 4 times, b came up first.
    assert replay(rule, answers) == Agreement(9, "b", "agreed")


def test_esc_ends_with_the_budget_even_if_it_is_no_multiple_of_the_window() -> None:
    rule = EarlyStopping(window=3)
    assert [rule.draw(8, drawn) for drawn in (0, 3, 6, 7, 8)] == [3, 3, 2, 1, 0]
    assert replay(rule, [*"abababaa"]) == Agreement(8, "a", "budget")


def test_samples_without_an_answer_agree_with_nothing() -> None:
    assert not EarlyStopping(window=2).agreed([None, None])
    assert not EarlyStopping(window=2).agreed(["a", None])
    assert majority([None, None, None, "a"]) == "a"
    assert top_counts([None, None]) == (0, 0)
    assert replay(Full(), [None, None]) == Agreement(2, None, "budget")


def test_full_draws_all() -> None:
    assert Full().draw(40, 0) == 40
    assert [Full(window=16).draw(40, drawn) for drawn in (0, 16, 32, 40)] == [16, 16, 8, 0]
    assert replay(Full(), ["a"] * 9) == Agreement(9, "a", "budget")


@pytest.mark.parametrize("rule", [EarlyStopping(window=4), AdaptiveConsistency(), AdaptiveConsistency(window=4)])
def test_rules_cost_less_and_choose_as_well(rule: StoppingRule) -> None:
    """On 300 simulated prompts of pass rate .3 to .95, against all 40 samples."""
    rng = np.random.default_rng(0)
    right_full = right = samples = 0
    for _ in range(300):
        p = rng.uniform(0.3, 0.95)
        answers: Sequence[str] = np.where(rng.random(40) < p, "yes", rng.choice([*"abcd"], 40)).tolist()
        verdict = replay(rule, answers)
        samples += verdict.samples
        right += verdict.answer == "yes"
        right_full += replay(Full(), answers).answer == "yes"
    assert samples < 0.6 * 300 * 40
    assert right >= right_full - 9  # within 3 points


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, 4),  # 4 alike: 31/32
        ({0: "a", 1: "b"}, 7),  # 6 against 1: 247/256
        ({3: "b", 1: "a"}, 7),  # in whatever order they come
        ({1: None}, 5),  # 4 alike and one without an answer
        ({0: "a", 1: "a", 2: "b", 3: "b"}, 10),  # 8 against 2 would be .967: P(at most 8 heads of 11)
        (dict(enumerate("abababababab")), 12),  # all that there are
    ],
)
def test_the_least_number_that_adaptive_consistency_can_stop_after(known: dict[int, str | None], expected: int) -> None:
    assert least_stop(AdaptiveConsistency(), 12, known) == expected


def test_the_least_number_that_the_others_can_stop_after() -> None:
    esc = EarlyStopping(window=3)
    assert [least_stop(esc, 8, known) for known in ({}, {0: "a", 2: "b"}, {0: None}, {0: None, 4: "a"})] == [3, 6, 6, 6]
    assert least_stop(esc, 8, {0: None, 5: None}) == 8
    assert least_stop(Full(), 8, {0: "a"}) == 8
    assert least_stop(AdaptiveConsistency(threshold=1.0), 40, {}) == 40


@pytest.mark.parametrize(
    "rule", [EarlyStopping(window=4), AdaptiveConsistency(), AdaptiveConsistency(window=3), Full(window=7), Full()]
)
def test_what_is_asked_for_at_once_is_what_would_be_drawn_one_by_one(rule: StoppingRule) -> None:
    """Answers come in any order; nothing is asked for that `replay` does not draw, and all that it draws is."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        k = int(rng.integers(1, 30))
        answers = [None if one == 3 else "abc"[one] for one in rng.choice(4, k, p=[0.6, 0.2, 0.1, 0.1])]
        known: dict[int, str | None] = {}
        stop = least_stop(rule, k, known)
        while missing := [at for at in range(stop) if at not in known]:
            at = int(rng.choice(missing))
            known[at] = answers[at]
            stop, before = least_stop(rule, k, known, stop), stop
            assert before <= stop <= replay(rule, answers).samples
        assert stop == replay(rule, answers).samples


def test_bad_options_are_named() -> None:
    assert sorted(RULES) == ["adaptive", "esc", "full"]
    assert make_rule("esc", window=None, threshold=None) == EarlyStopping()
    with pytest.raises(ConfigError, match="unknown rule 'early'; known are esc, adaptive, full"):
        make_rule("early")
    with pytest.raises(ConfigError, match="rule 'esc' has no option 'threshold'; it has window"):
        make_rule("esc", threshold=0.9)
    with pytest.raises(ConfigError, match="window must be a whole number >= 2, got 1"):
        make_rule("esc", window=1)
    with pytest.raises(ConfigError, match="threshold must be a number in"):
        make_rule("adaptive", threshold=1.5)
