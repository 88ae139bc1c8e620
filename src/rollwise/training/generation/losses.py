"""How TRL's losses are scaled."""

from __future__ import annotations

from collections.abc import Mapping

import torch

LOSS_TYPES: Mapping[str, str] = {
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


def weight_of_kept(loss_type: str, kept: torch.Tensor, whole: torch.Tensor) -> float:
    """What a batch's loss weighs that is computed of some rollouts, where the others' loss is 0.

    Args:
        loss_type: a key of `LOSS_TYPES`.
        kept: (R, T) 1 on the tokens in the loss of those rollouts.
        whole: (B, U) the same of the batch.

    >>> kept, whole = torch.ones(1, 3), torch.ones(2, 6)
    >>> [weight_of_kept(loss_type, kept, whole) for loss_type in ("dapo", "grpo", "bnpo")]
    [1.0, 0.5, 0.25]
    """
    over = LOSS_TYPES[loss_type]
    if over == "generation":
        return 1.0
    if over == "micro-batch":
        return float(kept.sum().clamp(min=1.0) / whole.sum().clamp(min=1.0))
    return len(kept) / len(whole)
