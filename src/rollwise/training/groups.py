"""What one generation of a trainer gave, group by group: what observers of a trainer see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rollwise.evidence import Evidence
from rollwise.ticket import Ticket


@dataclass(frozen=True, slots=True)
class Groups:
    """P groups of G rollouts, in the order asked.

    Attributes:
        step: the training step they are for (the first, where several steps train on them).
        tickets: P tickets.
        rewards: (P, G) raw rewards summed over reward functions; NaN for a rollout that could not be scored.
        advantages: (P, G) as the trainer computed them.
        lengths: (P, G) generated tokens.
        texts: P lists of G completions (text or messages).
        rows: P rows of the data set.
        evidence: what the curriculum learnt from them.
        ask_seconds: time the curriculum took to choose.
        tell_seconds: time it took to learn.
    """

    step: int
    tickets: list[Ticket]
    rewards: np.ndarray
    advantages: np.ndarray
    lengths: np.ndarray
    texts: list[list[Any]]
    rows: list[dict[str, Any]]
    evidence: Evidence
    ask_seconds: float
    tell_seconds: float

    def metrics(self) -> dict[str, float]:
        """Means over these groups; shares are of the groups in which something was scored."""
        judged = self.evidence.count > 0
        n = max(1, int(judged.sum()))
        mixed = self.evidence.mixed & judged
        good = judged & ~mixed & (self.evidence.solved >= 1.0)
        return {
            "frac_mixed": float(mixed.sum() / n),
            "frac_all_good": float(good.sum() / n),
            "frac_all_bad": float((judged & ~mixed & ~good).sum() / n),
            "success": float(np.nansum(self.evidence.solved * self.evidence.count) / max(1, self.evidence.count.sum())),
            "abs_advantage": float(np.abs(self.advantages).mean()),
            "ask_s": self.ask_seconds,
            "tell_s": self.tell_seconds,
        }
