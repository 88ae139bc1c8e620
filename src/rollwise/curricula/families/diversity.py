"""A batch chosen by scores and by how far its prompts lie apart: greedy max-sum diversification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rollwise.judges.embedding import standardisation, vectors_of
from rollwise.pool import PromptPool
from rollwise.state import decode_array, encode_array


class Diversity:
    """Adds `weight` times two mean cosine distances to scores: to the batch so far, and to the batches before.

    The prompt of the greatest sum is taken, one after another. Vectors are standardised over the pool, then of length
    1, so that the mean distance to a set is 1 - x . (mean of the set). The batches before count by a mean that moves by
    `history` at each step.

    Args:
        pool: needs the column.
        who: asks for it, for messages.
        column: of vectors, (N, d).
        weight: lambda.
        history: weight of the newest batch in the mean of the batches before; 0: they don't count.

    >>> pool = PromptPool(ids=["a", "b", "c"], columns={"embedding": [[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]})
    >>> diversity = Diversity(pool, "Mine", weight=0.5)
    >>> diversity.choose(np.array([0, 1, 2]), np.array([1.0, 0.9, 0.5]), 2).tolist()   # b is like a, c is not
    [0, 2]
    """

    def __init__(
        self, pool: PromptPool, who: str, *, column: str = "embedding", weight: float, history: float = 0.5
    ) -> None:
        remedy = "add one (rollwise.models.add_features), or leave diversity out"
        self.vectors = vectors_of(pool, column, f"diversity of {who}", remedy)
        self.weight, self.history = weight, history
        self.mean, self.inverse_scale = standardisation(self.vectors)
        self.before = np.zeros(len(self.mean))
        self.batch, self.size = np.zeros(len(self.mean)), 0  # sum of the vectors of this step's prompts, how many

    def choose(self, slots: np.ndarray, scores: np.ndarray, k: int) -> np.ndarray:
        """Which `k` of the slots (K,) to take, by their scores (K,): indices (k,) in the order taken.

        Of equal sums the first is taken.
        """
        x = (self.vectors[slots] - self.mean) * self.inverse_scale
        x /= np.maximum(np.sqrt((x * x).sum(axis=1, keepdims=True)), 1e-12)
        gain, inside = scores - self.weight * (x @ self.before), x @ self.batch
        chosen = np.empty(min(k, len(slots)), dtype=np.int64)
        for i in range(len(chosen)):
            chosen[i] = np.argmax(gain - self.weight / max(self.size, 1) * inside)
            gain[chosen[i]] = -np.inf
            inside += x @ x[chosen[i]]
            self.batch += x[chosen[i]]
            self.size += 1
        return chosen

    def end_step(self) -> None:
        """The batch of this step becomes one of those before."""
        if self.size:
            self.before += self.history * (self.batch / self.size - self.before)
        self.batch, self.size = np.zeros_like(self.batch), 0

    def state(self) -> dict[str, Any]:
        """JSON-safe: the batches, and what the vectors are standardised by."""
        names = ("before", "batch", "mean", "inverse_scale")
        return {"size": self.size, **{name: encode_array(getattr(self, name)) for name in names}}

    def load(self, state: Mapping[str, Any]) -> None:
        """Take back `state`; vectors of another length begin anew."""
        if decode_array(state["mean"]).shape == self.mean.shape:
            self.size = int(state["size"])
            for name in ("before", "batch", "mean", "inverse_scale"):
                setattr(self, name, decode_array(state[name]))
