"""What one forward pass over a prompt says of its own tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from rollwise.judges.base import Measure
from rollwise.models.loading import evaluating
from rollwise.models.sampler import plan_batches


def read_prompts(model: Any, encoded: Sequence[list[int]], measure: Measure, *, batch_size: int) -> np.ndarray:
    """The measure (K,) of K prompts, lists of two tokens or more; one forward pass for each batch.

    Rows are padded on the right, where causal attention never sees the padding.
    """
    found = np.empty(len(encoded))
    with evaluating(model), torch.inference_mode():
        for batch in plan_batches([len(tokens) for tokens in encoded], batch_size):
            rows = [torch.tensor(encoded[row]) for row in batch]
            ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).to(model.device)
            lengths = torch.tensor([len(row) for row in rows], device=model.device)
            mask = (torch.arange(ids.shape[1], device=model.device) < lengths[:, None]).long()
            logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits
            for place, row in enumerate(batch):
                end = len(encoded[row])
                logps = logits[place, : end - 1].float().log_softmax(-1)
                found[row] = float(measured(logps, ids[place, 1:end], measure))
    return found


def measured(logps: Any, tokens: Any, measure: Measure) -> Any:
    """The mean entropy in nats, or the perplexity, of T tokens (T,) by their predictions, log-probabilities (T, V)."""
    if measure == "entropy":
        return torch.special.entr(logps.exp()).sum(-1).mean()
    return (-logps.gather(-1, tokens[:, None]).mean()).exp()
