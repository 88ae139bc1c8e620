"""Implicit evidence of any form: rates of a batch in, rates of the pool out (BOTS, section 3.2)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from rollwise.errors import ConfigError
from rollwise.options import Declared
from rollwise.pool import PromptPool


class ImplicitEvidence(Declared, ABC):
    """Estimates the rate of every prompt from those of a batch: p~(k, B_t) of BOTS, section 3.2. Implement `rates`.

    A curriculum works with what `fresh` returns, calls `bind` once, and `settle` at the end of every step that had
    outcomes. Options are keyword-only arguments of `__init__`: checked, and saved.

    >>> class BatchMean(ImplicitEvidence):
    ...     def bind(self, pool, seed):
    ...         self.n = len(pool)
    ...     def rates(self, slots, rates):
    ...         return np.full(self.n, rates.mean())
    >>> import rollwise as rw
    >>> bots = rw.BOTS(rw.PromptPool(ids=["a", "b"]), implicit=BatchMean())
    >>> (ticket,) = bots.ask(1)
    >>> _ = bots.tell([rw.Outcome(ticket.id, [1, 1, 1, 0])])
    >>> sorted(bots.posterior()[0].round(9).tolist())          # 1 + 3; and 1 + 0.1 * 4 * 0.75 of the other prompt
    [1.3, 4.0]
    """

    def fresh(self) -> Self:
        """One with these options that has learnt nothing; by default a new one of the same attributes."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def bind(self, pool: PromptPool, seed: int) -> None:
        """Prepare for this pool, and create everything that changes; random numbers come from `seed`."""

    @abstractmethod
    def rates(self, slots: np.ndarray, rates: np.ndarray) -> np.ndarray | None:
        """The rates (N,) in [0, 1] that a batch implies; NaN where it says nothing, None if that is everywhere.

        It may be called several times in a step, as outcomes come in, and must change nothing.

        Args:
            slots: (B,) the batch's prompts, B > 0.
            rates: (B,) their mean scores.
        """

    def before(self, slots: np.ndarray) -> np.ndarray | None:
        """The rates implied for `slots` (B,) before this step's batch; None if there are none."""
        return None

    def held_out(self, slots: np.ndarray, rates: np.ndarray) -> np.ndarray | None:
        """The rates implied for each prompt of a batch (B,) without its own rate (B,), to be compared with it.

        By default `before`. A source that keeps nothing from step to step predicts each from the others of the batch;
        `BOTS(adaptive=True)` needs either.
        """
        return self.before(slots)

    @property
    def predicts(self) -> bool:
        """Whether it has `before` or `held_out`."""
        kind = type(self)
        return kind.before is not ImplicitEvidence.before or kind.held_out is not ImplicitEvidence.held_out

    def settle(self, slots: np.ndarray, rates: np.ndarray, count: np.ndarray) -> None:
        """End the step: keep what the batch (B,) says for later; `count` (B,) rollouts are behind its rates."""

    def metrics(self) -> dict[str, float]:
        """Numbers of its own."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """All that it keeps from step to step, JSON-safe."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take back `state_dict`, once bound."""


class NoEvidence(ImplicitEvidence):
    """None: beliefs rest on each prompt's own rollouts."""

    def rates(self, slots: np.ndarray, rates: np.ndarray) -> np.ndarray | None:
        return None


class Blend(ImplicitEvidence):
    """Several sources at once: the mean of their rates by fixed shares, over those that say something of a prompt.

    The pseudo-rollouts of a prompt stay n in all (section 3.2), of which each source has its share.

    Args:
        sources: what is combined.
        shares: of each; equal by default. Only their ratios count.

    Raises:
        ConfigError: another number of shares than of sources, or shares that add up to 0.
    """

    def __init__(self, sources: Sequence[ImplicitEvidence], *, shares: Sequence[float] | None = None) -> None:
        self.sources = list(sources)
        self.shares = [1.0] * len(self.sources) if shares is None else [float(share) for share in shares]
        if len(self.shares) != len(self.sources) or not sum(self.shares) > 0 or min(self.shares) < 0:
            raise ConfigError(
                f"implicit_shares must be {len(self.sources)} numbers >= 0, one for each source of implicit evidence, "
                f"not all 0, got {list(self.shares)!r}"
            )

    def fresh(self) -> Self:
        return type(self)([source.fresh() for source in self.sources], shares=self.shares)

    def bind(self, pool: PromptPool, seed: int) -> None:
        for number, source in enumerate(self.sources):
            source.bind(pool, (seed + number) % 2**63)

    def rates(self, slots: np.ndarray, rates: np.ndarray) -> np.ndarray | None:
        return weighted_rates([source.rates(slots, rates) for source in self.sources], self.shares)

    def before(self, slots: np.ndarray) -> np.ndarray | None:
        return weighted_rates([source.before(slots) for source in self.sources], self.shares)

    def held_out(self, slots: np.ndarray, rates: np.ndarray) -> np.ndarray | None:
        return weighted_rates([source.held_out(slots, rates) for source in self.sources], self.shares)

    @property
    def predicts(self) -> bool:
        return any(source.predicts for source in self.sources)

    def settle(self, slots: np.ndarray, rates: np.ndarray, count: np.ndarray) -> None:
        for source in self.sources:
            source.settle(slots, rates, count)

    def metrics(self) -> dict[str, float]:
        return {name: value for source in self.sources for name, value in source.metrics().items()}

    def state_dict(self) -> dict[str, Any]:
        return {"sources": [source.state_dict() for source in self.sources]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for source, saved in zip(self.sources, state["sources"], strict=True):
            source.load_state_dict(saved)


def weighted_rates(parts: Sequence[np.ndarray | None], shares: Sequence[float]) -> np.ndarray | None:
    """The weighted mean (N,) of S estimates, over those that are known; NaN where none is, None if all are None.

    >>> weighted_rates([np.array([0.2, np.nan]), np.array([0.8, 0.5]), None], [2.0, 1.0, 7.0]).round(9).tolist()
    [0.4, 0.5]
    """
    known = [(part, share) for part, share in zip(parts, shares, strict=True) if part is not None and share > 0]
    if not known:
        return None
    weight = np.array([np.where(np.isnan(part), 0.0, share) for part, share in known])
    total = (weight * np.nan_to_num([part for part, _ in known])).sum(axis=0)
    return np.asarray(np.divide(total, weight.sum(axis=0), out=np.full(len(total), np.nan), where=weight.any(axis=0)))
