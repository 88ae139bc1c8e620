"""The advantages of groups of a TRL trainer that are merged of several calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from rollwise.gates import DynamicSampling
from rollwise.training.generation.advantages import (
    AdvantageKind,
    AdvantageScale,
    group_advantages,
    prompt_weights,
    scale_advantages,
)

if TYPE_CHECKING:
    from typing import Any as TrlTrainer  # a mixin: what it calls is the trainer's
else:
    TrlTrainer = object


class AdvantageMixin(TrlTrainer):
    """Scales advantages over the groups that are trained on, as the trainer scales them over one call."""

    gate: DynamicSampling | None
    _screens: bool
    _allocates: bool
    """Whether groups may differ in size."""
    _weighs_prompts: bool
    """Whether every prompt weighs the same in the loss, whatever its number of rollouts."""

    @property
    def _batch_scale(self) -> AdvantageScale:
        """How advantages are scaled over the groups that are trained on, where these are not what one call gave."""
        if self.gate is None and not self._screens and not self._allocates:
            return ""  # TRL scales them itself
        if getattr(self, "scale_rewards", None) == "batch":
            return "batch-std"
        return "batch-normalised" if getattr(self, "normalize_advantages", False) else ""

    def _advantages(self, rewards: np.ndarray, advantages: np.ndarray, sizes: list[int]) -> torch.Tensor:
        """The advantages (N,) of whole groups: as the trainer gave them or, of merged calls, by rewards (N,)."""
        device = self.accelerator.device
        numbers = torch.tensor(rewards, dtype=torch.float32, device=device)
        given = torch.tensor(advantages, device=device)
        if self._screens or self._allocates:
            given = group_advantages(self._advantage_kind, numbers, sizes)
        scaled = scale_advantages(self._batch_scale, given, numbers, sizes)
        return scaled * torch.tensor(prompt_weights(sizes), device=device) if self._weighs_prompts else scaled

    @property
    def _advantage_kind(self) -> AdvantageKind:
        if not hasattr(self, "scale_rewards"):
            return "leave-one-out"
        return "std" if self.scale_rewards == "group" else "centred"

    def _told_advantages(self, rewards: np.ndarray, sizes: list[int]) -> np.ndarray:
        """The advantages (N,) that the rewards (N,) would have, were they what is trained on."""
        numbers = torch.tensor(rewards, dtype=torch.float32)
        return np.asarray(group_advantages(self._advantage_kind, numbers, sizes).numpy())
