"""The groups of one training batch, as observers of a trainer see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from rollwise.tickets.evidence import Evidence
from rollwise.tickets.ticket import Ticket
from rollwise.training.generation.messages import Call, JudgedPrompt

NO_ADVANTAGE = 1e-3
"""Up to here an advantage is 0: of eight equal rewards the mean is off by some 1e-8, which GRPO divides by 1e-4."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A ticket's own rollouts: measured or screened, or made to train on.

    Attributes:
        ticket: the ticket.
        row: its row of the data set.
        rewards: (n,) raw rewards; NaN for a rollout that could not be scored.
        lengths: (n,) generated tokens.
        texts: n completions.
        labels: n kinds of failure; None if nobody names them.
    """

    ticket: Ticket
    row: dict[str, Any]
    rewards: np.ndarray
    lengths: np.ndarray
    texts: list[Any]
    labels: list[str | None] | None

    @classmethod
    def of(cls, ticket: Ticket, row: dict[str, Any], made: Call) -> Probe:
        """The rollouts of a call."""
        return cls(ticket, row, made.rewards, made.lengths, made.texts, made.labels)


@dataclass(frozen=True, slots=True)
class Screening:
    """Where the first rollouts of a group come from: the ticket that screened them, its step, and how many."""

    ticket: str
    step: int
    rollouts: int


@dataclass(frozen=True, slots=True)
class Groups:
    """P groups of up to G rollouts, in the order asked. With a gate that refills, P is more than are trained on.

    Where an allocator makes groups of different size, a smaller one fills the first of its G places in each array.
    Rollouts that are not trained on, of groups that are, cost and are told as the others are.

    Attributes:
        step: the training step they are for (the first, where several steps train on them).
        tickets: P tickets.
        sizes: (P,) rollouts of each group.
        rewards: (P, G) raw rewards summed over reward functions; NaN where unscorable or not there.
        advantages: (P, G) as the trainer computed them, among the groups of their round.
        lengths: (P, G) generated tokens.
        texts: P lists of completions (text or messages).
        labels: P lists of kinds of failure; None if nobody names them.
        rows: P rows of the data set.
        evidence: what these groups say.
        round: (P,) int, the round of rollouts each came from, 1 for the first.
        used: (P, G) bool, which rollouts the trainer trains on; the others of a group that trains are for its baseline.
        admitted: (P,) bool, what the gate said; True without a gate.
        trained: (P,) bool, whether the trainer trains on it: if admitted, or as filler.
        screenings: P screenings, whose rollouts are the group's first and were counted when they were made; None for a
            group that was rolled out at once.
        probes: what was measured or screened before.
        uncharged: rollouts, tokens and seconds ("s") that an oracle spent, in none of the other counts; empty without.
        judging: questions that the policy answered before, tokens of its answers and of their contexts, the "flops" and
            the seconds ("s") that took; or what a judge says that its model has cost. Empty for a curriculum with
            neither.
        judged: the judgments of these steps' candidates, in the order asked; empty for a curriculum that asks nothing.
        padding: rollouts that gave every process as many, and their tokens; they are in no group.
        gate: the gate's counts for this generation; empty without a gate.
        curriculum: the curriculum's metrics after that; they can cost a pass over the pool, so they are taken once.
        ask_seconds: time the curriculum took to choose.
        tell_seconds: time it took to learn.
    """

    step: int
    tickets: list[Ticket]
    sizes: np.ndarray
    rewards: np.ndarray
    advantages: np.ndarray
    lengths: np.ndarray
    texts: list[list[Any]]
    labels: list[list[str | None]] | None
    rows: list[dict[str, Any]]
    evidence: Evidence
    round: np.ndarray
    used: np.ndarray
    admitted: np.ndarray
    trained: np.ndarray
    screenings: list[Screening | None]
    probes: list[Probe]
    uncharged: dict[str, float]
    judging: dict[str, float]
    judged: list[JudgedPrompt]
    padding: tuple[int, int]
    gate: dict[str, float]
    curriculum: dict[str, float]
    ask_seconds: float
    tell_seconds: float

    @property
    def there(self) -> np.ndarray:
        """(P, G) bool, which places hold a rollout."""
        return np.asarray(np.arange(self.rewards.shape[1]) < self.sizes[:, None])

    def spent(self) -> tuple[int, int]:
        """Rollouts made by this generation, of whatever kind, and their tokens, those of judgments included."""
        before = [0 if s is None else s.rollouts for s in self.screenings]
        tokens = sum(int(own[n:].sum()) for n, own in zip(before, self.lengths, strict=True))
        rollouts, probed = int(self.sizes.sum()) - sum(before), self.probed()
        judged = int(self.judging.get("tokens", 0.0))
        return rollouts + probed[0] + self.padding[0], tokens + probed[1] + self.padding[1] + judged

    def probed(self) -> tuple[int, int]:
        """Rollouts made to measure or to screen, and their tokens."""
        return sum(len(p.rewards) for p in self.probes), sum(int(p.lengths.sum()) for p in self.probes)

    def metrics(self) -> dict[str, float]:
        """Means over these groups, not the probes; shares are of the groups in which something was scored."""
        ages = [self.step - s.step for s in self.screenings if s is not None]
        continued = {"continued": float(len(ages)), "screened_ago": float(np.mean(ages))} if ages else {}
        return {
            **self._shares(),
            "abs_advantage": float(np.abs(self.advantages[self.there]).mean()),
            "squared_advantage": float(np.square(self.advantages[self.there]).mean()),
            "zero_advantage": float((np.abs(self.advantages[self.there]) <= NO_ADVANTAGE).mean()),
            "ask_s": self.ask_seconds,
            "tell_s": self.tell_seconds,
            **continued,
            **self._of_sizes(),
        }

    def _shares(self) -> dict[str, float]:
        """By outcome, and of solved rollouts; none where nothing was scored, as 0 would say that no group failed."""
        evidence = self.evidence
        if not evidence.judged.any():
            return {}
        n = int(evidence.judged.sum())
        return {
            "frac_mixed": float(evidence.mixed.sum() / n),
            "frac_all_good": float(evidence.all_good.sum() / n),
            "frac_all_bad": float(evidence.all_bad.sum() / n),
            "success": float(np.nansum(evidence.solved * evidence.count) / evidence.count.sum()),
        }

    def _of_sizes(self) -> dict[str, float]:
        """Where groups differ in size, their numbers."""
        unused = float(self.sizes[self.trained].sum() - self.used.sum())
        if len(set(self.sizes.tolist())) < 2 and not unused:
            return {}
        return {
            **({"unused_rollouts": unused} if unused else {}),
            "group_size_min": float(self.sizes.min()),
            "group_size_max": float(self.sizes.max()),
            "group_size_sd": float(self.sizes.std()),
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
