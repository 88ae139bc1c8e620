"""Reading prompts: logits and last hidden state of the position from which the first new token is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rollwise.errors import ConfigError
from rollwise.inference.head.head import output_embeddings


@dataclass
class Prompt:
    """A prompt, read once; any number of rows begin from it.

    Attributes:
        length: Tokens.
        logits: (V,) of the first new token.
        hidden: (H,) last hidden state at its last token.
        keys: For each layer (heads, length, D).
        values: Likewise.
    """

    length: int
    logits: torch.Tensor
    hidden: torch.Tensor
    keys: list[torch.Tensor]
    values: list[torch.Tensor]


class LastHidden:
    """Calls a causal model for the logits of the last position, and the hidden state that its output layer saw there.

    The logits are the model's own, whatever it does with them (scaling, capping), so that a signal read beside them
    changes no generation.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self._seen: torch.Tensor | None = None

    def __call__(self, **inputs: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """The model's inputs -> (n, V) logits, (n, H) hidden states.

        Raises:
            ConfigError: the model has no output embeddings, or does not use them.
        """
        handle = output_embeddings(self.model).register_forward_pre_hook(self._see)
        try:
            logits = self.model(**inputs, use_cache=True, logits_to_keep=1).logits
        finally:
            handle.remove()
        if self._seen is None:
            raise ConfigError(
                f"{type(self.model).__name__} does not use its output embeddings: its state can't be read"
            )
        hidden, self._seen = self._seen, None
        return logits[:, -1], hidden[:, -1]

    def prompts(self, prompts: Sequence[Sequence[int]], cache: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Prompts, padded on the left: (n, V) logits, (n, H) hidden states, and the (n, width) mask, 0 on padding."""
        device = self.model.device
        width = max(map(len, prompts))
        pads = [width - len(prompt) for prompt in prompts]
        ids = torch.tensor([[0] * pad + list(prompt) for pad, prompt in zip(pads, prompts, strict=True)], device=device)
        mask = torch.tensor([[0] * pad + [1] * (width - pad) for pad in pads], device=device)
        places = (mask.cumsum(-1) - 1).clamp(min=0)
        logits, hidden = self(input_ids=ids, attention_mask=mask, position_ids=places, past_key_values=cache)
        return logits, hidden, mask

    def _see(self, module: Any, inputs: tuple[torch.Tensor, ...]) -> None:
        self._seen = inputs[0]
