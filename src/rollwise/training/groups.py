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
        curriculum: the curriculum's metrics after that; they can cost a pass over the pool, so they are taken once.
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
    curriculum: dict[str, float]
    ask_seconds: float
    tell_seconds: float

    def metrics(self) -> dict[str, float]:
        """Means over these groups; shares are of the groups in which something was scored."""
        evidence = self.evidence
        n = max(1, int(evidence.judged.sum()))
        return {
            "frac_mixed": float(evidence.mixed.sum() / n),
            "frac_all_good": float(evidence.all_good.sum() / n),
            "frac_all_bad": float(evidence.all_bad.sum() / n),
            "success": float(np.nansum(evidence.solved * evidence.count) / max(1, evidence.count.sum())),
            "abs_advantage": float(np.abs(self.advantages).mean()),
            "ask_s": self.ask_seconds,
            "tell_s": self.tell_seconds,
        }
