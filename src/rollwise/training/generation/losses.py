"""How trainers' losses are normalized: TRL's own, and those of other trainers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch

Normalization = Literal["sum", "rollout", "micro-batch", "generation", "longest"]
LOSS_TYPES: Mapping[str, Normalization] = {
    "rloo": "sum",
    "luspo": "sum",
    "grpo": "rollout",
    "sapo": "rollout",
    "bnpo": "micro-batch",
    "dapo": "generation",
    "cispo": "generation",
    "vespo": "generation",
    "dr_grpo": "longest",
}
"""TRL's losses, RLOO's and GRPO's by `loss_type`: over what the sum over a rollout's tokens becomes a mean."""


def weight_of_kept(normalization: Normalization, kept: torch.Tensor, whole: torch.Tensor) -> float:
    """What a batch's loss weighs that is computed of some rollouts, where the others' loss is 0.

    Args:
        normalization: that of the loss.
        kept: (R, T) 1 on the tokens in the loss of those rollouts.
        whole: (B, U) the same of the batch.

    >>> kept, whole = torch.ones(1, 3), torch.ones(2, 6)
    >>> [weight_of_kept(over, kept, whole) for over in ("generation", "rollout", "micro-batch")]
    [1.0, 0.5, 0.25]
    """
    if normalization == "generation":
        return 1.0
    if normalization == "micro-batch":
        return float(kept.sum().clamp(min=1.0) / whole.sum().clamp(min=1.0))
    return len(kept) / len(whole)
