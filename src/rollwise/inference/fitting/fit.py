"""A fitted head's matrix, and how good it is: cross-entropy, gradient, distance to the best."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from rollwise.errors import ConfigError
from rollwise.inference.head.spec import HeadSpec

GAP = 1e-4
"""A fit has converged when it is proven to be within this many nats of the minimum."""

_CHUNK = 32_768  # positions whose logits are in memory at once


@dataclass(frozen=True)
class Fit:
    """A fitted matrix, and how good it is on what it was fitted on.

    Attributes:
        weight: (R * L, H) float32.
        method: "convex" or "paper".
        cross_entropy: Weighted mean, in nats.
        baseline: That of the labels' own frequencies, without looking at any hidden state.
        l2: Factor of the squared norm that was added to the cross-entropy.
        gradient_norm: Euclidean norm of the gradient of cross-entropy and penalty.
        gap: The objective is at most this far above its minimum, in nats; infinite where nothing is proven.
        iterations: Of the optimiser.
        converged: Whether `gap` is at most `GAP`.
    """

    weight: torch.Tensor
    method: str
    cross_entropy: float
    baseline: float
    l2: float
    gradient_norm: float
    gap: float
    iterations: int
    converged: bool

    def to_dict(self) -> dict[str, Any]:
        """The numbers, JSON-safe."""
        numbers = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "weight"}
        return numbers | {"gap": self.gap if math.isfinite(self.gap) else None}


def measured(
    states: torch.Tensor,
    targets: torch.Tensor,
    shares: torch.Tensor,
    weight: torch.Tensor,
    method: str,
    l2: float,
    iterations: int,
) -> Fit:
    """The fit of a (R * L, H) weight: its numbers on the states, the (M,) targets and their (M,) shares."""
    entropy, gradient = entropy_and_gradient(states, targets, shares, weight.double(), torch.float64)
    norm = float((gradient + 2 * l2 * weight.double()).norm())
    gap = norm**2 / (4 * l2) if l2 > 0 else math.inf
    frequency = np.bincount(targets.numpy(), weights=shares.numpy(), minlength=len(weight))
    some = frequency[frequency > 0]
    baseline = float(-(some * np.log(some)).sum())
    return Fit(weight, method, entropy, baseline, l2, norm, gap, iterations, gap <= GAP)


def checked(
    states: torch.Tensor, labels: ArrayLike, spec: HeadSpec, weights: ArrayLike | None
) -> tuple[torch.Tensor, torch.Tensor]:
    """(M,) labels and (M,) weights that sum to 1, as tensors.

    Raises:
        ConfigError: shapes that don't fit, numbers out of range, or labels of a single reward state.
    """
    targets = np.asarray(labels)
    if states.ndim != 2 or targets.shape != (len(states),) or not len(targets):
        raise ConfigError(f"states must be (M, H) and labels (M,), got {tuple(states.shape)} and {targets.shape}")
    if not np.issubdtype(targets.dtype, np.integer) or targets.min() < 0 or targets.max() >= spec.size:
        raise ConfigError(f"labels must be whole numbers from 0 to {spec.size - 1}, as HeadSpec.labels gives them")
    if not bool(torch.isfinite(states).all()):
        raise ConfigError("the hidden states hold NaN or infinity; load the model in float32")
    spec.check_told_apart(targets // spec.num_lengths, "positions")
    given = np.ones(len(targets)) if weights is None else np.asarray(weights, dtype=np.float64)
    if given.shape != targets.shape or not (np.isfinite(given) & (given >= 0)).all() or given.sum() <= 0:
        raise ConfigError(f"weights must be ({len(targets)},) numbers >= 0, not all 0")
    return torch.as_tensor(targets, dtype=torch.long), torch.as_tensor(given / given.sum())


def entropy_and_gradient(
    states: torch.Tensor, targets: torch.Tensor, shares: torch.Tensor, weight: torch.Tensor, dtype: torch.dtype
) -> tuple[float, torch.Tensor]:
    """Weighted cross-entropy, and its gradient (R * L, H): sum over positions of share * (p - onehot) h^T.

    Products are in `dtype`.
    """
    entropy, gradient = 0.0, torch.zeros_like(weight, dtype=torch.float64)
    transposed = weight.to(dtype).T.contiguous()
    for start in range(0, len(targets), _CHUNK):
        part = slice(start, start + _CHUNK)
        some = states[part].to(dtype)
        log_p = (some @ transposed).double().log_softmax(-1)
        own = targets[part].unsqueeze(1)
        entropy -= float((log_p.gather(1, own)[:, 0] * shares[part]).sum())
        residual = log_p.exp_().scatter_add_(1, own, log_p.new_full(own.shape, -1.0)) * shares[part].unsqueeze(1)
        gradient += (residual.to(dtype).T @ some).double()
    return entropy, gradient
