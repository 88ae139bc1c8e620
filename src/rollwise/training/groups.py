"""What one generation of a trainer gave, group by group: what observers of a trainer see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from rollwise.evidence import Evidence
from rollwise.ticket import Ticket


@dataclass(frozen=True, slots=True)
class Groups:
    """P groups of G rollouts, in the order asked. With a gate that refills, P is more than are trained on.

    Attributes:
        step: the training step they are for (the first, where several steps train on them).
        tickets: P tickets.
        rewards: (P, G) raw rewards summed over reward functions; NaN for a rollout that could not be scored.
        advantages: (P, G) as the trainer computed them, among the groups of their round.
        lengths: (P, G) generated tokens.
        texts: P lists of G completions (text or messages).
        rows: P rows of the data set.
        evidence: what the curriculum learnt from them.
        round: (P,) int, the round of rollouts each came from, 1 for the first.
        admitted: (P,) bool, what the gate said; True without a gate.
        trained: (P,) bool, whether the trainer trains on it: if admitted, or as filler.
        gate: the gate's counts for this generation; empty without a gate.
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
    round: np.ndarray
    admitted: np.ndarray
    trained: np.ndarray
    gate: dict[str, float]
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


def join_evidence(parts: Sequence[Evidence]) -> Evidence:
    """Several rounds' evidence, one after another."""
    if len(parts) == 1:
        return parts[0]
    names = [f.name for f in fields(Evidence) if f.name not in ("scores", "labels")]
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return Evidence(
        scores=tuple(s for part in parts for s in part.scores),
        labels=tuple(own for part in parts for own in part.labels),
        **arrays,
    )
