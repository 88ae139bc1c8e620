"""How probable the policy finds answers to its contexts, with a TRL trainer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rollwise.training.judging.shared_prefix import common_prefix, last_logits

if TYPE_CHECKING:
    from typing import Any as TrlTrainer  # a mixin: what it calls is the trainer's
else:
    TrlTrainer = object

_WORTH_IT = 16
"""Contexts that begin with as many tokens alike are read once as far as that; another forward pass costs time too."""


class ReadingMixin(TrlTrainer):
    """Reads contexts with the policy; what several begin with alike is read once."""

    @staticmethod
    def _shared(contexts: list[list[int]]) -> int:
        """Of how many tokens contexts that begin alike are worth reading once."""
        shared = common_prefix(contexts)
        return shared if shared >= _WORTH_IT else 0

    def _padded(self, rows: list[list[int]], side: str) -> Any:
        """`input_ids` and `attention_mask` of R rows, each (R, longest), on this process's device."""
        return self._tokenizer.pad(
            {"input_ids": rows}, padding_side=side, return_attention_mask=True, return_tensors="pt"
        ).to(self.accelerator.device)

    def _logps(
        self, model: Any, ids: torch.Tensor, mask: torch.Tensor, keep: int, prefix: torch.Tensor | None
    ) -> torch.Tensor:
        """(R, keep, V) of what comes after each of the last positions, at the temperature of the sampling."""
        with self.accelerator.autocast():
            logits = last_logits(model, ids, mask, keep, prefix)
        return torch.log_softmax(logits.float() / self.temperature, dim=-1)

    def _choice_logps(
        self, model: Any, ids: torch.Tensor, mask: torch.Tensor, tokens: torch.Tensor, prefix: torch.Tensor | None
    ) -> torch.Tensor:
        """(R, A) log-probabilities of A answers of one token."""
        return self._logps(model, ids, mask, 1, prefix)[:, 0, tokens]
