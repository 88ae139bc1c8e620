"""What watches over a curriculum, whatever its method: rails, prompts without any reward, starved and unseen ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from rollwise.columns import Columns
from rollwise.curricula.seam.rails import Guard, Rails
from rollwise.curricula.seam.starvation import ALARM_SHARE, StarvationAlarm
from rollwise.curricula.seam.unscored import Unscored
from rollwise.curricula.seam.unseen import Unseen
from rollwise.draws import ties
from rollwise.pool import PromptPool
from rollwise.rng import RngStreams


@dataclass(frozen=True, slots=True)
class TieBreaks:
    """The curriculum's tie-breakers, for its rails: a method of the curriculum would not outlive a pickle."""

    rng: RngStreams
    id_hashes: np.ndarray
    columns: Columns

    def __call__(self, slots: np.ndarray) -> np.ndarray:
        """uint32 (K,), see `Flow.ties`."""
        return ties(self.rng.seed, self.id_hashes[slots], self.columns["asked"][slots])


class Safeguards(NamedTuple):
    """The safeguards of one curriculum; a curriculum within another has none, as the outer one has them for both.

    Attributes:
        guard: keeps the rails; None where they are off.
        unscored: sets aside what never gets a reward.
        alarm: names the categories that are starved; None in a pool without categories, and for a rotation.
        unseen: tells where many prompts stay unseen; None for a method that measures prompts besides.
    """

    guard: Guard | None = None
    unscored: Unscored | None = None
    alarm: StarvationAlarm | None = None
    unseen: Unseen | None = None

    @classmethod
    def of(
        cls,
        pool: PromptPool,
        rails: Rails | None,
        *,
        ties: TieBreaks,
        rotates: bool,
        measures: bool,
        before: Safeguards | None,
    ) -> Self:
        """Those of a curriculum with these prompts and rails.

        Args:
            pool: the prompts.
            rails: None: off.
            ties: the tie-breakers, with what is remembered of each prompt: how often it was asked for.
            rotates: whether the method serves every prompt in turn.
            measures: whether it also rolls prompts out without training on them.
            before: the safeguards of the pool that it had before: these have warned already.
        """
        old = before or cls()
        guard = None if rails is None else Guard(rails, pool, ties=ties)
        unscored = Unscored(pool, ties=ties, sets_aside=not rotates, before=old.unscored)
        unseen = None if measures else Unseen(ties.columns, railed=rails is not None, before=old.unseen)
        if rotates or not pool.has_categories:
            return cls(guard, unscored, unseen=unseen)
        share = ALARM_SHARE if rails is None else rails.alarm_share
        return cls(guard, unscored, StarvationAlarm(pool, share=share, before=old.alarm), unseen)

    def metrics(self) -> dict[str, float]:
        """The metrics of all of them."""
        return {name: value for part in self if part is not None for name, value in part.metrics().items()}

    def state_dict(self) -> dict[str, Any]:
        """The state of each that has one, JSON-safe; None where there is none."""
        parts = {"rails": self.guard, "unscored": self.unscored, "alarm": self.alarm}
        return {name: None if part is None else part.state_dict() for name, part in parts.items()}

    def load(self, state: Mapping[str, Any], old_rows: np.ndarray, new_rows: np.ndarray, added: np.ndarray) -> None:
        """Take back `state_dict` of `step`; saved rows `old_rows` (K,) belong to `new_rows` (K,), `added` are new."""
        if self.guard is not None and state["rails"] is not None:
            self.guard.load(state["rails"], old_rows, new_rows, added, step=int(state["step"]))
        if self.unscored is not None and state.get("unscored") is not None:  # states of version 0.1 have none
            self.unscored.load(state["unscored"], old_rows, new_rows)
        if self.alarm is not None and state.get("alarm") is not None:
            self.alarm.load(state["alarm"])
