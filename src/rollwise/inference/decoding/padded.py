"""A causal model whose batch is whole before the next begins; for models that slots can't hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import DynamicCache

from rollwise.inference.decoding.prefill import LastHidden, Prompt


class PaddedRows:
    """Rows of one batch: they leave, but none take their place. For models that slots can't hold.

    Left-padded, with the model's own kind of cache.
    """

    refills = False

    def __init__(self, model: Any, slots: int) -> None:
        self.model, self.slots = model, slots
        self.owners: list[Any] = []
        self._read = LastHidden(model)
        self._cache: Any = None
        self._mask = torch.zeros(0)

    @property
    def free(self) -> int:
        """All slots, or none: a batch is whole before the next begins."""
        return 0 if self.owners else self.slots

    def prefill(self, prompts: Sequence[Sequence[int]]) -> list[Prompt]:
        """Read prompts, in one batch."""
        self._cache = DynamicCache(config=self.model.config)
        logits, hidden, self._mask = self._read.prompts(prompts, self._cache)
        self._prompts = [Prompt(len(p), logits[i], hidden[i], [], []) for i, p in enumerate(prompts)]
        return self._prompts

    def begin(self, rows: Sequence[tuple[Prompt, Any]]) -> None:
        """All rows of the prompts that were just read."""
        number = {id(prompt): i for i, prompt in enumerate(self._prompts)}
        index = torch.tensor([number[id(prompt)] for prompt, _ in rows], device=self.model.device)
        self._cache.reorder_cache(index)
        self._mask = self._mask[index]
        self.owners = [owner for _, owner in rows]

    def forward(self, tokens: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """One token for each row -> (n, V) logits of the next ones, (n, H) last hidden states."""
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(self.owners), 1)], dim=1)
        return self._read(
            input_ids=torch.tensor(tokens, device=self.model.device)[:, None],
            attention_mask=self._mask,
            position_ids=self._mask.sum(1, keepdim=True) - 1,
            past_key_values=self._cache,
        )

    def remove(self, rows: Sequence[int]) -> None:
        """These rows leave."""
        gone = set(rows)
        kept = [row for row in range(len(self.owners)) if row not in gone]
        self.owners = [self.owners[row] for row in kept]
        if kept:
            index = torch.tensor(kept, device=self.model.device)
            self._cache.reorder_cache(index)
            self._mask = self._mask[index]
