"""The calls that take outcomes, `tell` and `tell_each`, and those that say what has become of tickets."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

import numpy as np

from rollwise.curricula.seam.asking import Asking
from rollwise.curricula.seam.exclusive import exclusive
from rollwise.errors import TicketError
from rollwise.options import check_ids, check_text, is_number, shown
from rollwise.tickets.evidence import Evidence
from rollwise.tickets.outcome import Outcome
from rollwise.tickets.ticket import Entry, Ticket, TicketStatus
from rollwise.tickets.told import Checked, Learner, Refused, TellReport

_AWAITED = 1
"""Feedback on a ticket may come until outcomes are told this many steps after its own, and no later."""

logger = logging.getLogger(__name__)


class Telling(Asking):
    """`tell` and `tell_each` of a curriculum, and its tickets."""

    range_declared: bool

    @exclusive
    def tell(self, outcomes: Iterable[Outcome]) -> Evidence:
        """Learn from outcomes, in any order, early, late or partial; all of them, or none if one is wrong.

        `tell_each` takes the right ones and returns the others.

        Returns:
            What was learnt, group by group in the order the tickets were issued.

        Raises:
            TicketError: a ticket is unknown, of another incarnation (see `load_state_dict`), told already, or named
                twice.
            RewardError: rewards are NaN, infinite, out of range or too many; or a mean alone was told, see `Outcome`,
                and the method learns from each rollout's reward. Nothing has changed in either case.
            ConcurrentUseError: another call is running. Nothing has changed.
        """
        return self._take(self.ledger.check(outcomes, self._learner))

    @exclusive
    def tell_each(self, outcomes: Iterable[Outcome]) -> TellReport:
        """Learn from the outcomes that are right, and return the others with their reasons.

        For engines in which an outcome may come twice, after a restart, or for a ticket that was lost.

        Raises:
            TicketError: `outcomes` is no `Outcome` and no list.
            ConcurrentUseError: another call is running. Nothing has changed.
        """
        refused: list[Refused] = []
        return TellReport(self._take(self.ledger.check(outcomes, self._learner, refused)), refused)

    @property
    def _learner(self) -> Learner:
        return Learner(type(self).__name__, self.reward_spec, self.learns_from)

    def _take(self, checked: Checked) -> Evidence:
        """Learn from checked outcomes."""
        evidence = checked.evidence
        self.ledger.close(checked)
        if self.wants_feedback:
            self._await_feedback(checked.entries)
        if len(evidence):
            self._settle()
            self.count(evidence)
            self.contrast.note(evidence)
            slots = evidence.prompts
            if self.unscored is not None:
                self.unscored.observe(evidence, self.step)
            self._hold(slots)  # a late ticket's prompt is not in flight: take it out before its rank changes
            try:
                for part in evidence.rounds():
                    self._learn(part)
            finally:  # also where a method of one's own fails: the groups are told, and their prompts free
                self._release(slots[~self.ledger.open[slots]])
            if evidence.count[~evidence.probe].any():
                self.told_step = self.step
        logger.debug("told %d of %d prompts", len(evidence), len(self.pool))
        return evidence

    @exclusive
    def feedback(self, gains: Mapping[str, float]) -> int:
        """Tell, after the optimiser step, what it gained on each group; optional, once a ticket, within a step.

        A gain is the mean over the group's rollouts of (probability after the step / before it) x advantage. Methods
        that don't learn from it (`wants_feedback`) ignore it.

        Args:
            gains: ticket id -> gain, of tickets whose outcomes have been told.

        Returns:
            How many gains were taken.

        Raises:
            TicketError: a ticket without outcomes, with feedback already, or unknown; or a gain that is no finite
                number. Nothing has changed then.
            ConcurrentUseError: another call is running. Nothing has changed.
        """
        self.pool  # noqa: B018 - raises UnboundError
        if not self.wants_feedback:
            return 0
        if not isinstance(gains, Mapping):
            raise TicketError(f"feedback takes a mapping of ticket ids to gains, got {shown(gains)}")
        for ticket_id, gain in gains.items():
            if not (is_number(gain) and abs(gain) < 1e300):
                raise TicketError(f"the gain of ticket {ticket_id!r} must be a finite number, got {shown(gain)}")
            if ticket_id not in self.awaiting:
                raise TicketError(
                    f"ticket {ticket_id!r:.80} awaits no feedback: give it once, after the ticket was told, and "
                    "no later than one step after it"
                )
        slots = [self.awaiting.pop(ticket_id)[0] for ticket_id in gains]
        self.learn_gains(np.array(slots, dtype=np.int64), np.array(list(gains.values()), dtype=np.float64))
        return len(slots)

    def _await_feedback(self, told: Iterable[Entry]) -> None:
        """Remember the tickets told, of which feedback may come; forget those told two steps ago or more."""
        self.awaiting = {id_: kept for id_, kept in self.awaiting.items() if kept[1] >= self.step - _AWAITED}
        self.awaiting |= {one.ticket.id: (one.slot, self.step) for one in told if one.ticket.purpose == "train"}

    def ticket_status(self, ticket_id: str) -> TicketStatus:
        """What has become of a ticket.

        Returns:
            "open": in flight. "told": also where its prompt has left the pool. "expired": it may still be told, late
            (when 65,536 more have expired, the oldest count as "told"). "foreign": issued by another incarnation, see
            `load_state_dict`. "unknown": no such id.
        """
        return self.ledger.status(ticket_id)

    def open_tickets(self, prompt_id: str | None = None) -> list[Ticket]:
        """The tickets in flight, in the order issued.

        Args:
            prompt_id: only that prompt's: one, or none. For engines that give back the prompt without its ticket.

        Raises:
            ConfigError: `prompt_id` is no text.
        """
        if prompt_id is None:
            return self.ledger.open_tickets()
        (slot,) = self.pool.slots_of([check_text("prompt_id", prompt_id)]).tolist()
        ticket = self.ledger.open_ticket_of(slot)
        return [] if ticket is None else [ticket]

    @exclusive
    def expire(self, ticket_ids: Iterable[str]) -> int:
        """Close open tickets now, as those that are too old: their prompts are free, and late outcomes are still taken.

        Args:
            ticket_ids: for example of a worker that is gone. Ids that are not open are passed over.

        Returns:
            How many were closed.

        Raises:
            ConfigError: something else than a list of ids. Nothing has changed then.
            ConcurrentUseError: another call is running. Nothing has changed.
        """
        freed = self.ledger.expire_these(check_ids("ticket_ids", ticket_ids))
        self._release(freed[~self.ledger.open[freed]])
        self.counters["expired"] += len(freed)
        return len(freed)

    @exclusive
    def widen_rewards(self, low: float, high: float) -> bool:
        """Take rewards from `low` to `high` from now on, where no `reward_spec` was given; whether that changed it.

        For trainers, which must not end a run because of one reward. What counts as solved stays as it was, and what
        was learnt so far stays on the old scale.

        Raises:
            ConfigError: `low` or `high` is no finite number. Nothing has changed then.
        """
        spec = self.reward_spec
        wider = spec.widened(low, high)
        if self.range_declared or (wider.low, wider.high) == (spec.low, spec.high):
            return False
        self.set_reward_spec(wider)
        return True
