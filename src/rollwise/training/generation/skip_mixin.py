"""Leaves rollouts without an advantage out of the update."""

from __future__ import annotations

from typing import Any, ClassVar, get_args

import torch

from rollwise.errors import ConfigError
from rollwise.training.generation.losses import LOSS_TYPES, Normalization, weight_of_kept
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
    loss_normalization: ClassVar[Normalization | None] = None
    """Over what a loss of the trainer's own takes the mean: set it in the class for `skip_zero_advantage` and METIS.

    The loss is the mean over rollouts of a number in proportion to the rollout's advantage. That is a sum over the
    rollout's tokens divided by 1 ("sum"), by the number of these tokens ("rollout"), by its mean over the rollouts of
    the micro-batch ("micro-batch") or of the generation ("generation"), or by `max_completion_length` ("longest"). By
    default it follows from `loss_type`.
    """

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The trainer's loss of the rollouts with an advantage, with the weight that they have among all."""
        if not (self.skip_zero_advantage and self.model.training):
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        why = "skip_zero_advantage takes rollouts out of a batch"
        check_divisible(inputs, why=why, remedy="without skip_zero_advantage")
        rows = self._rows_to_train(inputs)
        if not len(rows):
            return torch.zeros((), device=self.accelerator.device, requires_grad=True)
        kept = select(inputs, rows, multiple_of=getattr(self, "pad_to_multiple_of", None))
        loss = super().compute_loss(model, kept, return_outputs, num_items_in_batch)
        return loss * weight_of_kept(self._normalization(), in_loss(kept), in_loss(inputs))

    def _normalization(self) -> Normalization:
        """How the loss is normalized: as the class says by `loss_normalization`, else as TRL's `loss_type` says.

        Raises:
            ConfigError: an unknown `loss_normalization`; or there is none, and the `loss_type` is unknown.
        """
        said, loss_type, names = self.loss_normalization, getattr(self, "loss_type", "rloo"), get_args(Normalization)
        if said is not None and said not in names:
            raise ConfigError(f"loss_normalization must be one of {names}, got {said!r}")
        normalization = said or LOSS_TYPES.get(loss_type)
        if normalization is None:
            raise ConfigError(
                f"rollwise does not know how loss_type {loss_type!r} is normalized, which it needs to skip rollouts or "
                f"to add METIS's loss: say it in the trainer's class as loss_normalization, one of {names}"
            )
        return normalization

    def _rows_to_train(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """The rows (R,) with an advantage, and further ones where another rank has more.

        All ranks take as many, as they gather numbers of their rows. In the last backward pass of a step, in which the
        ranks share gradients, it is one at least; with DeepSpeed, which may share them in each, in every pass.
        """
        greatest = torch.stack([one["advantages"].abs().max() for one in self._buffered_inputs]).max()
        none = inputs["advantages"].abs() <= _OF_ROUNDING * greatest  # NaN is not: the loss is to show it
        kept = ~none & in_loss(inputs).any(dim=1)
        least = int(self.accelerator.sync_gradients or self.is_deepspeed_enabled)
        n = int(self.accelerator.gather(kept.sum().clamp(min=least)).max())
        return torch.argsort(~kept, stable=True)[:n].sort().values
