"""Advantages as TRL computes them, for groups or batches that TRL did not see as they are trained on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import torch

AdvantageKind = Literal["centred", "std", "leave-one-out"]
AdvantageScale = Literal["", "batch-std", "batch-normalised"]
Sizes = int | Sequence[int]
"""Rollouts of each prompt, which stand together: one number for all, or M numbers."""


def group_advantages(kind: AdvantageKind, rewards: torch.Tensor, sizes: Sizes) -> torch.Tensor:
    """Advantages (N,) within groups, in TRL's own way; 0 for what has no reward, or nothing to be compared with.

    A group of one has nothing to be compared with.

    Args:
        kind: "centred" and "std" for GRPO's `scale_rewards` "none" and "group"; "leave-one-out" for RLOO.
        rewards: (N,), NaN where unscorable.
        sizes: of the groups.
    """
    advantages = torch.zeros_like(rewards)
    for size, rows in _by_size(sizes, len(rewards), rewards.device):
        advantages[rows] = _of_one_size(kind, rewards[rows].view(-1, size)).reshape(-1)
    return advantages


def _of_one_size(kind: AdvantageKind, grouped: torch.Tensor) -> torch.Tensor:
    if kind == "leave-one-out":
        others = (~torch.isnan(grouped)).sum(dim=1, keepdim=True) - 1
        advantages = grouped - (torch.nansum(grouped, dim=1, keepdim=True) - grouped) / others
    else:
        advantages = grouped - torch.nanmean(grouped, dim=1, keepdim=True)
        if kind == "std":
            advantages = advantages / (_nanstd(grouped, dim=1) + 1e-4)
    return torch.nan_to_num(advantages, nan=0.0)


def posterior_advantages(rewards: torch.Tensor, alpha: torch.Tensor, beta: torch.Tensor, sizes: Sizes) -> torch.Tensor:
    """What GRPO's advantages (N,) are expected to be by a Beta belief about the prompt; MaPP, arXiv 2609.34990.

    A right rollout of a group with S right ones has sqrt((G-S) / S). How many of its peers are right is not taken from
    the group, but is Beta-binomial, by the belief without the rollout itself: a' = a - r, b' = b - 1 + r. For a wrong
    one right and wrong change places, and the sign. A group of one has nothing to be compared with, and gets 0.

    Args:
        rewards: (N,), each 0 or 1; NaN where unscorable, which gets 0, and is no part of its group.
        alpha: (P,) of each prompt's belief, this group included.
        beta: (P,) likewise.
        sizes: of the groups.
    """
    advantages = torch.zeros(len(rewards), dtype=torch.float64, device=rewards.device)
    of_rollout = np.repeat(np.arange(len(alpha)), sizes)
    scored = ~np.isnan(rewards.cpu().numpy())
    counts = np.bincount(of_rollout[scored], minlength=len(alpha))
    for size in np.unique(counts[counts > 0]).tolist():
        rows = torch.tensor(np.flatnonzero(scored & (counts[of_rollout] == size)), device=rewards.device)
        own = torch.tensor(counts == size, device=rewards.device)
        advantages[rows] = _posterior_of_one_size(rewards[rows], alpha[own], beta[own], size)
    return advantages


def _posterior_of_one_size(rewards: torch.Tensor, alpha: torch.Tensor, beta: torch.Tensor, group: int) -> torch.Tensor:
    right = rewards.view(-1, group, 1).double()
    a, b = alpha.view(-1, 1, 1) - right, beta.view(-1, 1, 1) - 1.0 + right
    own, other = torch.where(right == 1.0, a, b), torch.where(right == 1.0, b, a)
    size = torch.arange(1, group, dtype=torch.float64, device=rewards.device)  # S: the rollout and its like peers
    ways = math.lgamma(group) - torch.lgamma(size) - torch.lgamma(group - size + 1.0)
    chance = torch.exp(ways + _log_beta(own + size - 1.0, other + group - size) - _log_beta(own, other))
    expected = (chance * torch.sqrt((group - size) / size)).sum(dim=2)
    signed = torch.where(right[:, :, 0] == 1.0, expected, -expected)
    return torch.nan_to_num(signed, nan=0.0).reshape(-1)


def _log_beta(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)


def scale_advantages(
    scale: AdvantageScale, advantages: torch.Tensor, rewards: torch.Tensor, sizes: Sizes
) -> torch.Tensor:
    """Advantages (N,) divided by a spread over the whole batch, in TRL's own way; unchanged where none is asked for.

    Args:
        scale: "batch-std" for GRPO's `scale_rewards="batch"`, "batch-normalised" for RLOO's `normalize_advantages`.
        advantages: as the trainer gives them without that scaling; 0 where there is none.
        rewards: (N,), NaN where unscorable.
        sizes: of the groups.
    """
    if scale == "batch-std":
        return advantages / (_nanstd(rewards) + 1e-4)
    if scale == "batch-normalised":
        scored = ~torch.isnan(rewards)
        enough = torch.zeros_like(scored)
        for size, rows in _by_size(sizes, len(rewards), rewards.device):  # else it has no baseline
            enough[rows] = (scored[rows].view(-1, size).sum(dim=1) > 1).repeat_interleave(size)
        known = torch.where(scored & enough, advantages, torch.nan)
        return torch.nan_to_num((known - torch.nanmean(known)) / (_nanstd(known) + 1e-4), nan=0.0)
    return advantages


def prompt_weights(sizes: Sequence[int]) -> np.ndarray:
    """What each rollout's advantage is multiplied by so that every prompt weighs the same, (N,); 1 on the average.

    >>> prompt_weights([1, 3]).round(3).tolist()  # 2 rollouts a prompt on the average
    [2.0, 0.667, 0.667, 0.667]
    """
    n = np.asarray(sizes, dtype=np.float64)
    return np.repeat(n.mean() / n, sizes)


def _by_size(sizes: Sizes, n: int, device: torch.device) -> Iterator[tuple[int, torch.Tensor | slice]]:
    """Each size, and the rows of all rollouts of groups of that size, group by group."""
    if isinstance(sizes, int) or len(set(sizes)) == 1:
        yield sizes if isinstance(sizes, int) else sizes[0], slice(0, n)
        return
    of_rollout = np.repeat(sizes, sizes)
    for size in sorted(set(sizes)):
        yield size, torch.tensor(np.flatnonzero(of_rollout == size), device=device)


def _nanstd(values: torch.Tensor, dim: int | None = None) -> torch.Tensor:
    """The standard deviation with Bessel's correction of what is not NaN; over `dim`, which is kept, or all."""
    keep = dim is not None
    squares = (values - torch.nanmean(values, dim=dim, keepdim=keep)) ** 2
    n = (~torch.isnan(values)).sum(dim=dim, keepdim=keep)
    return torch.sqrt(torch.nanmean(squares, dim=dim, keepdim=keep) * (n / (n - 1)))
