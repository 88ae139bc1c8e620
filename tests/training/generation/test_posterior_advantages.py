"""MaPP's posterior advantages against numbers worked out by hand."""

import pytest
import torch

from rollwise.training.generation.advantages import posterior_advantages


def advantages(rewards: list[float], alpha: float, beta: float) -> list[float]:
    belief = torch.tensor([alpha], dtype=torch.float64), torch.tensor([beta], dtype=torch.float64)
    return posterior_advantages(torch.tensor(rewards), *belief, len(rewards)).tolist()  # type: ignore[no-any-return]


def test_a_group_of_two_by_hand() -> None:
    """[1, 0] on Beta(1, 1) is Beta(2, 2). The right one sees Beta(1, 2): its peer is wrong in 2/3; so for the other."""
    assert advantages([1.0, 0.0], 2.0, 2.0) == pytest.approx([2 / 3, -2 / 3])


def test_a_group_of_three_by_hand() -> None:
    """[1, 0, 0] on Beta(1, 1) is Beta(2, 3).

    Right: Beta(1, 3), of two peers 0 or 1 right in 3/5 and 3/10: .6 sqrt(2) + .3 sqrt(1/2).
    Wrong: Beta(2, 2), 0 or 1 wrong in 3/10 and 2/5: .3 sqrt(2) + .4 sqrt(1/2).
    """
    right, wrong = 0.6 * 2**0.5 + 0.3 * 0.5**0.5, 0.3 * 2**0.5 + 0.4 * 0.5**0.5
    assert advantages([1.0, 0.0, 0.0], 2.0, 3.0) == pytest.approx([right, -wrong, -wrong])


def test_a_sure_belief_gives_the_advantage_of_the_rate() -> None:
    """At p = .5 and G = 3: peers 0, 1 or 2 right in 1/4, 1/2, 1/4: sqrt(2) / 4 + sqrt(1/2) / 2 = .7071."""
    assert advantages([1.0, 1.0, 0.0], 5e7, 5e7) == pytest.approx([0.5**0.5, 0.5**0.5, -(0.5**0.5)], abs=1e-5)


def test_a_group_without_contrast_has_advantages_by_its_belief() -> None:
    """[1, 1] on Beta(1, 1) is Beta(3, 1); each sees Beta(2, 1), and its peer is wrong in 1/3."""
    assert advantages([1.0, 1.0], 3.0, 1.0) == pytest.approx([1 / 3, 1 / 3])


def test_groups_are_apart_and_what_has_no_reward_gets_nothing() -> None:
    rewards = torch.tensor([1.0, 0.0, 1.0, 1.0, torch.nan, torch.nan])
    beliefs = torch.tensor([2.0, 3.0, 1.0]), torch.tensor([2.0, 1.0, 1.0])
    found = posterior_advantages(rewards, *beliefs, 2)
    assert found.tolist() == pytest.approx([2 / 3, -2 / 3, 1 / 3, 1 / 3, 0.0, 0.0])


def test_a_rollout_without_reward_is_no_part_of_its_group() -> None:
    """(1, 0, none, none) of a group of four is a group of two; of (1, none) there is nothing to compare with."""
    nan, beliefs = float("nan"), (torch.tensor([3.0, 2.0]), torch.tensor([3.0, 1.0]))
    found = posterior_advantages(torch.tensor([1.0, nan, 0.0, nan, 1.0, nan]), *beliefs, [4, 2])
    whole = posterior_advantages(torch.tensor([1.0, 0.0, 1.0]), *beliefs, [2, 1])
    assert found.tolist() == [whole[0], 0.0, whole[1], 0.0, 0.0, 0.0]
