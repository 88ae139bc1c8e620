"""The alarm that names the categories a method starves.

A method that gives up a category by mistake never finds out. A warning and the metrics tell the user. The alarm does
not change what is chosen.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np

from rollwise.curricula.seam.saving import restore_by_name
from rollwise.pool import PromptPool
from rollwise.state import decode_array, encode_array

logger = logging.getLogger(__name__)

ALARM_SHARE = 0.1
"""A category is starved when a method gives it less than this share of what uniform sampling would give it."""
LEAST_DUE = 20
"""A category is judged once uniform sampling would have given it this many prompts."""
_SHOWN = 50


class StarvationAlarm:
    """Counts what a method itself chooses from each category, and names those that get almost nothing.

    A category whose prompts were mostly all solved when last seen is not starved.

    Args:
        pool: the prompts, with a column `category`.
        share: see `ALARM_SHARE`.
        before: what looked at this curriculum's pool before: it has warned already.
    """

    def __init__(self, pool: PromptPool, *, share: float = ALARM_SHARE, before: StarvationAlarm | None = None) -> None:
        self.share = share
        self.names, self.codes = pool.codes("category")
        self.pool_share = np.bincount(self.codes, minlength=len(self.names)) / len(pool)
        self.window = min(len(pool), max(1000, 100 * len(self.names)))
        self.got = np.zeros(len(self.names), dtype=np.int64)  # the method's own picks since it was last judged
        self.asked = np.zeros(len(self.names), dtype=np.int64)  # those of all categories meanwhile
        self.starved: dict[str, float] = {}  # by name, what each got of its fair share when it was last judged
        self._named: set[str] = set() if before is None else before._named

    def count(self, slots: np.ndarray, *, asked: np.ndarray, streak: np.ndarray, failing: np.ndarray) -> None:
        """Count the method's own picks, and judge each category once enough is known about it.

        Args:
            slots: (K,) what it chose.
            asked: (N,) how often each prompt was asked for.
            streak: (N,) above 0 for prompts that were all solved when last seen, below 0 for all unsolved ones.
            failing: (C,) categories in which no rollout gets a reward: these are not judged.
        """
        self.got += np.bincount(self.codes[slots], minlength=len(self.names))
        self.asked += len(slots)
        self.got[failing] = self.asked[failing] = 0
        due = self.pool_share * self.asked
        ready = (self.asked >= self.window) & (due >= LEAST_DUE)
        if not ready.any():
            return
        few = ready & (self.got < self.share * due)
        for category in np.flatnonzero(ready & ~few).tolist():
            self.starved.pop(self.names[category], None)
        for category in np.flatnonzero(few).tolist():
            self._judge(category, float(due[category]), asked, streak)
        self.got[ready] = self.asked[ready] = 0

    def _judge(self, category: int, due: float, asked: np.ndarray, streak: np.ndarray) -> None:
        name, own = self.names[category], self.codes == category
        seen = int(np.count_nonzero(asked[own]))
        if np.count_nonzero(streak[own] > 0) > 0.5 * seen:
            self.starved.pop(name, None)
            return
        self.starved[name] = float(self.got[category] / due)
        if name in self._named:
            return
        self._named.add(name)
        logger.warning(
            "category %r is starved: the method gave it %d of the last %d prompts that it chose, where uniform "
            "sampling would have given it %.0f; of its %d prompts asked so far, %d were all unsolved when last "
            "seen. If it should be learnable, look at its rollouts (is the answer format what the verifier "
            "expects?), or turn on the rails, which keep it in (rails.category_share)",
            *(name, self.got[category], self.asked[category], due, seen, int(np.count_nonzero(streak[own] < 0))),
        )

    def metrics(self) -> dict[str, float]:
        """How many categories are starved, and what each of them (50 at most) gets of its fair share."""
        shown = sorted(self.starved.items())[:_SHOWN]
        return {
            "starved_categories": float(len(self.starved)),
            **{f"starved_categories/{name}": share for name, share in shown},
        }

    def state_dict(self) -> dict[str, Any]:
        """All that changes, JSON-safe; categories by name."""
        return {
            "names": list(self.names),
            "got": encode_array(self.got),
            "asked": encode_array(self.asked),
            "starved": dict(self.starved),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Take back `state_dict`, and warn again of what is starved."""
        pairs = [(decode_array(state[name]), getattr(self, name)) for name in ("got", "asked")]
        restore_by_name(state["names"], self.names, *pairs)
        present = set(self.names)
        self.starved = {name: float(share) for name, share in state["starved"].items() if name in present}
        new = {name: share for name, share in self.starved.items() if name not in self._named}
        if new:
            self._named |= set(new)
            named = ", ".join(f"{name!r} ({share:.0%} of its fair share)" for name, share in new.items())
            logger.warning("starved categories, as of the saved state: %s", named)
