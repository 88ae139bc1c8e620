"""What a policy of the adaptive decoder sees of one prompt's candidates, and what it may answer. numpy alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Candidates:
    """The K candidates of one prompt at one moment.

    Attributes:
        running: (K,) being generated.
        finished: (K,) whole, or cut off at the token limit; their value is `value_end`.
        waiting: (K,) not begun. Those that are in none of the three were abandoned.
        tokens: (K,) generated so far.
        chances: (K, R) of each reward state: the mean of the last reads; for a finished one the verdict, or the mean
            of the last 16; for one that has no token yet what is read at the prompt.
        states: (R,) rewards of the states.
        remaining: (K,) expected tokens still to come; 0 where nothing is.
        prompt_value: V(x), the value at the prompt itself, before any token.
        typical: E[length] at the prompt: the tokens that one whole candidate is expected to take.
        limit: Most tokens of a candidate.
        lowest: (K,) the lowest mean value of any `window` reads in a row, for a policy that has a `window`; a finished
            candidate of fewer reads has the mean of all, a running one infinity: there is nothing low about it yet.
        answers: (K,) the final answers of finished candidates, for a policy that votes; None of the others, and of
            those that have none.
        cut: (K,) finished because they were cut off at the token limit; empty if none was.
    """

    running: BoolArray
    finished: BoolArray
    waiting: BoolArray
    tokens: IntArray
    chances: FloatArray
    states: FloatArray
    remaining: FloatArray
    prompt_value: float
    typical: float
    limit: int
    lowest: FloatArray = field(default_factory=lambda: np.zeros(0))
    answers: tuple[str | None, ...] = ()
    cut: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=bool))

    @property
    def choosable(self) -> BoolArray:
        """(K,) finished ones that are chosen among by value: those that were cut off only where no other finished."""
        whole = self.finished & ~self.cut if len(self.cut) else self.finished
        return whole if whole.any() else self.finished

    @property
    def values(self) -> FloatArray:
        """(K,) expected rewards."""
        return np.asarray(self.chances @ self.states)

    @property
    def step(self) -> int:
        """Tokens of the longest running candidate: decode steps, where all began together."""
        return int(self.tokens[self.running].max(initial=0))


@dataclass(frozen=True)
class Decision:
    """What becomes of the candidates.

    Attributes:
        abandon: Indices of running candidates that are given up.
        launch: How many of the waiting ones begin now.
        stop: No more of them will ever begin.
    """

    abandon: tuple[int, ...] = ()
    launch: int = 0
    stop: bool = False


CARRY_ON = Decision()


class Policy(Protocol):
    """Spends compute by the candidates' values; a pure function of what it sees.

    One that has an attribute `window`, a number of tokens, is shown `Candidates.lowest`; one whose attribute `votes` is
    true, `Candidates.answers`; one whose `needs_signal` is false runs without a head; one that has a method `voters`
    says who votes in the end, by the rule `confident` of `selection.choose`.
    """

    @property
    def name(self) -> str:
        """In tables."""

    def first(self, k: int) -> int:
        """How many of K candidates begin at once, at least 1."""

    def due(self, step: int) -> bool:
        """Whether to ask at this step, the tokens of the longest that runs. Whenever one finishes, it is asked too."""

    def decide(self, candidates: Candidates) -> Decision:
        """What to abandon and what to launch; may never leave a prompt without a running or finished candidate."""


def needs_signal(policy: Policy) -> bool:
    """True if the policy needs a value signal (a head or confidence)."""
    return bool(getattr(policy, "needs_signal", True))


def votes(policy: Policy) -> bool:
    """True if the policy uses final answers."""
    return bool(getattr(policy, "votes", False))
