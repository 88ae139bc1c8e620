"""The rewards of a TRL trainer's rollouts as they come by, and the advantages of groups merged of several calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import trl

from rollwise.errors import ConfigError, SilentNoOpError
from rollwise.gates import DynamicSampling
from rollwise.training.generation.advantages import (
    AdvantageKind,
    AdvantageScale,
    group_advantages,
    posterior_advantages,
    prompt_weights,
    scale_advantages,
)
from rollwise.training.generation.trl_trainer import TrlTrainer


class AdvantageMixin(TrlTrainer):
    """Keeps the rewards of a call; scales advantages over the groups trained on, as the trainer does over one call."""

    success: int | None
    """Which reward function's rewards the curriculum is told; None for the weighted sum that is trained on."""
    _captured: dict[str, Any]
    """The rewards of a call to the trainer's generation, told and trained on as in `Call`, and what they are of; empty
    before they are computed."""
    gate: DynamicSampling | None
    _screens: bool
    _allocates: bool
    """Whether groups may differ in size."""
    _in_parts: bool
    """Whether, besides, one call may have a part of a group."""
    _weighs_prompts: bool
    """Whether every prompt weighs the same in the loss, whatever its number of rollouts."""
    posterior: bool
    """Whether MaPP's posterior advantages are trained on, in place of the trainer's own."""

    def _check_captured(self, prompts: list[Any]) -> None:
        """Raise `SilentNoOpError` unless rewards were captured, of these prompts."""
        if not self._captured:
            raise SilentNoOpError(
                f"rollouts were generated but no rewards were computed: trl {trl.__version__} or a subclass computes "
                "them without _calculate_rewards, so the curriculum would never learn"
            )
        if self._captured["prompts"] != prompts:
            raise SilentNoOpError(
                "the prompts that were scored are not those that the curriculum chose: something between replaced or "
                "reordered them (a subclass's _generate_and_score_completions?)"
            )

    @property
    def _batch_scale(self) -> AdvantageScale:
        """How advantages are scaled over the groups that are trained on, where these are not what one call gave."""
        trl_scales = self.gate is None and not self._screens and not self._allocates
        return "" if trl_scales else self._own_scale

    @property
    def _own_scale(self) -> AdvantageScale:
        """How the trainer scales advantages over a batch."""
        if getattr(self, "scale_rewards", None) == "batch":
            return "batch-std"
        return "batch-normalised" if getattr(self, "normalize_advantages", False) else ""

    def _advantages(
        self, rewards: np.ndarray, advantages: np.ndarray, sizes: list[int], used: list[bool] | None = None
    ) -> torch.Tensor:
        """The advantages (N,) of whole groups: as the trainer gave them or, of merged calls, by rewards (N,).

        Where not all rollouts are `used`, (N,) bool, the advantages of those that are, by the rewards of all.
        """
        device = self.accelerator.device
        numbers = torch.tensor(rewards, dtype=torch.float32, device=device)
        given = torch.tensor(advantages, device=device)
        if self._screens or self._allocates:
            given = group_advantages(self._advantage_kind, numbers, sizes)
        scaled = scale_advantages(self._batch_scale, given, numbers, sizes)
        return self._of_used(scaled, sizes, used)

    def _of_used(self, advantages: torch.Tensor, sizes: list[int], used: list[bool] | None) -> torch.Tensor:
        """Those of the rollouts that are trained on, times the weights of the prompts if these weigh the same."""
        if used is not None and not all(used):
            advantages = advantages[torch.tensor(used, device=advantages.device)]
            sizes = [int(own.sum()) for own in np.split(np.array(used), np.cumsum(sizes)[:-1])]
        if not self._weighs_prompts:
            return advantages
        weights = torch.tensor(prompt_weights(sizes), dtype=advantages.dtype, device=advantages.device)
        return advantages * weights

    def _posterior_advantages(
        self, rewards: np.ndarray, told: np.ndarray, sizes: list[int], beliefs: np.ndarray, used: list[bool]
    ) -> torch.Tensor:
        """MaPP's advantages (N,) by the beliefs (P, 2) about the groups' prompts, with the rewards told (N,) in them.

        `used` as in `_advantages`.

        Raises:
            ConfigError: a reward that is neither 0 nor 1, or other rewards than those told.
        """
        known = rewards[~np.isnan(rewards)]
        if (odd := known[(known != 0.0) & (known != 1.0)]).size:
            raise ConfigError(
                f"posterior advantages are for rewards of 0 and 1, got a reward of {odd[0]:g}; use a binary reward, or "
                "the trainer's own advantages"
            )
        if not np.array_equal(rewards, told, equal_nan=True):
            raise ConfigError(
                "posterior advantages need one reward, and the rewards that are trained on are not those that say what "
                "is solved; leave the other reward functions out, or use the trainer's own advantages"
            )
        alpha, beta = torch.tensor(beliefs).unbind(dim=1)
        found = posterior_advantages(torch.tensor(rewards), alpha, beta, sizes).float()  # in double precision
        return self._of_used(found.to(self.accelerator.device), sizes, used)

    @property
    def _advantage_kind(self) -> AdvantageKind:
        if not hasattr(self, "scale_rewards"):
            return "leave-one-out"
        return "std" if self.scale_rewards == "group" else "centred"

    def _told_advantages(self, rewards: np.ndarray, sizes: list[int]) -> np.ndarray:
        """The advantages (N,) that the rewards (N,) would have, were they what is trained on."""
        numbers = torch.tensor(rewards, dtype=torch.float32)
        within = group_advantages(self._advantage_kind, numbers, sizes)
        return np.asarray(scale_advantages(self._own_scale, within, numbers, sizes).numpy())
