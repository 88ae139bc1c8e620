"""Choosing among candidates."""

from typing import Any

import numpy as np
import pytest

from rollwise.errors import ConfigError
from rollwise.inference.evaluation.replay import Logged, replay
from rollwise.inference.policies.candidate_group import Candidate, Result
from rollwise.inference.policies.confidence import DeepConfPolicy
from rollwise.inference.policies.selection import LIVE_RULES, answer_key, choose, select


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("<answer>1 + 2</answer> no: <answer> 2 * 3 </answer>", "2*3"),
        ("<answer>2*3", None),  # cut off: no verifier would take it, so it has no vote
        ("<answer> </answer>", None),
        (r"thus \boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"thus \boxed{3 + 4", None),
        (r"\boxed{7}, as {a, b", "7"),  # what comes after the box may be cut off
        (r"thus \boxed{}", None),
        (r"\boxed{ } or 12", None),
        ("the answer may be 7", None),
        ("", None),
    ],
)
def test_answer_key_reads_the_text_alone(text: str, key: str | None) -> None:
    assert answer_key(text) == key


def test_the_vote_is_for_the_expression_not_for_what_it_is_worth() -> None:
    # Both are worth 6; whoever merges them knows how to evaluate, and the target with it.
    assert answer_key("<answer>2*3</answer>") != answer_key("<answer>3*2</answer>")


def test_rules_by_hand() -> None:
    """Values .9 (a), .4 (b), .4 (b), .1 (c), .1 (c), .1 (c).

    value-end: .9, index 0. majority: c has three votes; of its candidates, all equal, the first: index 3.
    weighted: a .9, b .8, c .3: index 0.
    """
    values, answers = [0.9, 0.4, 0.4, 0.1, 0.1, 0.1], ["a", "b", "b", "c", "c", "c"]
    assert [select(values, answers, rule) for rule in LIVE_RULES] == [0, 3, 0]


def test_ties_go_to_the_higher_sum_then_to_the_lowest_index() -> None:
    """Two votes each: a .1 + .5 = .6, b .4 + .3 = .7: b, whose best is .4, at index 1."""
    assert select([0.1, 0.4, 0.5, 0.3], ["a", "b", "a", "b"], "majority") == 1
    # Sums .3 and .1 + .2: equal, though not in floating point; b's first candidate comes before a's.
    assert select([0.1, 0.3, 0.2, 0.0], ["b", "a", "b", "a"], "majority") == 2
    assert select([0.3, 0.1, 0.2], ["a", "b", "b"], "weighted-majority") == 0
    assert select([0.5, 0.5], ["a", "b"], "value-end") == 0


def test_no_answer_never_wins_a_vote_but_is_better_than_nothing() -> None:
    assert select([0.9, 0.9, 0.1], [None, None, "a"], "majority") == 2
    assert select([0.9, 0.9, 0.1], [None, None, "a"], "weighted-majority") == 2
    assert select([0.1, 0.9], [None, None], "majority") == 1


@pytest.mark.parametrize("rule", LIVE_RULES)
def test_without_a_signal_it_is_the_majority_then_the_first(rule: str) -> None:
    nan = float("nan")
    assert select([nan] * 3, ["a", "b", "b"], rule) == 1
    assert select([nan] * 2, ["a", "b"], rule) == 0
    assert select([nan] * 2, [None, "b"], rule) == 1


def test_one_nan_is_the_lowest() -> None:
    assert select([float("nan"), 0.1], ["a", "b"]) == 1
    assert select([float("nan"), 0.1], ["a", "b"], "weighted-majority") == 1


def test_a_vote_of_negative_values_is_not_upside_down() -> None:
    """States -1 and 1: what counts is the height above -1. a .8 + .8 = 1.6, b .7. Without states, above the lowest."""
    values, answers = [-0.2, -0.2, -0.3], ["a", "a", "b"]
    assert select(values, answers, "weighted-majority", states=(-1, 1)) == 0
    assert select(values, answers, "weighted-majority") == 0
    # Above 5: a .2 + .2, b 2. As they are they would say 10.4 against 7.
    assert select([5.2, 5.2, 7.0], ["a", "a", "b"], "weighted-majority", states=(5, 9)) == 2


def test_one_nan_is_the_lowest_among_negative_values_too() -> None:
    nan = float("nan")
    assert select([-0.5, nan], ["a", "b"], "weighted-majority", states=(-1, 1)) == 0
    assert select([nan, -0.5], ["a", "b"], "majority", states=(-1, 1)) == 1


def test_votes_of_values_within_0_and_1_are_plain_sums() -> None:
    """Whatever the states within [0, 1] are, and of a confidence, which has one state alone."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        values, answers = rng.random(8).round(2), [str(a) for a in rng.integers(0, 3, 8)]
        values[rng.random(8) < 0.1] = np.nan
        sums = {a: round(float(np.nansum(values[np.array(answers) == a])), 12) for a in dict.fromkeys(answers)}
        best = max(sums.values())
        for states, scale in (((0, 1), 1), ((0.1, 0.5, 1), 1), ((1.0,), 8)):
            chosen = select(values * scale, answers, "weighted-majority", states=states)
            assert sums[answers[chosen]] == best


@pytest.mark.parametrize(
    ("values", "answers", "rule", "message"),
    [
        ([0.1], ["a"], "best", "unknown rule 'best'"),
        ([], [], "majority", "C >= 1"),
        ([0.1], ["a", "b"], "majority", r"\(1,\) and 2"),
    ],
)
def test_bad_input(values: list[float], answers: list[str], rule: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        select(values, answers, rule)


def candidate(index: int, state: str, value: float, text: str) -> Candidate:
    return Candidate(index, state, [1], np.array([value]), np.array([1.0]), value, text)


def index_of(result: Result, rule: str = "value-end") -> int:
    chosen = choose(result, rule)
    assert chosen is not None
    return chosen.index


def test_one_that_was_cut_off_is_chosen_by_value_only_where_none_finished() -> None:
    """Section 3.2: "among finished, non-pruned samples" the highest value_end: .3 before the .9 that was cut off."""
    cut = [candidate(0, "truncated", 0.8, "a"), candidate(1, "truncated", 0.9, "b")]
    whole = [candidate(2, "finished", 0.2, "c"), candidate(3, "finished", 0.3, "d")]
    assert index_of(Result("x", [*cut, *whole])) == 3
    assert index_of(Result("x", cut)) == 1
    assert index_of(Result("x", [*cut, candidate(2, "finished", float("nan"), "")])) == 1  # it has no token
    boxed = [candidate(0, "truncated", 0.8, r"\boxed{1}"), candidate(1, "finished", 0.2, "none")]
    assert index_of(Result("x", boxed), "majority") == 0  # a vote counts answers, whole or not


def test_an_abandoned_candidate_is_never_chosen() -> None:
    two, three = "<answer>2</answer>", "<answer>3</answer>"
    result = Result(
        "x",
        [
            candidate(0, "abandoned", 0.99, two),
            candidate(1, "finished", 0.2, two),
            candidate(2, "truncated", 0.3, three),
        ],
    )
    assert index_of(result) == 1
    assert choose(Result("x", [candidate(0, "abandoned", 0.9, two)])) is None
    with pytest.raises(ConfigError, match="must be one of"):
        choose(result, "oracle")


def deepconf(tracks: list[list[float]], answers: list[str], **options: Any) -> str:
    """What DeepConf answers in windows of 2: confidences along candidates of 4 tokens, and what each answers."""
    texts = tuple(f"<answer>{answer}</answer>" if answer else "" for answer in answers)
    n = len(tracks)
    log = Logged("p", ((1, 2, 3, 4),) * n, tuple(np.array(t)[:, None] for t in tracks), (np.zeros(4),) * n,
                 (False,) * n, texts)  # fmt: skip
    policy = DeepConfPolicy(**{"warmup": 4, "window": 2, "interval": 1} | options)
    result = replay(log, policy, limit=4, states=(1.0,))
    chosen = choose(result, "confident", states=(1.0,), policy=policy)
    assert chosen is not None
    return chosen.text


def test_deepconf_votes_by_those_that_its_threshold_admits() -> None:
    """Lowest groups 1, 1, 1 of a, and 6 of b. The top 10 % lie above 4.5: b, though a's last tokens are the surest.

    With all admitted b's 6 is still more than a's 3; of 3, 3, 3 and 6 it is not.
    """
    low, sure = [1.0, 1.0, 9.0, 9.0], [6.0] * 4
    assert deepconf([low, low, low, sure], ["a", "a", "a", "b"], keep=10.0) == "<answer>b</answer>"
    assert deepconf([low, low, low, sure], ["a", "a", "a", "b"], keep=100.0) == "<answer>b</answer>"
    middling = [3.0, 3.0, 9.0, 9.0]
    assert deepconf([middling] * 3 + [sure], ["a", "a", "a", "b"], keep=100.0) == "<answer>a</answer>"


def test_deepconf_counts_those_after_the_warm_up_by_the_threshold_that_it_set() -> None:
    """Warm-up 2 and 4, top half: above 3. Of the later ones 3.5 passes, and votes with 3.5 for a: 3.5 + 3.2 > 4."""
    tracks = [[2.0] * 4, [4.0] * 4, [3.5] * 4, [3.2] * 4]
    own = {"warmup": 2, "keep": 50.0, "consensus": 1.1}
    assert deepconf(tracks, ["b", "b", "a", "a"], **own) == "<answer>a</answer>"


def test_deepconf_asks_the_others_where_nobody_admitted_has_an_answer() -> None:
    tracks = [[1.0] * 4, [2.0] * 4, [1.5] * 4, [6.0] * 4]
    assert deepconf(tracks, ["a", "b", "a", ""], keep=10.0) == "<answer>a</answer>"
    assert deepconf(tracks, ["", "", "", ""], keep=10.0) == ""


def test_the_confident_vote_is_deepconf_s_alone() -> None:
    result = Result("x", [candidate(0, "finished", 0.2, "")])
    with pytest.raises(ConfigError, match="vote of DeepConfPolicy, got policy None"):
        choose(result, "confident")
