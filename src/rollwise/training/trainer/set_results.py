"""What an evaluation measured of each prompt of a set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from torch.utils.data import Sampler


class RowOrder(Sampler[int]):
    """A sampler that notes the rows it gives."""

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler
        self.rows: list[int] = []
        """Of the evaluation that goes on, or was the last; each as often as its prompt has rollouts."""

    def __iter__(self) -> Iterator[int]:
        self.rows = list(self.sampler)
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.sampler)


class SetResults:
    """Collects the results of one set's prompts, batch by batch.

    Args:
        generations: rollouts of each prompt.
        own: the set's name among those that the trainer was given, "" for the only one; None for another set.
    """

    def __init__(self, generations: int, *, own: str | None) -> None:
        self.generations, self.own = generations, own
        self.scores: dict[str, float] = {}
        """pass@k and the mean reward, by name."""
        self.prompts = 0
        self._rows: list[int] | None = []
        self._reward: list[float] = []
        self._successes: list[int] = []

    def add(self, rewards: np.ndarray, successes: np.ndarray, order: RowOrder | None) -> int:
        """Add a batch of all ranks; how many of its prompts count.

        Args:
            rewards: (B, n), NaN where a rollout could not be scored.
            successes: (B,).
            order: of the set's rows; None, or without rows, where they have no numbers, as in a stream. Prompts beyond
                the last row only fill up the batches of several ranks.
        """
        kept = len(rewards)
        rows = order.rows[:: self.generations] if order is not None and order.rows else None
        if rows is not None:
            kept = min(kept, max(0, len(rows) - self.prompts))
        self._rows = None if rows is None else rows
        self._reward += mean_rewards(rewards[:kept]).tolist()
        self._successes += successes[:kept].tolist()
        self.prompts += kept
        return kept

    def take_scores(self, logs: Mapping[str, Any], prefix: str) -> None:
        """Take pass@k out of what the trainer logs; TRL's own mean reward counts what only fills batches up."""
        for name, value in logs.items():
            if name.startswith(f"{prefix}pass@") and value is not None:
                self.scores[name.removeprefix(prefix)] = float(value)
        if not np.isnan(self._reward).all():
            self.scores["reward"] = float(np.nanmean(self._reward))

    def by_row(self) -> tuple[list[float], list[int]] | None:
        """Mean reward and successes of each prompt, in the order of the set's rows; None where that is not known."""
        if self._rows is None or sorted(self._rows) != list(range(self.prompts)):
            return None
        places = np.argsort(self._rows)
        return np.array(self._reward)[places].tolist(), np.array(self._successes)[places].tolist()


def mean_rewards(rewards: np.ndarray) -> np.ndarray:
    """The mean of each row's rewards (B, n) that are not NaN, (B,); NaN where all are.

    >>> mean_rewards(np.array([[1.0, np.nan], [np.nan, np.nan]])).tolist()
    [1.0, nan]
    """
    scored = ~np.isnan(rewards)
    counts = scored.sum(axis=1)
    sums = np.where(scored, rewards, 0.0).sum(axis=1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
