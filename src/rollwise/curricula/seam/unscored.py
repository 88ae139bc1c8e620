"""Prompts whose rollouts never get a reward: they are set aside, and tried again now and then.

A crashed verifier or a sandbox that is down tells nothing about a prompt, so to a method it stays as good as new, and
a part of the pool that can never be scored may take most of the budget. No paper has such prompts. Where every group
gets a reward, nothing here has any effect.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rollwise.columns import Columns
from rollwise.curricula.seam.picks import Picks
from rollwise.curricula.seam.saving import restore_by_name
from rollwise.pool import PromptPool
from rollwise.state import decode_array, encode_array
from rollwise.tickets.evidence import Evidence

logger = logging.getLogger(__name__)

PROMPT_GROUPS = 2
"""Groups in a row without any reward after which a prompt is set aside."""
CATEGORY_GROUPS = 8
"""Groups in a row without any reward after which a whole category is set aside, or a pool without categories."""
RETRY_SHARE = 0.5
"""What is set aside is tried again at this share of the rate of uniform sampling."""
LANE = "retry-unscored"
_FIRST_WARNING = 10
_SHOWN = 50
_COLUMNS = {
    "without": (np.int32, 0),  # groups in a row without any reward
    "tried": (np.int64, -1),  # the last step with such a group
}


class Unscored:
    """Says which slots of a pool are set aside, and which of them are to be tried again.

    It decides between steps, from all that was told in one, so the order of the tells makes no difference. A prompt
    comes back when one of its rollouts gets a reward; a category comes back, with all its prompts, when one of them
    does.

    Args:
        pool: the prompts; their `category` is used, where they have one.
        ties: uint32 tie-breakers (K,) of slots (K,).
        sets_aside: whether anything is set aside; if not, it only warns.
        before: what looked at this curriculum's pool before: it has warned already.
    """

    def __init__(
        self,
        pool: PromptPool,
        *,
        ties: Callable[[np.ndarray], np.ndarray],
        sets_aside: bool = True,
        before: Unscored | None = None,
    ) -> None:
        n = len(pool)
        self._pool, self._ties, self._sets_aside = pool, ties, sets_aside
        self.names, self.codes = [""], np.zeros(n, dtype=np.int64)
        if pool.has_categories:
            self.names, self.codes = pool.codes("category")
        self.columns = Columns(n, _COLUMNS)
        self.in_a_row = np.zeros(len(self.names), dtype=np.int64)  # groups of a category without any reward
        self.failing = np.zeros(len(self.names), dtype=bool)
        self.aside = np.zeros(n, dtype=bool)
        self.n_aside = 0
        self.free = np.zeros(n, dtype=bool)
        self.owed = 0.0  # prompts to be tried again that did not make a whole one yet
        self._step = -1
        self._groups: list[tuple[np.ndarray, np.ndarray]] = []  # of the step: slots (K,), whether any got a reward (K,)
        self._named: set[str] = set() if before is None else before._named
        self._next_warning: int = min(_FIRST_WARNING, max(1, n // 10)) if before is None else before._next_warning

    # ---- ask ----

    def hold(self, slots: np.ndarray) -> None:
        """These slots can't be chosen."""
        self.free[slots] = False

    def release(self, slots: np.ndarray) -> np.ndarray:
        """These slots (K,) can be chosen; those of them that are not set aside, for the method."""
        self.free[slots] = True
        return np.asarray(slots[~self.aside[slots]])

    def eligible(self, k: int) -> int:
        """Of `k` free slots that a method is to choose, as many as it can: those set aside are none of them."""
        return min(k, int(np.count_nonzero(self.free & ~self.aside))) if self.n_aside else k

    def choose(self, k: int) -> Picks:
        """Of `k` prompts, those to be tried again: the longest untried first."""
        if not self.n_aside:
            self.owed = min(self.owed, 1.0)
            return Picks.join([])
        self.owed = min(self.owed, 1.0) + RETRY_SHARE * k * self.n_aside / len(self.aside)
        picks = self.fill(min(k, int(self.owed + 1e-9)))
        self.owed -= len(picks)
        return picks

    def fill(self, k: int) -> Picks:
        """Up to `k` of those set aside, the longest untried first."""
        slots = np.flatnonzero(self.aside & self.free) if k and self.n_aside else np.empty(0, dtype=np.int64)
        if len(slots):
            slots = slots[np.lexsort((self._ties(slots), self.columns["tried"][slots]))[:k]]
            self.hold(slots)
        return Picks.of(slots, LANE)

    # ---- tell ----

    def observe(self, evidence: Evidence, step: int) -> None:
        """Note groups that were told in a step; a group without rollouts says nothing."""
        known = evidence.where(evidence.judged | (evidence.failed > 0))
        self._step = step
        if len(known):
            self._groups.append((known.slots, known.judged))

    def settle(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Decide on what was told before `step`: slots (K,) that are set aside now, and slots (L,) that come back."""
        none = np.empty(0, dtype=np.int64)
        if not self._groups or self._step >= step:
            return none, none
        slots, scored = self._told()
        self._groups = []
        quiet = not self.n_aside and not self.failing.any()  # in a rotation a category fails, and nothing is set aside
        if quiet and scored.all() and not self.columns["without"][slots].any():
            self.in_a_row[self.codes[slots]] = 0
            return none, none
        self._count(slots, scored)
        before = self.aside.copy()
        self._decide(slots[scored])
        return np.flatnonzero(self.aside & ~before), np.flatnonzero(before & ~self.aside)

    def _told(self) -> tuple[np.ndarray, np.ndarray]:
        """The step's groups: slots (K,), and whether any rollout got a reward (K,)."""
        slots = [np.empty(0, dtype=np.int64), *(slots for slots, _ in self._groups)]
        scored = [np.empty(0, dtype=bool), *(scored for _, scored in self._groups)]
        return np.concatenate(slots), np.concatenate(scored)

    def _count(self, slots: np.ndarray, scored: np.ndarray) -> None:
        without = self.columns["without"]
        np.add.at(without, slots[~scored], 1)
        self.columns["tried"][slots[~scored]] = self._step
        without[slots[scored]] = 0
        self.in_a_row += np.bincount(self.codes[slots[~scored]], minlength=len(self.names))
        self.in_a_row[self.codes[slots[scored]]] = 0

    def _decide(self, scored: np.ndarray) -> None:
        """Which categories fail, and so which prompts are set aside; `scored` (K,) slots got a reward."""
        back = np.zeros(len(self.names), dtype=bool)
        back[self.codes[scored]] = True
        back &= self.failing
        if back.any():  # their scorer works again: what failed with it begins anew
            self.columns["without"][back[self.codes]] = 0
        self.failing = self.in_a_row >= CATEGORY_GROUPS
        self._set_aside()
        lost = np.flatnonzero((self.columns["without"] > 0) & ~self.failing[self.codes])
        if len(lost) >= self._next_warning:
            self._next_warning = 10 * len(lost)
            logger.warning(
                "no rollout of the last group of %d prompts got a reward, for example of %r: look at their scorer",
                *(len(lost), self._pool.ids[lost[0]]),
            )

    def _set_aside(self) -> None:
        if self._sets_aside:
            self.aside[:] = (self.columns["without"] >= PROMPT_GROUPS) | self.failing[self.codes]
            self.n_aside = int(np.count_nonzero(self.aside))
        for category in np.flatnonzero(self.failing).tolist():
            name = self.names[category]
            if name not in self._named:
                self._named.add(name)
                logger.warning(
                    "no rollout of the last %d groups%s got a reward: look at their scorer%s",
                    self.in_a_row[category],
                    f" of category {name!r}" if name else "",
                    ". These prompts are set aside, and tried again at half the rate of uniform sampling until one "
                    "gets a reward" * self._sets_aside,
                )

    # ---- looking inside, saving ----

    def metrics(self) -> dict[str, float]:
        """How many prompts got no reward in their last group, how many are set aside, and in which categories."""
        failing = np.flatnonzero(self.failing).tolist()
        return {
            "unscored": float(np.count_nonzero(self.columns["without"])),
            "set_aside": float(self.n_aside),
            **{f"set_aside/{self.names[i] or 'all'}": float(self.in_a_row[i]) for i in failing[:_SHOWN]},
        }

    def state_dict(self) -> dict[str, Any]:
        """All that changes, JSON-safe; categories by name."""
        slots, told = (part.tolist() for part in self._told())
        return {
            "columns": self.columns.state_dict(),
            "names": list(self.names),
            "in_a_row": encode_array(self.in_a_row),
            "failing": encode_array(self.failing),
            "owed": self.owed,
            "step": self._step,
            "groups": sorted([self._pool.ids[slot], scored] for slot, scored in zip(slots, told, strict=True)),
        }

    def load(self, state: Mapping[str, Any], old_rows: np.ndarray, new_rows: np.ndarray) -> None:
        """Take back `state_dict`, and warn again of the categories that fail."""
        self.columns.load(state["columns"], old_rows, new_rows)
        pairs = [(decode_array(state[name]), getattr(self, name)) for name in ("in_a_row", "failing")]
        restore_by_name(state["names"], self.names, *pairs)
        self.owed, self._step = float(state["owed"]), int(state["step"])
        known = [(self._pool.slot(id_), bool(scored)) for id_, scored in state["groups"] if id_ in self._pool]
        slots, scored = [slot for slot, _ in known], [scored for _, scored in known]
        self._groups = [(np.array(slots, dtype=np.int64), np.array(scored, dtype=bool))] if known else []
        self._set_aside()
