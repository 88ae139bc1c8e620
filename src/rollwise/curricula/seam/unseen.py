"""Tells where a method leaves many prompts unseen for long: it can't know whether the policy could learn from them."""

from __future__ import annotations

import logging
import math

import numpy as np

from rollwise.columns import Columns

logger = logging.getLogger(__name__)

FEWEST = 50
"""Fewer unseen prompts than this are not many."""
LEAST_SHARE = 0.1
"""Nor is a smaller share of the pool."""
RANDOM_FACTOR = 1.25
"""Nor are fewer than this many times what drawing at random would have left."""


def unseen_long(asked: np.ndarray) -> int:
    """How many prompts were never asked for, where these are many for long; else 0.

    Long is from one pass on: as many prompts asked for as the pool holds. Many are at least 50 prompts, a tenth of the
    pool, and a quarter more than drawing at random leaves, with replacement: e^-passes of the pool, which is 37 % after
    one pass and 14 % after two. So after one pass the limit is 46 % of the pool, and from the third on a tenth.

    Args:
        asked: (N,) how often each prompt was asked for.

    >>> asked = np.zeros(1000)
    >>> asked[:491] = 1000 / 491  # one pass, over half of the pool
    >>> unseen_long(asked), unseen_long(asked / 2), unseen_long(np.ones(1000))
    (509, 0, 0)
    """
    passes = float(asked.sum()) / len(asked) + 1e-9
    unseen = int(np.count_nonzero(asked == 0))
    limit = max(LEAST_SHARE, RANDOM_FACTOR * math.exp(-passes)) * len(asked)
    return unseen if passes >= 1 and unseen >= FEWEST and unseen > limit else 0


class Unseen:
    """Warns once if many prompts stay unseen for long.

    Args:
        columns: what is remembered of each prompt, with `asked`.
        railed: whether rails are on, which ask for those not asked for the longest.
        before: what looked at this curriculum's pool before: it may have warned already.
    """

    def __init__(self, columns: Columns, *, railed: bool, before: Unseen | None = None) -> None:
        self.columns, self.railed = columns, railed
        self.warned: bool = before is not None and before.warned
        self.left: int | None = None  # prompts to be asked for before it looks again; None: it has not looked yet

    def look(self, asked: int, step: int) -> None:
        """Note that `asked` more prompts were asked for. It looks once a quarter of a pass, as that costs O(N)."""
        if self.warned:
            return
        if self.left is not None and self.left > asked:
            self.left -= asked
            return
        visits = self.columns["asked"]
        to_a_pass = len(visits) - int(visits.sum())
        self.left = to_a_pass if to_a_pass > 0 else max(1, len(visits) // 4)
        if unseen := unseen_long(visits):
            self.warned = True
            logger.warning(
                "step %d: %d of %d prompts were never asked for in %d draws; drawing at random would have left %d. "
                "Whether the policy could learn from them is unknown: let the method explore more, or %s",
                *(step, unseen, len(visits), visits.sum(), round(len(visits) * math.exp(-visits.sum() / len(visits)))),
                "raise rails.explore" if self.railed else 'turn on the rails (rails="on")',
            )

    def metrics(self) -> dict[str, float]:
        """`unseen_long`, the prompts never asked for; nothing where they are not many."""
        unseen = unseen_long(self.columns["asked"])
        return {"unseen_long": float(unseen)} if unseen else {}
