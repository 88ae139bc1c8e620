"""Notices that a curriculum is asked and never told anything, or that its clock stands still."""

from __future__ import annotations

import logging

from rollwise.errors import SilentNoOpError
from rollwise.options import check_whole

logger = logging.getLogger(__name__)

STEPS_WITHOUT_OUTCOME = 10
"""If prompts were asked for in this many steps and no outcome came, the learner is not attached."""
ASKS_IN_VAIN = 3_600
"""After this many asks that were given nothing, of each second at most one, no outcome is expected any more."""
CLOCK_ALARM = 10_000
"""After this many outcomes at one and the same step, a warning says that the clock stands still."""


class Silence:
    """Counts what was asked since the last outcome.

    Args:
        after: at most this many tickets may be asked without any outcome being told.
    """

    def __init__(self, after: int) -> None:
        self._after = check_whole("silent_after", after, least=1)
        self._asked = 0
        self._in_vain = 0
        self._steps = 0
        self._step: int | None = None
        self._counted_at = float("-inf")
        self._told_at_step = (-1, 0)
        self._clock_warned = False

    def asked(self, issued: int, step: int, now: float) -> None:
        """An ask was given `issued` tickets at `step`."""
        self._steps += step != self._step
        self._step = step
        self._asked += issued
        if not issued and now - self._counted_at >= 1.0:  # workers may ask again and again
            self._in_vain += 1
            self._counted_at = now

    def told(self, taken: int, step: int) -> None:
        """`taken` outcomes were learnt from at `step`."""
        if not taken:
            return
        self._asked, self._in_vain, self._steps, self._step = 0, 0, 0, None
        at, count = self._told_at_step
        count = count + taken if at == step else taken
        self._told_at_step = (step, count)
        if count >= CLOCK_ALARM and not self._clock_warned:
            self._clock_warned = True
            logger.warning(
                "%d outcomes came at step %d: the clock stands still, so no ticket expires and nothing is learnt from "
                "a finished step; call advance(step) whenever the learner has made a step",
                count,
                step,
            )

    def check(self, step: int) -> None:
        """Raise if nothing has been told for too long, when an ask is for `step`.

        Raises:
            SilentNoOpError: too many tickets, or steps in which any were asked, since the last outcome.
        """
        since = self._steps + (step != self._step) - 1  # only steps with asks count: some services are asked seldom
        in_vain = self._in_vain >= min(self._after, ASKS_IN_VAIN)
        if self._asked < self._after and since < STEPS_WITHOUT_OUTCOME and not in_vain:
            return
        raise SilentNoOpError(
            f"{self._asked} tickets were asked, {self._in_vain} seconds passed in which all were in flight, and the "
            f"learner made {since} steps, and no outcome was told: the curriculum learns nothing; tell the outcome of "
            "every ticket, or give a larger silent_after"
        )
