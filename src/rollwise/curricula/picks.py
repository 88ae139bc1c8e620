"""What passes between a curriculum's seam and its method: the slots chosen; and how a saved state met the pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Picks:
    """K chosen slots, in the order chosen; `predicted` and `propensity` (K,) are NaN where unknown."""

    slots: np.ndarray
    lanes: list[str]
    predicted: np.ndarray
    propensity: np.ndarray

    @classmethod
    def of(
        cls,
        slots: np.ndarray,
        lane: str,
        *,
        predicted: np.ndarray | None = None,
        propensity: np.ndarray | None = None,
    ) -> Picks:
        """Slots that all come by one lane."""
        unknown = np.full(len(slots), np.nan)
        return cls(
            slots=slots,
            lanes=[lane] * len(slots),
            predicted=unknown if predicted is None else predicted,
            propensity=unknown if propensity is None else propensity,
        )

    @classmethod
    def join(cls, parts: Sequence[Picks]) -> Picks:
        """Several picks, one after another."""
        if not parts:
            return cls.of(np.empty(0, dtype=np.int64), "")
        return cls(
            slots=np.concatenate([p.slots for p in parts]),
            lanes=[lane for p in parts for lane in p.lanes],
            predicted=np.concatenate([p.predicted for p in parts]),
            propensity=np.concatenate([p.propensity for p in parts]),
        )

    def __len__(self) -> int:
        return len(self.slots)


@dataclass(frozen=True, slots=True)
class JoinReport:
    """How a saved state met the present pool: prompts found again, new and gone, and open tickets lost with them."""

    matched: int
    added: int
    dropped: int
    dropped_tickets: int
