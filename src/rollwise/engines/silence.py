"""Notices that a curriculum is asked and never told anything, or that its clock stands still."""

from __future__ import annotations

import logging

from rollwise.errors import SilentNoOpError

logger = logging.getLogger(__name__)

STEPS_WITHOUT_OUTCOME = 10
"""A learner that has moved this many steps on while no outcome came is not attached."""
CLOCK_ALARM = 10_000
"""After this many outcomes at one and the same step, a warning says that the clock stands still."""


class Silence:
    """Counts what was asked since the last outcome.

    Args:
        after: at most this many tickets may be asked without any outcome being told. An ask that finds nothing to
            give counts as one ticket, but not more than once a second, as workers may ask again and again.
    """

    def __init__(self, after: int) -> None:
        self._after = after
        self._asked = 0
        self._first_step: int | None = None
        self._counted_at = float("-inf")
        self._told_at_step = (-1, 0)

    def asked(self, issued: int, step: int, now: float) -> None:
        """An ask was given `issued` tickets at `step`."""
        if self._first_step is None:
            self._first_step = step
        if not issued and now - self._counted_at < 1.0:
            return
        self._asked += max(issued, 1)
        if not issued:
            self._counted_at = now

    def told(self, taken: int, step: int) -> None:
        """`taken` outcomes were learnt from at `step`."""
        if not taken:
            return
        self._asked, self._first_step = 0, None
        at, count = self._told_at_step
        before, count = (count, count + taken) if at == step else (0, taken)
        self._told_at_step = (step, count)
        if before < CLOCK_ALARM <= count:
            logger.warning(
                "%d outcomes came at step %d: the clock stands still, so no ticket expires and nothing is learnt from "
                "a finished step; call advance(step) whenever the learner has made a step",
                count,
                step,
            )

    def check(self, step: int) -> None:
        """Raise if nothing has been told for too long.

        Raises:
            SilentNoOpError: too many tickets, or steps of the learner, since the last outcome.
        """
        since = 0 if self._first_step is None else step - self._first_step
        if self._asked < self._after and since < STEPS_WITHOUT_OUTCOME:
            return
        raise SilentNoOpError(
            f"{self._asked} tickets were asked and the learner made {since} steps, and no outcome was told: the "
            "curriculum learns nothing; tell the outcome of every ticket, or give a larger silent_after if rollouts "
            "take that long"
        )
