"""Where the time of a step goes, by hooks on the methods of TRL's trainers that generate, score and update."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch

from rollwise.training.recording.phases import Phases

if TYPE_CHECKING:
    from typing import Any as TrlTrainer  # a mixin: what it calls is the trainer's
else:
    TrlTrainer = object


class TimingMixin(TrlTrainer):
    """Times TRL's own methods; put directly before the trainer in the bases, so that it times nothing else."""

    phases: Phases
    _update_since: float
    """When the last `training_step` ended: from then to the optimiser's step, too, the policy is updated."""

    def _start_timing(self) -> None:
        self.phases = Phases()

    def _generate(self, *args: Any, **kwargs: Any) -> Any:
        with self.phases.phase("generation"):
            return super()._generate(*args, **kwargs)

    def _calculate_rewards(self, *args: Any, **kwargs: Any) -> Any:
        with self.phases.phase("reward"):
            return super()._calculate_rewards(*args, **kwargs)

    def _get_per_token_logps_and_entropies(self, *args: Any, **kwargs: Any) -> Any:
        """Those of the loss belong to the update."""
        with self.phases.phase("update" if self.phases.current == "update" else "logprobs"):
            found = super()._get_per_token_logps_and_entropies(*args, **kwargs)
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
