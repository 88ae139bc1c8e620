"""Leaves rollouts without an advantage out of the update."""

from __future__ import annotations

from typing import Any

import torch

from rollwise.training.generation.losses import weight_of_kept
from rollwise.training.generation.merging import check_divisible, in_loss, select
from rollwise.training.generation.trl_trainer import TrlTrainer

_OF_ROUNDING = 1e-4
"""Advantages of at most this share of a generation's greatest are 0 but for rounding."""


class SkipMixin(TrlTrainer):
    """Computes the loss of a batch of those rollouts alone that have an advantage, with `skip_zero_advantage`.

    A rollout's part of the policy loss is proportional to its advantage. So at 0, as in a group whose rewards are all
    equal, it has no gradient, and its forward and backward pass can be saved.
    """

    skip_zero_advantage: bool

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The trainer's loss of the rollouts with an advantage, with the weight that they have among all."""
        if not (self.skip_zero_advantage and self.model.training):
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        why = "skip_zero_advantage takes rollouts out of a batch"
        check_divisible(inputs, why=why, remedy="without skip_zero_advantage")
        kept = select(inputs, self._rows_to_train(inputs), multiple_of=getattr(self, "pad_to_multiple_of", None))
        loss = super().compute_loss(model, kept, return_outputs, num_items_in_batch)
        return loss * weight_of_kept(getattr(self, "loss_type", "rloo"), in_loss(kept), in_loss(inputs))

    def _rows_to_train(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """The rows (R,) with an advantage; further ones where another rank has more, and one at least.

        All ranks take as many, as they gather numbers of their rows, and each has a backward pass to share.
        """
        greatest = torch.stack([one["advantages"].abs().max() for one in self._buffered_inputs]).max()
        none = inputs["advantages"].abs() <= _OF_ROUNDING * greatest  # NaN is not: the loss is to show it
        kept = ~none & in_loss(inputs).any(dim=1)
        n = int(self.accelerator.gather(kept.sum().clamp(min=1)).max())
        return torch.argsort(~kept, stable=True)[:n].sort().values
