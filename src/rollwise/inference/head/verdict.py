"""The verdict: how likely a finished candidate is right, read from the same hidden states.

Ours, beyond the paper. Its `value_end`, the mean of V over the last 16 positions, ranks finished candidates well but is
no probability: V is fitted at every position, and most of those 16 came before anything was decided. The verdict is a
logistic regression on means of hidden states over the last 4 and 16 positions and over all of them. It is linear, so
its logits are read position by position like the head's own and averaged in the end: it costs no further pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rollwise.errors import ConfigError
from rollwise.options import check_whole

if TYPE_CHECKING:
    import torch

FloatArray = NDArray[np.float64]

WINDOWS = (4, 16, 0)
"""Last positions over which hidden states are averaged; 0 stands for all of them."""


@dataclass(frozen=True)
class Verdict:
    """W windows, R reward states.

    Attributes:
        weight: (W, R, H) float32.
        bias: (R,) float32.
        windows: (W,) positions; 0 for all.
    """

    weight: torch.Tensor
    bias: torch.Tensor
    windows: tuple[int, ...] = WINDOWS

    def __post_init__(self) -> None:
        for window in self.windows:
            check_whole("windows", window, least=0)
        if self.weight.ndim != 3 or self.weight.shape[:2] != (len(self.windows), len(self.bias)):
            raise ConfigError(
                f"weight must be (windows, states, hidden) = ({len(self.windows)}, {len(self.bias)}, H), got "
                f"{tuple(self.weight.shape)}"
            )

    def to(self, device: Any) -> Verdict:
        """The same on a device."""
        return Verdict(self.weight.to(device), self.bias.to(device), self.windows)

    def read(self, hidden: torch.Tensor) -> torch.Tensor:
        """(..., H) hidden states -> (..., W, R) reads; `chances` takes their means."""
        flat = hidden.to(self.weight.dtype) @ self.rows.T
        return flat.reshape(*hidden.shape[:-1], *self.weight.shape[:2])

    def chances(self, reads: ArrayLike) -> FloatArray:
        """(T, W, R) reads along a finished candidate -> (R,) chances of the reward states."""
        return verdict_chances(reads, self.bias.cpu().double().numpy(), self.windows)

    @property
    def rows(self) -> torch.Tensor:
        """(W * R, H) as rows of a vocabulary: row r + window * R."""
        return self.weight.flatten(0, 1)


def verdict_chances(reads: ArrayLike, bias: ArrayLike, windows: Sequence[int]) -> FloatArray:
    """(T, W, R) reads along a finished candidate -> (R,) chances: the softmax of bias plus the windows' means, summed.

    A constant added to all reads of a position changes nothing, so that a server's log-probabilities do as well.

    >>> verdict_chances([[[0.0, 5.0]], [[1.0, 1.0 + np.log(3)]]], [0.0, 0.0], [1]).round(2).tolist()
    [0.25, 0.75]
    """
    tracks = np.asarray(reads, dtype=np.float64)
    means = [tracks[-window or None :, w].mean(axis=0) for w, window in enumerate(windows)]
    logits = np.asarray(bias, dtype=np.float64) + np.sum(means, axis=0)
    p = np.exp(logits - logits.max())
    return np.asarray(p / p.sum())
