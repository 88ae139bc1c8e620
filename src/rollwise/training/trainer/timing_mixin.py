"""Where a step's time and tokens go, by hooks on the methods of TRL's trainers that generate, read and update.

Rewards are timed where they are kept, in `RolloutMixin`.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import torch
from accelerate.utils import gather_object

from rollwise.models.flops import Compute, FlopsPerToken, Use
from rollwise.training.generation.trl_trainer import TrlTrainer
from rollwise.training.recording.phases import Phases
from rollwise.training.trainer.environments import generated_lengths


class TimingMixin(TrlTrainer):
    """Times TRL's own methods; put directly before the trainer in the bases, so that it times nothing else."""

    phases: Phases
    compute: Compute
    _tool_mask: list[list[int]] | None = None
    """Of the completions generated last: 0 for tokens of a tool's result, else 1; None without tools."""
    _update_since: float
    """When the last `training_step` ended: from then to the optimiser's step, too, the policy is updated."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.phases = Phases()
        super().__init__(*args, **kwargs)
        self.compute = Compute(FlopsPerToken.of(self.model))  # before its weights are shared out over processes

    def step_tokens(self) -> Counter[Use]:
        """The tokens of all processes by use, since this was last called; to be called by all of them."""
        return sum(gather_object([self.compute.take()]), Counter())

    def _generate(self, *args: Any, **kwargs: Any) -> Any:
        with self.phases.phase("generation"):
            made = super()._generate(*args, **kwargs)
            self._tool_mask = made[2] if len(made) > 3 else None  # GRPO's alone have one
            if self.phases.current == "generation":  # not of an evaluation, nor of an oracle
                self._count_rollouts(made[0], made[1])
            return made

    def _count_rollouts(self, prompts: Any, completions: Any) -> None:
        """Count the tokens of rollouts."""
        in_all, written = sum(map(len, completions)), sum(generated_lengths(completions, self._tool_mask))
        self.compute.add("read", sum(map(len, prompts)) + in_all - written)
        self.compute.add("generated", written)

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: Any, attention_mask: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Those of the loss belong to the update."""
        with self.phases.phase("update" if self.phases.current == "update" else "logprobs"):
            found = super()._get_per_token_logps_and_entropies(model, input_ids, attention_mask, *args, **kwargs)
            if self.phases.current in ("update", "logprobs"):
                self.compute.add("trained" if torch.is_grad_enabled() else "scored", attention_mask.sum())
            if self.phases.current == "logprobs":
                wait_for_gpu()
            return found

    def training_step(self, *args: Any, **kwargs: Any) -> Any:
        """TRL's, timed; what it generates, scores and asks is not the update's."""
        with self.phases.phase("update"):
            loss = super().training_step(*args, **kwargs)
        self._update_since = time.perf_counter()
        return loss

    def updated(self) -> None:
        """The optimiser has taken its step."""
        wait_for_gpu()
        self.phases.add("update", time.perf_counter() - self._update_since)


def wait_for_gpu() -> None:
    """Have the GPU finish what it was given, so that it is timed where it belongs."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
