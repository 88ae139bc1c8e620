"""A set of prompts that is measured, by `probe`, before a method draws."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from rollwise.curricula.seam.base import Curriculum
from rollwise.curricula.seam.picks import Picks


class MeasuredSets(Curriculum):
    """Gives out a new set every `refresh_every` steps; the subclass says which, and calls `end_measuring` to draw."""

    refresh_every: int
    free: np.ndarray
    """Which slots are not on hold, bool (N,)."""

    def build(self) -> None:
        super().build()
        self.wanted = np.empty(0, dtype=np.int64)  # slots of the set that are still to be given out
        self.refreshed = -self.refresh_every  # the step of the last set
        self.measuring = False

    @abstractmethod
    def next_set(self, free: np.ndarray) -> np.ndarray:
        """The set that begins now, (K,): some of the slots `free`, in any order."""

    @property
    def due(self) -> bool:
        """Whether this step needs a new set."""
        return self.step - self.refreshed >= self.refresh_every

    def select_probes(self, k: int) -> Picks:
        if self.wants_probes and self.due and not self.measuring:
            self.wanted, self.measuring = np.sort(self.next_set(np.flatnonzero(self.free))), True
        can = np.flatnonzero(self.free[self.wanted])[:k]
        chosen, self.wanted = self.wanted[can], np.delete(self.wanted, can)
        return Picks.of(chosen, "probe")

    def end_measuring(self) -> None:
        """Whatever of the set is not told by now is old news at the next."""
        self.wanted, self.refreshed, self.measuring = self.wanted[:0], self.step, False

    def own_state(self) -> dict[str, Any]:
        wanted = [self.pool.ids[slot] for slot in self.wanted.tolist()]
        return {**super().own_state(), "wanted": wanted, "refreshed": self.refreshed, "measuring": self.measuring}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        super().load_own_state(state, added)
        if "refreshed" in state:  # else it is of a DOTS that had no sets
            slots = self.pool.slots_of(state.get("wanted", []))
            self.wanted = np.sort(slots[slots >= 0])
            self.refreshed, self.measuring = int(state["refreshed"]), bool(state["measuring"])
