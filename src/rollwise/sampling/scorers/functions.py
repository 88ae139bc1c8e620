"""Reward functions that are used together: their names, weights and range, and which says what is solved."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rollwise.sampling.scorers.calling import awaited
from rollwise.tickets.outcome import RewardSpec


@dataclass(frozen=True)
class RewardFunctions:
    """F reward functions of TRL's signature, and how they are used.

    Attributes:
        functions: F functions; each names itself in its errors.
        names: F names.
        weights: F weights of the sum that is trained on.
        success: which of them says what is solved; None for the sum.
        why: why this one, in a sentence; empty where there was no choice.
        spec: the range of the rewards that are told.
        declared: whether that range was given.
        digest: a hash of the files that define them; "" without any.
    """

    functions: list[Callable[..., Any]]
    names: list[str]
    weights: list[float]
    success: int | None
    why: str
    spec: RewardSpec
    declared: bool
    digest: str

    @property
    def told(self) -> Callable[..., list[float | None]]:
        """One function, not asynchronous: the rewards that say what is solved."""
        if self.success is not None:
            return awaited(self.functions[self.success])
        return functools.partial(_summed, [awaited(f) for f in self.functions], self.weights)


def _summed(functions: Sequence[Callable[..., Any]], weights: Sequence[float], /, **columns: Any) -> list[float | None]:
    """As TRL sums: what a function can't score counts as 0, unless none can."""
    scored = [function(**columns) for function in functions]
    return [
        None if all(value is None for value in own) else sum(w * (v or 0.0) for w, v in zip(weights, own, strict=True))
        for own in zip(*scored, strict=True)
    ]
