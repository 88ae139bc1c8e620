"""A run's groups as columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollwise.runs.group_table import GroupTable, group_table, numbers_in
from rollwise.runs.solved import SolvedRule
from rollwise.tickets.outcome import RewardSpec


def table(*rows: dict[str, Any]) -> GroupTable:
    return group_table(enumerate(rows, start=1))


def test_columns_by_hand() -> None:
    groups = table(
        {"step": 1, "prompt_id": "a", "lane": "x", "category": "L1", "predicted": 0.25, "rewards": [1, 0, None, 0.1]},
        {"step": 2, "prompt_id": "b", "lane": "y", "rewards": [1.0, 1.0], "purpose": "measure"},
        {"step": 2, "prompt_id": "a", "lane": "x", "rewards": [0.1, 0.1]},
        {"step": 3, "prompt_id": "c", "rewards": [None]},
    )
    assert groups.prompts == ["a", "b", "c"]
    assert groups.prompt.tolist() == [0, 1, 0, 2]
    assert groups.lane.tolist() == [0, 1, 0, -1]
    assert groups.category.tolist() == [0, -1, -1, -1]
    assert groups.line.tolist() == [1, 2, 3, 4]
    assert groups.count.tolist() == [3, 2, 2, 0]
    np.testing.assert_allclose(groups.mean, [1.1 / 3, 1, 0.1, np.nan])
    np.testing.assert_allclose(groups.solved, [1 / 3, 1, 0, np.nan])
    assert groups.mixed.tolist() == [True, False, False, False]
    assert groups.all_good.tolist() == [False, True, False, False]
    assert groups.all_bad.tolist() == [False, False, True, False]
    assert groups.train.tolist() == [True, False, True, True]
    np.testing.assert_array_equal(groups.predicted, [0.25, np.nan, np.nan, np.nan])
    assert groups.has_scores


def test_screened_rollouts_belong_to_the_group_but_not_to_the_prediction() -> None:
    """Screened 0 and 0, then 1 and 1: half solved, and mixed; the belief was about the two that followed."""
    groups = table({"step": 1, "predicted": 0.5, "rewards": [1, 1], "screened": {"ticket": "t", "rewards": [0, 0]}})
    assert groups.solved.tolist() == [0.5]
    assert groups.mixed.tolist() == [True]
    assert groups.own_mean.tolist() == [1.0]


def test_groups_of_other_sizes_have_the_same_mean() -> None:
    """All failed, with 0.1 for the format: sums of 3, 6 and 8 of these, divided, are not all 0.1."""
    rows = [{"step": 1, "rewards": [0.1] * n} for n in range(1, 9)]
    assert len({sum(row["rewards"]) / len(row["rewards"]) for row in rows}) > 1
    assert table(*rows).own_mean.tolist() == [0.1] * 8


def test_the_same_rewards_in_another_order_have_the_same_mean() -> None:
    """Else correlations of ranks depend on the order of the rollouts."""
    rows = [{"step": 1, "rewards": [0.1] * i + [1.0] + [0.1] * (7 - i)} for i in range(8)]
    assert len({np.cumsum(row["rewards"])[-1] for row in rows}) > 1
    assert len(set(table(*rows).own_mean.tolist())) == 1


@pytest.mark.parametrize(
    ("rewards", "mark", "solved"),
    [([[0, 0.5], [0.9]], 1.0, [0, 0]), ([[0, 10], [10, 10]], 10.0, [0.5, 1]), ([[-1, 1], [-1, -1]], 1.0, [0.5, 0])],
)
def test_the_solved_mark(rewards: list[list[float]], mark: float, solved: list[float]) -> None:
    groups = table(*({"step": 1, "rewards": own} for own in rewards))
    assert (groups.rule.at, groups.rule.guessed) == (mark, True)
    assert groups.solved.tolist() == solved
    assert groups.has_scores == (max(map(max, rewards)) <= 1 and min(map(min, rewards)) >= 0)


def test_expectations_are_of_scores() -> None:
    """Of the range -1 to 3, rewards -1, -1, 1, 3 are scores 0, 0, 1/2, 1: mean 3/8, variance 11/64."""
    rule = SolvedRule.of(RewardSpec(low=-1, high=3))
    groups = group_table([(1, {"step": 1, "predicted": 0.5, "rewards": [-1, -1, 1, 3]})], rule)
    assert groups.mean.tolist() == [0.5]
    assert groups.own_mean.tolist() == [0.375]
    assert groups.own_variance.tolist() == [0.171875]
    assert groups.has_scores
    assert not group_table([(1, {"rewards": [-1, 3.1]})], rule).has_scores


def test_odd_values_count_as_absent() -> None:
    groups = table(
        {},
        {"step": True, "rewards": "no", "lane": 3, "predicted": "high", "purpose": "fun", "screened": 5},
        {"step": -1, "rewards": [float("inf"), float("nan"), 10**400, "x"], "prompt": [{"role": "user"}]},
        {"step": 2**60, "prompt_id": None},
    )
    assert groups.step.tolist() == [-1] * 4
    assert groups.count.tolist() == [0] * 4
    assert groups.lanes == ["3"]
    assert groups.train.all()
    assert len(table()) == 0
    assert table().has_scores


def test_numbers_in() -> None:
    assert numbers_in([1, None, True, 0.5, "1", float("nan")]) == [1.0, 1.0, 0.5]
    assert numbers_in(None) == []
