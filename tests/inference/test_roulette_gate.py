"""The gate of the roulette by hand, and on logs where it should and should not open."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rollwise.errors import ConfigError, RewardError
from rollwise.inference.roulette import Roulette
from rollwise.inference.roulette_gate import (
    best_chance,
    cost_factor,
    group_shares,
    measure_gate,
    token_factor,
    variance_factor,
)

NAN = float("nan")


def test_factors_by_hand() -> None:
    """rho 0.2, tau 0.5, c 0.5: variance 0.8 + 0.4 = 1.2, tokens 0.5 + 0.25 = 0.75, product 0.9."""
    assert variance_factor(0.2, 0.5) == pytest.approx(1.2)
    assert token_factor(0.5, 0.5) == pytest.approx(0.75)
    assert cost_factor(0.2, 0.5, 0.5) == pytest.approx(0.9)
    assert cost_factor(0.3, 0.7, 1.0) == pytest.approx(1.0)


def test_best_chance_by_hand() -> None:
    """sqrt(0.2*0.5 / (0.8*0.5)) = 0.5. The product there is (sqrt(0.8*0.5) + sqrt(0.2*0.5))^2 = 0.5 + 2*0.2 = 0.9."""
    assert best_chance(0.2, 0.5) == pytest.approx(0.5)
    assert [best_chance(*shares, least=0.1) for shares in ((0.5, 0.5), (0.6, 0.5), (1.2, 1.0), (0.0, 0.0))] == [1.0] * 4
    assert [best_chance(*shares, least=0.1) for shares in ((0.0, 0.5), (0.2, 1.0))] == [0.1] * 2


def test_no_other_chance_is_better() -> None:
    rng = np.random.default_rng(0)
    grid = np.linspace(0.05, 1.0, 400)
    for rho, tau in rng.random((50, 2)):
        best = best_chance(rho, tau, least=0.05)
        assert cost_factor(rho, tau, best) <= min(cost_factor(rho, tau, c) for c in grid) + 1e-12
        assert (cost_factor(rho, tau, best) < 1) == (rho < tau)


# Two groups of two, abort point 4. Only the last rollout of each is doomed; the first of the second group ended before.
REWARDS = [[1.0, 0.0], [0.0, 1.0]]
TOKENS = [[10, 14], [4, 9]]
VALUES = [[0.9, 0.25], [NAN, 0.4]]


def test_shares_by_hand() -> None:
    """All squared advantages are 1, so the variance is the tokens: 24 and 13. Saved: 14 - 4 = 10 and 9 - 4 = 5.

    Noise of the first group: (0 - 0.25)^2 times its prefix and the other's tokens, 0.0625 (4 + 10) = 0.875, and its
    suffix 10: 10.875. Of the second: (1 - 0.4)^2 (4 + 4) + 5 = 2.88 + 5 = 7.88.
    """
    shares = group_shares(REWARDS, TOKENS, VALUES, Roulette(at=4))
    assert shares.noise == pytest.approx([10.875, 7.88])
    assert shares.variance == pytest.approx([24, 13])
    assert shares.saved == pytest.approx([10, 5])
    assert shares.tokens == pytest.approx([24, 13])
    assert shares.doomed == pytest.approx([1, 1])
    assert shares.rescued == pytest.approx([0, 1])


def test_measured_variances_take_the_stand_ins_place() -> None:
    """Prefixes 2 and suffixes 1: variance 6 and 6; noise 0.0625 (2 + 3) + 1 = 1.3125 and 0.36 (2 + 3) + 1 = 2.8."""
    twos, ones = np.full((2, 2), 2.0), np.ones((2, 2))
    shares = group_shares(REWARDS, TOKENS, VALUES, Roulette(at=4), prefix_variance=twos, suffix_variance=ones)
    assert shares.variance == pytest.approx([6, 6])
    assert shares.noise == pytest.approx([1.3125, 2.8])
    assert shares.saved == pytest.approx([10, 5])


def test_gate_by_hand() -> None:
    """rho = 18.755/37 > tau = 15/37: nothing is gained. Two of four rollouts are doomed, one of them was right."""
    gate = measure_gate(REWARDS, TOKENS, VALUES, at=4)
    assert (gate.rho, gate.tau) == pytest.approx((18.755 / 37, 15 / 37))
    assert (gate.chance, gate.factor, gate.low, gate.high) == (1.0, 1.0, 1.0, 1.0)
    assert (gate.doomed, gate.rescued) == (0.5, 0.5)
    assert not gate.pays


def _log(groups: int, doomed_tokens: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Groups of eight: half of the rollouts fail, as a value of 0.02 foretold, and take `doomed_tokens`."""
    rng = np.random.default_rng(seed)
    fails = np.tile([True] * 4 + [False] * 4, (groups, 1))
    rewards = np.where(fails, 0.0, (rng.random((groups, 8)) < 0.9).astype(float))
    return rewards, np.where(fails, doomed_tokens, 40), np.where(fails, 0.02, 0.9)


def test_failures_that_ramble_gain_next_to_nothing_where_their_advantage_is_large() -> None:
    """Half right, half wrong: a wrong one's advantage is as large as a right one's, so rho is nearly tau: 0.2 %."""
    gate = measure_gate(*_log(60, 400, 0), at=16)
    assert gate.tau == pytest.approx(4 * 384 / (4 * 400 + 4 * 40))
    assert 0.99 < gate.factor < 1


def test_it_opens_for_rare_success_amid_rambling() -> None:
    """Seven of eight fail after 100 tokens, one succeeds after 100: a failure's advantage is -1/7, the success's 1.

    Tokens are equal, so variance is 7/49 : 1 and the failures hold an eighth of it, less the prefix's 16 in 100: rho is
    (7/49 * 84 + noise of V) / (8/7 * 100), about 0.11, while tau is 7 * 84 / 800 = 0.735. With V = 0, as it came, the
    noise is none: rho = 0.105, c = sqrt(0.105 * 0.265 / (0.895 * 0.735)) = 0.2057.
    """
    rewards = np.tile([1.0] + [0.0] * 7, (40, 1))
    values = np.tile([0.9] + [0.0] * 7, (40, 1))
    gate = measure_gate(rewards, np.full((40, 8), 100), values, at=16)
    assert (gate.rho, gate.tau) == pytest.approx((0.105, 0.735))
    assert gate.chance == pytest.approx(math.sqrt(0.105 * 0.265 / (0.895 * 0.735)))
    assert gate.factor == pytest.approx((math.sqrt(0.895 * 0.265) + math.sqrt(0.105 * 0.735)) ** 2)
    assert gate.pays
    assert gate.low == pytest.approx(gate.high)  # all groups are alike


def test_an_interval_over_few_prompts_keeps_it_shut() -> None:
    """Five prompts of rare success say yes; one whose doomed all turn out right, amid failures, says no.

    The point lies below 1, but a resample that holds the last prompt a few times does not.
    """
    rewards = [[1.0] + [0.0] * 7] * 5 + [[0.0] * 4 + [1.0] * 4]
    values = [[0.9] + [0.1] * 7] * 5 + [[0.9] * 4 + [0.1] * 4]
    gate = measure_gate(rewards, np.full((6, 8), 100), values, at=16)
    assert gate.low < gate.factor < 1 < gate.high
    assert not gate.pays


def test_same_seed_same_interval() -> None:
    log = _log(20, 60, 1)
    assert measure_gate(*log, at=16, seed=3) == measure_gate(*log, at=16, seed=3)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"rewards": [[1.0, 1.0], [0.0, 0.0]]}, RewardError, "no group's rewards differ"),
        ({"rewards": [[1.0, NAN], [0.0, 1.0]]}, RewardError, "must have rewards"),
        ({"values": [[NAN, 0.2], [NAN, 0.4]]}, RewardError, "values where they reach the abort point"),
        ({"rewards": [[1.0], [0.0]], "tokens": [[1], [2]], "values": [[0.1], [0.2]]}, ConfigError, "at least 2"),
        ({"tokens": [10, 14]}, ConfigError, "at least 2"),
        ({"prefix_variance": [[1.0, 1.0], [1.0, 1.0]]}, ConfigError, "both, or neither"),
        ({"at": 0}, ConfigError, "at must be"),
        ({"least": 0.0}, ConfigError, "least must be"),
        ({"resamples": 0}, ConfigError, "resamples must be"),
    ],
)
def test_refuses_what_it_cant_measure(change: dict, error: type[Exception], message: str) -> None:
    given = {"rewards": REWARDS, "tokens": TOKENS, "values": VALUES, "at": 4, **change}
    with pytest.raises(error, match=message):
        measure_gate(**given)
