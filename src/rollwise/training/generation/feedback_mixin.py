"""The rewards of a TRL trainer's rollouts, as they come by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import trl

from rollwise.errors import SilentNoOpError

if TYPE_CHECKING:
    from typing import Any as TrlTrainer  # a mixin: what it calls is the trainer's
else:
    TrlTrainer = object


class FeedbackMixin(TrlTrainer):
    """Keeps the rewards of a call to the trainer's generation, and what they are of."""

    success: int | None
    """Which reward function's rewards the curriculum is told; None for the weighted sum that is trained on."""
    _captured: dict[str, Any] | None

    def _total_rewards(self, captured: dict[str, Any]) -> torch.Tensor:
        """The weighted sum over reward functions, flat; NaN only where every function gave NaN, as TRL counts it."""
        rewards = captured["rewards"]
        total: torch.Tensor = (rewards * self.reward_weights.to(rewards.device).unsqueeze(0)).nansum(dim=1)
        total[torch.isnan(rewards).all(dim=1)] = torch.nan
        return total

    def _told_rewards(self, captured: dict[str, Any]) -> torch.Tensor:
        """What says whether a rollout is solved, flat: one function's rewards, or the sum where none is named."""
        if self.success is None:
            return self._total_rewards(captured)
        told: torch.Tensor = captured["rewards"][:, self.success]
        return told

    def _take_captured(self) -> dict[str, Any] | None:
        captured, self._captured = self._captured, None
        return captured

    def _require_feedback(self, prompts: list[Any]) -> dict[str, Any]:
        captured = self._take_captured()
        if captured is None:
            raise SilentNoOpError(
                f"rollouts were generated but no rewards were computed: trl {trl.__version__} or a subclass computes "
                "them without _calculate_rewards, so the curriculum would never learn"
            )
        if [row.get("prompt") for row in captured["inputs"]] != prompts:
            raise SilentNoOpError(
                "the prompts that were scored are not those that the curriculum chose: something between replaced or "
                "reordered them (a subclass's _generate_and_score_completions?)"
            )
        return captured
