"""Self-consistency that stops early as policies of the decoder: they use answers only, and need no head.

The rules are those of the command `consistency`; here the candidates are decoded in the batch.
"""

from __future__ import annotations

from dataclasses import dataclass

from rollwise.inference.policies.agreement import AdaptiveConsistency, EarlyStopping, StoppingRule
from rollwise.inference.policies.candidates import CARRY_ON, Candidates, Decision


class _Voting:
    """A stopping rule as a policy: draws as many as the rule says, waits for their answers, and asks it again.

    Choose the answer by majority: there are no values.
    """

    needs_signal = False
    votes = True

    def first(self: StoppingRule, k: int) -> int:
        return self.draw(k, 0)

    def due(self, step: int) -> bool:
        return False

    def decide(self: StoppingRule, candidates: Candidates) -> Decision:
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
    """No further candidate once the majority stays the majority with probability > `threshold` (Aggarwal et al. 2023).

    >>> AdaptiveConsistencyVote().first(8)
    1
    """

    name = "adaptive-consistency"
