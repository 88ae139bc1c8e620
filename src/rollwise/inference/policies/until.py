"""The simplest policies: one candidate after another, until one is good enough. By its value, or by its own text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rollwise.inference.policies.candidates import BoolArray, Candidates, Decision
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
        return np.asarray(candidates.values >= self.threshold)


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
