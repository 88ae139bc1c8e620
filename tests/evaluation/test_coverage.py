"""Coverage, visits, waiting, heatmap and the other counts, against small cases counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rollwise.errors import ConfigError
from rollwise.evaluation.coverage import distinct_by_step, starved, visits, visits_histogram, waiting
from rollwise.evaluation.dynamics import last_outcomes, success_rate_heatmap, sums_by_step


def test_distinct_prompts_by_step() -> None:
    """Step 1: prompts 3 and 5; step 2: 3 again; step 4: 3 and 0. A late line of step 1 (prompt 7) counts there."""
    steps = np.array([1, 1, 2, 4, 4, 1])
    at, distinct = distinct_by_step(steps, np.array([3, 5, 3, 3, 0, 7]))
    assert at.tolist() == [1, 2, 4]
    assert distinct.tolist() == [3, 3, 4]


def test_visits_and_their_histogram() -> None:
    """Prompt 0 three times, 2 once, 1 never; in a pool of 6, four were asked 0 times, one once, one three times."""
    counts = visits(np.array([0, 2, 0, 0]), 3)
    assert counts.tolist() == [3, 0, 1]
    assert visits_histogram(counts[counts > 0], 6).tolist() == [4, 1, 0, 1]
    assert visits_histogram(np.array([]), 2).tolist() == [2]
    with pytest.raises(ConfigError, match="pool must be at least the 2"):
        visits_histogram(np.array([1, 1]), 1)


def test_waiting_and_starved() -> None:
    """After tickets 0 1 1 2: prompt 2 was the last (0 since), 1 one ago, 0 three ago, 3 never (4 tickets in all)."""
    waited = waiting(np.array([0, 1, 1, 2]), 4)
    assert waited.tolist() == [3, 1, 0, 4]
    unsolved = np.zeros(4, dtype=bool)
    assert starved(waited, unsolved, pool=1, after=2).tolist() == [True, False, False, True]
    assert starved(waited, unsolved, pool=2, after=1.5).tolist() == [False, False, False, True]
    assert not starved(waited, ~unsolved, pool=1, after=0).any()


def test_heatmap_by_hand() -> None:
    """Five levels: rates .3 -> level 1 (.25), .4 -> level 2, .125 is half way and rounds up to level 1.

    Steps 1 and 2 share a column with four groups: levels 0, 1, 1, 2. Step 5 has one of level 4; the middle has none.
    """
    steps, rates = np.array([1, 2, 2, 1, 5, 5]), np.array([0.0, 0.3, 0.125, 0.4, 1.0, np.nan])
    shares = success_rate_heatmap(steps, rates, np.array([0.5, 2.5, 4.5, 6.5]), levels=5)
    np.testing.assert_array_equal(shares[:, 0], [0.25, 0.5, 0.25, 0, 0])
    assert np.isnan(shares[:, 1]).all()
    np.testing.assert_array_equal(shares[:, 2], [0, 0, 0, 0, 1])


def test_sums_by_step() -> None:
    steps, sums = sums_by_step(np.array([4, 4, 2]), np.array([0, 0, 1]), 2, np.array([0.5, 0.25, 1.0]))
    assert steps.tolist() == [2, 4]
    assert sums.tolist() == [[0, 1], [0.75, 0]]


def test_last_outcomes_follow_each_prompt() -> None:
    """Prompt 9: kinds 0, then 2, then 2; prompt 4: kind 1 in step 2 and, in the same step again, 0."""
    steps, prompts, kinds = np.array([1, 2, 2, 2, 3]), np.array([9, 9, 4, 4, 9]), np.array([0, 2, 1, 0, 2])
    at, counts = last_outcomes(steps, prompts, kinds, 3)
    assert at.tolist() == [1, 2, 3]
    assert counts.tolist() == [[1, 0, 0], [1, 0, 1], [1, 0, 1]]


def test_last_outcomes_equal_a_walk_through_the_groups() -> None:
    rng = np.random.default_rng(0)
    steps = np.sort(rng.integers(1, 20, 300))
    prompts, kinds = rng.integers(0, 30, 300), rng.integers(0, 3, 300)
    resumed = np.argsort(steps % 5, kind="stable")  # a log whose steps go back, as of a run that was resumed
    steps, prompts, kinds = steps[resumed], prompts[resumed], kinds[resumed]
    at, counts = last_outcomes(steps, prompts, kinds, 3)
    state: dict[int, int] = {}
    for row, step in enumerate(at.tolist()):
        state.update({int(p): int(k) for s, p, k in zip(steps, prompts, kinds, strict=True) if s == step})
        assert counts[row].tolist() == [list(state.values()).count(k) for k in range(3)]
