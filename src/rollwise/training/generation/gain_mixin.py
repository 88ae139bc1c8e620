"""What the optimiser step gained on each group it trained on, told to a curriculum that learns from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from transformers import TrainerCallback

from rollwise.curricula import Curriculum
from rollwise.training.generation.advantages import prompt_weights
from rollwise.training.generation.merging import in_loss
from rollwise.training.generation.trl_trainer import TrlTrainer


class GainMixin(TrlTrainer):
    """Reads the rollouts of a step once more when it is over, and gives the curriculum each group's gain."""

    curriculum: Curriculum
    _on_main: Callable[[Callable[[], Any]], Any]
    _weighs_prompts: bool
    """See `AdvantageMixin`."""
    _trained: tuple[dict[str, Any], list[str], list[int]] | None = None
    """This rank's rollouts of the step, the tickets of all ranks' groups and the groups' sizes."""

    def tell_gains_after_steps(self) -> None:
        """Tell the gains at the end of every step from now on."""
        self.add_callback(TellGains(self))

    def tell_gains(self) -> None:
        """Tell the mean of ratio x advantage of each group, by the weights as they are now; on every rank."""
        if self._trained is None:
            return
        (output, tickets, sizes), self._trained = self._trained, None
        every = self.accelerator.gather((self._ratios(output) * output["advantages"]).float().contiguous())
        values = every.cpu().double().numpy()
        if self._weighs_prompts:  # the advantages that are trained on have these weights
            values = values / prompt_weights(sizes)
        gains = group_means(values, sizes)
        self._on_main(lambda: self.curriculum.feedback(dict(zip(tickets, gains.tolist(), strict=True))))

    def _ratios(self, output: dict[str, Any]) -> torch.Tensor:
        """(B,) probability of each rollout after the step over that before it, to the power of 1 / tokens."""
        mask = in_loss(output)
        ids = torch.cat([output["prompt_ids"], output["completion_ids"]], dim=1)
        attention = torch.cat([output["prompt_mask"], output["completion_mask"]], dim=1)
        with torch.no_grad():
            now = self._get_per_token_logps_and_entropies(
                self.model, ids, attention, mask.size(1), batch_size=self.args.per_device_train_batch_size
            )[0]
        now = (now * mask).sum(dim=1)
        before = output["old_logps"] if "old_logps" in output else (output["old_per_token_logps"] * mask).sum(dim=1)
        return torch.exp((now - before) / mask.sum(dim=1).clamp(min=1))


def group_means(values: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """Means (P,) of groups of these sizes that stand one after another in values (N,).

    >>> group_means(np.array([1.0, 3.0, 5.0]), [2, 1]).tolist()
    [2.0, 5.0]
    """
    starts = np.cumsum([0, *sizes[:-1]])
    return np.asarray(np.add.reduceat(values, starts) / np.array(sizes))


class TellGains(TrainerCallback):
    """Has the trainer tell the gains when the optimiser has taken its step, before a checkpoint is saved."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """At the end of every step."""
        self._trainer.tell_gains()
