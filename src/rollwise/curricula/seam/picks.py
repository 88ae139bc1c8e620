"""`Picks`: the slots a method chose. `JoinReport`: how a saved state matched the pool."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from rollwise.errors import ConfigError
from rollwise.options import shown
from rollwise.rng import RngStreams


@dataclass(frozen=True, slots=True)
class Picks:
    """K chosen slots, in the order chosen.

    Attributes:
        slots: (K,) int64.
        lanes: K reasons.
        predicted: (K,) believed mean scores, NaN where unknown.
        propensity: (K,) probabilities with which they were drawn, NaN where unknown.
        have: (K,) int64, rollouts of the group that a screening made already.
        variance: (K,) predicted variances of the scores, NaN where unknown.
        railed: (K,) bool, whether the rails chose it.
    """

    slots: np.ndarray
    lanes: list[str]
    predicted: np.ndarray
    propensity: np.ndarray
    have: np.ndarray
    variance: np.ndarray
    railed: np.ndarray

    @classmethod
    def of(
        cls,
        slots: np.ndarray,
        lane: str,
        *,
        predicted: np.ndarray | None = None,
        propensity: np.ndarray | None = None,
        variance: np.ndarray | None = None,
        have: int = 0,
    ) -> Picks:
        """Slots that all come by one lane."""
        unknown = np.full(len(slots), np.nan)
        return cls(
            slots=slots,
            lanes=[lane] * len(slots),
            predicted=unknown if predicted is None else predicted,
            propensity=unknown if propensity is None else propensity,
            have=np.full(len(slots), have, dtype=np.int64),
            variance=unknown if variance is None else variance,
            railed=np.zeros(len(slots), dtype=bool),
        )

    @classmethod
    def join(cls, parts: Sequence[Picks]) -> Picks:
        """Several picks, one after another."""
        parts = [part for part in parts if len(part)]
        if not parts:
            return _NOBODY
        if len(parts) == 1:
            return parts[0]
        return cls(
            slots=np.concatenate([p.slots for p in parts]),
            lanes=[lane for p in parts for lane in p.lanes],
            predicted=np.concatenate([p.predicted for p in parts]),
            propensity=np.concatenate([p.propensity for p in parts]),
            have=np.concatenate([p.have for p in parts]),
            variance=np.concatenate([p.variance for p in parts]),
            railed=np.concatenate([p.railed for p in parts]),
        )

    @classmethod
    def interleave(cls, parts: Sequence[Picks], rng: RngStreams) -> Picks:
        """Picks of several kinds merged at random, each kind in its own order.

        A gate with groups left over trains on those asked first: else these would all be of the first kind.
        """
        sizes = [len(part) for part in parts if len(part)]
        if len(sizes) < 2:
            return cls.join(parts)
        kinds = rng["order"].permutation(np.repeat(np.arange(len(sizes)), sizes))
        return cls.join(parts).take(np.argsort(np.argsort(kinds, kind="stable")))

    def take(self, rows: np.ndarray) -> Picks:
        """Those of these rows (R,), in this order."""
        return Picks(
            slots=self.slots[rows],
            lanes=[self.lanes[row] for row in rows.tolist()],
            predicted=self.predicted[rows],
            propensity=self.propensity[rows],
            have=self.have[rows],
            variance=self.variance[rows],
            railed=self.railed[rows],
        )

    def __len__(self) -> int:
        return len(self.slots)


_NOBODY = Picks.of(np.empty(0, dtype=np.int64), "")


class Chooses(Protocol):
    """A method with its prompts."""

    @property
    def pool(self) -> Sized: ...

    def select(self, k: int) -> Picks: ...

    def select_probes(self, k: int) -> Picks: ...


def checked_picks(method: Chooses, k: int, *, probes: bool = False) -> Picks:
    """What a method's `select`, or `select_probes`, gives for `k` prompts: at most `k` rows of its pool.

    Raises:
        ConfigError: it is no `Picks`, or has too many rows, rows that are not in the pool, or not one number for each.
    """
    picks: Any = method.select_probes(k) if probes else method.select(k)
    pool = len(method.pool)
    slots = np.asarray(picks.slots) if isinstance(picks, Picks) else np.empty(0)
    good = slots.ndim == 1 and slots.dtype.kind in "iu" and len(slots) <= k
    if good and isinstance(picks, Picks):
        numbers = (picks.predicted, picks.propensity, picks.have, picks.variance, picks.railed)
        good = len(picks.lanes) == len(slots) and all(np.shape(of_each) == slots.shape for of_each in numbers)
    if not good or (len(slots) and not 0 <= slots.min() <= slots.max() < pool):
        raise ConfigError(
            f"{type(method).__name__} must choose at most {k} of the pool's rows 0 to {pool - 1}, as "
            "Picks.of(slots, lane) with an array of whole numbers, and one number for each in all else, got "
            f"{shown(slots if isinstance(picks, Picks) else picks)}. No ticket was issued"
        )
    chosen: Picks = picks if picks.slots is slots else replace(picks, slots=slots)
    return chosen


@dataclass(frozen=True, slots=True)
class JoinReport:
    """How a saved state met the present pool: prompts found again, new and gone, and open tickets lost with them."""

    matched: int
    added: int
    dropped: int
    dropped_tickets: int
