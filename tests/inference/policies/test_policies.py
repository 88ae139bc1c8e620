"""The policies' rules, by hand."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollwise.errors import ConfigError
from rollwise.inference import BestOfN, Candidates, EarlyStop, Prune, Sequential, Utility, UtilityOneByOne, make_policy
from rollwise.inference.policies.candidates import CARRY_ON
from rollwise.inference.policies.equations import expected_max, launch_gain, utility
from rollwise.inference.policies.policies import POLICIES

BINARY = np.array([0.0, 1.0])


def candidates(
    values: list[float],
    states: str = "",
    *,
    tokens: int | list[int] = 128,
    remaining: float | list[float] = 50.0,
    prompt_value: float = 0.5,
    typical: float = 100.0,
) -> Candidates:
    """Candidates of binary rewards; `states` has a letter for each: r(unning), f(inished), w(aiting), a(bandoned)."""
    k = len(values)
    letters = np.array(list(states or "r" * k))
    running, finished, waiting = (letters == letter for letter in "rfw")
    v = np.array(values)
    return Candidates(
        running=running,
        finished=finished,
        waiting=waiting,
        tokens=np.where(waiting, 0, np.broadcast_to(tokens, k)),
        chances=np.stack([1 - v, v], axis=1),
        states=BINARY,
        remaining=np.where(running, np.broadcast_to(remaining, k), 0.0),
        prompt_value=prompt_value,
        typical=typical,
        limit=1000,
        lowest=v,
    )


# ---- none, prune ----


def test_best_of_n_carries_all_on() -> None:
    assert BestOfN().first(8) == 8
    assert not BestOfN().due(500)
    assert BestOfN().decide(candidates([0.0, 0.0])).abandon == ()


def test_prune_abandons_the_lowest_below_the_threshold_and_keeps_two() -> None:
    """Below 0.5: .1, .2, .3, .4 (indices 3, 1, 0, 4). Five are there, two are kept, so the lowest three go."""
    assert Prune().decide(candidates([0.3, 0.2, 0.9, 0.1, 0.4])).abandon == (3, 1, 0)


def test_prune_keeps_two_running_ones_whatever_has_finished() -> None:
    """Below 0.5 and running: .3, .2, .1, .4 (indices 0, 1, 4, 5). Four run and two stay, so the lowest two go."""
    assert Prune().decide(candidates([0.3, 0.2, 0.9, 0.1, 0.1, 0.4], "rrffrr")).abandon == (4, 1)
    assert Prune().decide(candidates([0.3, 0.2, 0.9, 0.1], "rrff")).abandon == ()
    assert Prune(keep=1).decide(candidates([0.3, 0.2, 0.9, 0.1], "rrff")).abandon == (1,)


def test_prune_acts_at_128_and_every_32_steps() -> None:
    due = [step for step in range(300) if Prune().due(step)]
    assert due == [128, 160, 192, 224, 256, 288]
    assert Prune().decide(candidates([0.1] * 5, tokens=127)).abandon == ()  # asked because one finished: not its time


def test_prune_leaves_predicted_winners_alone() -> None:
    assert Prune().decide(candidates([0.5, 0.6, 0.7])).abandon == ()


# ---- early stop ----


def test_early_stop_commits_to_the_best_candidate() -> None:
    decision = EarlyStop().decide(candidates([0.3, 0.85, 0.8], tokens=10))
    assert decision.abandon == (0, 2)
    assert decision.stop


def test_early_stop_waits_below_its_threshold() -> None:
    assert EarlyStop().decide(candidates([0.3, 0.79], tokens=10)).abandon == ()


def test_early_stop_looks_at_active_candidates() -> None:
    """Section 3.2: "once the best active sample's smoothed value crosses a threshold". The finished one is none."""
    assert EarlyStop().decide(candidates([0.3, 0.9, 0.2], "rfr")) == CARRY_ON
    assert EarlyStop().decide(candidates([0.85, 0.9, 0.2], "rfr")).abandon == (2,)
    assert EarlyStop().decide(candidates([0.9, 0.9], "ff")) == CARRY_ON


def test_early_stop_looks_when_the_authors_decoder_does() -> None:
    """At 128 and every 32 steps, also if it is asked in between because a candidate finished."""
    policy, values = EarlyStop(warmup=128, interval=32), [0.3, 0.85, 0.9]
    looked = [step for step in range(1, 200) if policy.decide(candidates(values, "rrf", tokens=step)) != CARRY_ON]
    assert looked == [128, 160, 192]
    finished = EarlyStop(warmup=128, interval=32, finished=True)
    assert finished.decide(candidates(values, "rrf", tokens=130)).abandon == (0, 1)


def test_early_stop_commits_to_a_finished_candidate_if_asked() -> None:
    assert EarlyStop(finished=True).decide(candidates([0.3, 0.9, 0.2], "rfr")).abandon == (0, 2)


# ---- utility ----


def test_expected_max_is_one_minus_the_chance_that_all_fail() -> None:
    """1 - 0.5 * 0.8 * 0.9 = 0.64."""
    chances = np.array([[0.5, 0.5], [0.8, 0.2], [0.9, 0.1]])
    assert expected_max(chances, BINARY) == pytest.approx(0.64)


def test_expected_max_of_three_states_is_that_of_all_pairs() -> None:
    """Two candidates over (0, 0.1, 1): (.5, .3, .2) and (.1, .6, .3). P(max <= 0) = .05, P(max <= .1) = .8 * .7 = .56:
    E = 0.1 * (.56 - .05) + 1 * (1 - .56) = 0.491."""
    chances, states = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]]), np.array([0.0, 0.1, 1.0])
    assert expected_max(chances, states) == pytest.approx(0.491)
    pairs = itertools.product(range(3), range(3))
    assert expected_max(chances, states) == pytest.approx(
        sum(chances[0, a] * chances[1, b] * max(states[a], states[b]) for a, b in pairs)
    )


def test_utility_charges_the_sum_and_the_longest() -> None:
    """0.64 - 0.1 * (1 + 2 + 3) - 0.02 * 3 = -0.02."""
    chances = np.array([[0.5, 0.5], [0.8, 0.2], [0.9, 0.1]])
    assert utility(chances, BINARY, np.array([1.0, 2.0, 3.0]), 0.1, 0.02) == pytest.approx(-0.02)


def test_utility_is_the_rule_of_section_3_2() -> None:
    """Keep j if v_j prod (1 - v_i) > beta E[l_j] / l_max. v = .9, .5, .2, costs 100, 100 and 400 of 1000, beta 0.5:
    .9*.5*.8 = .36 > .05, .5*.1*.8 = .04 < .05, .2*.1*.5 = .01 < .2. Said of all at once: the first alone is kept."""
    assert (Utility().simultaneous, Utility().normalise_by, Utility().gamma) == (True, "limit", 0.0)
    three = candidates([0.9, 0.5, 0.2], remaining=[100, 100, 400])
    assert Utility(beta=0.5).decide(three).abandon == (1, 2)
    assert Utility(beta=0.39).decide(three).abandon == (2,)  # .04 > .039


def test_utility_s_default_counts_in_units_of_the_limit() -> None:
    """v = .99, .99, .2: the marginals are .99*.01*.8 = .0079 twice and .00002; the cost is 0.02 * 50/1000 = .001."""
    assert Utility().decide(candidates([0.99, 0.99, 0.2])).abandon == (2,)
    assert Utility(normalise_by="typical").decide(candidates([0.99, 0.99, 0.2])).abandon == (1, 2)  # cost 0.01


def test_utility_never_empties_the_set() -> None:
    """Three sure winners, each of which the others can spare: .99 * .01^2 < .001. The best one stays."""
    assert Utility().decide(candidates([0.98, 0.99, 0.98])).abandon == (0, 2)


def test_gamma_is_no_part_of_the_papers_rule() -> None:
    with pytest.raises(ConfigError, match=r"gamma=0.1 is no part .* policy utility-one-by-one"):
        Utility(gamma=0.1)


def test_options_that_utility_had_before_mean_what_they_did() -> None:
    """An evaluation of an earlier version names them all; then `utility` was what `utility-one-by-one` is now."""
    old: dict[str, Any] = {"beta": 0.0, "gamma": 0.2, "normalise_by": "typical", "simultaneous": False}
    pair = candidates([0.5, 0.5], remaining=[10, 300])
    assert make_policy("utility", **old).decide(pair) == UtilityOneByOne(beta=0.0, gamma=0.2).decide(pair)


def test_utility_of_states_outside_0_and_1_is_that_of_their_chances() -> None:
    """Rewards -1 and 3 with chances of .9, .5 and .2 to succeed: each marginal is 4 times that of 0 and 1, .36, .04
    and .01, so that beta 2 is what 0.5 was. v (1 - v) of their values 2.6, 1 and -0.2 would be negative."""
    three = candidates([0.9, 0.5, 0.2], remaining=[100, 100, 400])
    wide = replace(three, states=np.array([-1.0, 3.0]))
    assert Utility(beta=2.0).decide(wide).abandon == (1, 2)
    assert Utility(beta=1.56).decide(wide).abandon == (2,)


def test_one_by_one_keeps_a_winner() -> None:
    """Three sure winners, v = 0.99, cost 0.5 each of a typical candidate, beta 0.02.

    At first each one's marginal is .99 * .01^2 < 0.01: one goes. Then .99 * .01 = .0099 < 0.01: another goes. The
    last one's is 0.99.
    """
    assert len(UtilityOneByOne().decide(candidates([0.99, 0.99, 0.99])).abandon) == 2
    assert UtilityOneByOne().decide(candidates([0.9, 0.9])).abandon == ()  # marginal 0.09 > 0.01 for both


def test_all_at_once_drops_redundant_winners_together() -> None:
    """v = .99, .99, .2 and beta 0.02: the marginals are .99*.01*.8 = .0079 twice and .2*.01*.01 = .00002; costs .01.

    All at once: all three fall short, the best stays. One by one: the .2 goes first (U rises most), then .0099 < .01.
    With beta 0.019 the cost is .0095: alone, the second winner's .0099 is worth it, and only ours sees that."""
    values = [0.99, 0.99, 0.2]
    assert UtilityOneByOne(beta=0.019).decide(candidates(values)).abandon == (2,)
    assert Utility(beta=0.019, normalise_by="typical").decide(candidates(values)).abandon == (1, 2)


def test_one_by_one_counts_finished_candidates_at_no_cost() -> None:
    """A finished 0.95: another of v = 0.5 adds 0.5 * 0.05 = 0.025, for 0.02 * 50/100 = 0.01. It stays; 0.1 does not."""
    assert UtilityOneByOne().decide(candidates([0.95, 0.5, 0.1], "frr")).abandon == (2,)


def test_gamma_charges_the_longest_candidate() -> None:
    """The long one (remaining 300 of typical 100) adds .5 * .5 = .25 to the other's .5. beta 0: it stays. gamma 0.2
    saves 0.2 * (3 - 0.1) = 0.58 > 0.25: it goes."""
    pair = candidates([0.5, 0.5], remaining=[10, 300])
    assert UtilityOneByOne(beta=0.0).decide(pair).abandon == ()
    assert UtilityOneByOne(beta=0.0, gamma=0.2).decide(pair).abandon == (1,)


def test_one_by_one_counts_in_units_of_the_limit_if_asked() -> None:
    """Cost 50/1000 instead of 50/100: 0.02 * 0.05 = 0.001 < 0.0079."""
    assert UtilityOneByOne(normalise_by="limit").decide(candidates([0.99, 0.99, 0.2])).abandon == (2,)


# ---- sequential ----


def test_sequential_begins_with_one_and_stops_when_another_would_not_pay() -> None:
    """V(x) = .5 counts for four candidates. The first finished at 0.95: p = (4 * .5 + .95) / 5 = .59, and another is
    expected to add .59 * .05 = .0295 < 0.05. At 0.9 it is p = .58, gain .058 > 0.05: launch."""
    policy = Sequential()
    assert policy.first(8) == 1
    assert policy.decide(candidates([0.95, 0, 0], "fww")).stop
    decision = policy.decide(candidates([0.9, 0, 0], "fww"))
    assert (decision.launch, decision.stop) == (1, False)


def test_sequential_gives_up_hopeless_prompts() -> None:
    """Six finished at 0.01: p = (4 * .05 + 6 * .01) / 10 = 0.026 and gain 0.026 * 0.99 < 0.05."""
    assert Sequential().decide(candidates([0.01] * 6 + [0, 0], "ffffffww", prompt_value=0.05)).stop


def test_sequential_replaces_a_doomed_candidate() -> None:
    decision = Sequential(below=0.2).decide(candidates([0.1, 0, 0], "rww"))
    assert (decision.abandon, decision.launch) == ((0,), 1)
    assert Sequential(below=0.2).decide(candidates([0.1, 0.0], "ra")).abandon == ()  # no one to take its place


def test_sequential_waits_for_those_that_run() -> None:
    decision = Sequential(width=2).decide(candidates([0.99, 0.5, 0.0], "frw"))
    assert (decision.launch, decision.stop) == (0, False)


def test_launch_gain_by_hand() -> None:
    """States 0 and 1: 0.4 * (1 - 0.7) = 0.12; a lower one loses nothing, as one chooses the best."""
    assert launch_gain(0.4, 0.7, BINARY) == pytest.approx(0.12)


# ---- all ----


@pytest.mark.parametrize("name", POLICIES)
@given(data=st.data())
def test_no_policy_leaves_a_prompt_without_a_candidate(name: str, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, 6))
    values = data.draw(st.lists(st.floats(0, 1), min_size=k, max_size=k))
    letters = data.draw(st.lists(st.sampled_from("rfwa"), min_size=k, max_size=k).filter(lambda s: {"r", "f"} & set(s)))
    step = data.draw(st.sampled_from([5, 128, 160]))
    given_ = candidates(values, "".join(letters), tokens=step)
    options = {"below": 0.3} if name == "sequential" else {}
    decision = make_policy(name, **options).decide(given_)
    assert set(decision.abandon) <= set(np.flatnonzero(given_.running))
    left = given_.running.sum() - len(decision.abandon) + given_.finished.sum()
    assert left + min(decision.launch, given_.waiting.sum()) >= 1


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("prune", {"keep": 0}, "keep"),
        ("prune", {"warmup": 0}, "warmup"),
        ("early-stop", {"interval": 0}, "interval"),
        ("utility", {"beta": -1}, "beta"),
        ("utility", {"normalise_by": "mean"}, "normalise_by"),
        ("sequential", {"width": 0}, "width"),
        ("prune", {"tau": 1}, "it has warmup"),
        ("best", {}, "known are none, prune"),
    ],
)
def test_bad_options_are_named(name: str, options: dict, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make_policy(name, **options)
