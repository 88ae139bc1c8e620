"""The simplest policies: one candidate after another, until one is good enough, or until their answers agree.

Good by its value, or by its own text. The rules of agreement are those of the command `consistency`: they use answers
only, and need no head; here the candidates are decoded in the batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rollwise.inference.policies.agreement import AdaptiveConsistency, EarlyStopping, StoppingRule
from rollwise.inference.policies.candidates import CARRY_ON, BoolArray, Candidates, Decision
from rollwise.options import Count, Number, check_fields


class _OneAfterAnother:
    """Begins `width` candidates, and another whenever one ends, until a finished one is good enough."""

    width: int

    def __post_init__(self) -> None:
        check_fields(self)

    def first(self, k: int) -> int:
        return min(k, self.width)

    def due(self, step: int) -> bool:
        return False

    def decide(self, candidates: Candidates) -> Decision:
        running = candidates.running
        if (candidates.finished & self.good(candidates)).any():
            return Decision(tuple(np.flatnonzero(running).tolist()), stop=True)
        return Decision(launch=max(0, min(int(candidates.waiting.sum()), self.width - int(running.sum()))))

    def good(self, candidates: Candidates) -> BoolArray:
        """(K,) which finished ones are good enough."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Until(_OneAfterAnother):
    """Until a finished candidate's value reaches a threshold. No prior and no price: what `sequential` must beat.

    The value is the head's verdict, or `value_end` without one. What still runs then is given up.

    Args:
        threshold: Expected reward from which on a candidate is good enough.
        width: Candidates that run at a time.

    >>> Until(width=2).first(8)
    2
    """

    name = "until"
    threshold: Number = 0.9
    width: Count = 1

    def good(self, candidates: Candidates) -> BoolArray:
        return np.asarray(candidates.choosable & (candidates.values >= self.threshold))


@dataclass(frozen=True, kw_only=True)
class UntilChecked(_OneAfterAnother):
    """Until a finished candidate's text passes a check: no head, for texts that say themselves whether they are right.

    The check is not the policy's own: the decoder (or the replay) is given `TextCheck.vote` as what answers a text.

    Args:
        width: Candidates that run at a time.

    >>> UntilChecked().first(8)
    1
    """

    name = "check"
    needs_signal = False
    votes = True
    width: Count = 1

    def good(self, candidates: Candidates) -> BoolArray:
        passed = [answer is not None for answer in candidates.answers]
        return np.array(passed or [False] * len(candidates.finished))


class _Voting(StoppingRule):
    """A stopping rule as a policy: draws as many as the rule says, waits for their answers, and asks it again.

    Choose the answer by majority: there are no values.
    """

    needs_signal = False
    votes = True

    def first(self, k: int) -> int:
        return self.draw(k, 0)

    def due(self, step: int) -> bool:
        return False

    def decide(self, candidates: Candidates) -> Decision:
        if candidates.running.any():
            return CARRY_ON
        k = len(candidates.waiting)
        drawn = k - int(candidates.waiting.sum())
        if self.agreed(candidates.answers[:drawn]):
            return Decision(stop=True)
        return Decision(launch=self.draw(k, drawn))


@dataclass(frozen=True, kw_only=True)
class EarlyStoppingVote(_Voting, EarlyStopping):
    """ESC: windows of candidates; no further one once all answers of a window are equal (Li et al. 2024).

    >>> EarlyStoppingVote(window=4).first(8)
    4
    """


@dataclass(frozen=True, kw_only=True)
class AdaptiveConsistencyVote(_Voting, AdaptiveConsistency):
    """No further candidate once the majority stays the majority with probability >= `threshold` (Aggarwal et al. 2023).

    >>> AdaptiveConsistencyVote().first(8)
    1
    """

    name = "adaptive-consistency"
