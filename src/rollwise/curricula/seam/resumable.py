"""Save a curriculum, resume from a saved state, and move to another pool."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

import numpy as np

from rollwise.curricula.seam import saving
from rollwise.curricula.seam.exclusive import exclusive
from rollwise.curricula.seam.picks import JoinReport
from rollwise.curricula.seam.telling import Telling
from rollwise.errors import PoolError, StateError
from rollwise.options import Schedule, check_whole, shown
from rollwise.pool import PromptPool
from rollwise.tickets import RewardSpec

logger = logging.getLogger(__name__)


class Resumable(Telling):
    """Everything of a curriculum that changes, packed, unpacked and joined to a pool by prompt id."""

    schedules: Mapping[str, Schedule] = MappingProxyType({})
    """The options that have one, by name."""

    options: dict[str, Any]

    # ---- the whole ----

    @exclusive
    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on exactly, JSON-safe: beliefs by prompt id, random streams, open tickets.

        Raises:
            ConcurrentUseError: another call is running.
        """
        return self._packed()

    def _packed(self) -> dict[str, Any]:
        spec = asdict(self.reward_spec)
        return {
            **saving.header(type(self).__name__, self.options),
            "ids": self.pool.encoded_ids,
            "ledger": self.ledger.state_dict(),
            "body": self.body_state(),
            **({} if spec == self.options["reward_spec"] else {"widened": spec}),
        }

    @exclusive
    def load_state_dict(
        self, state: Mapping[str, Any], *, strict: bool = True, new_incarnation: bool = True
    ) -> JoinReport:
        """Go on from a saved state, joined to the present pool by prompt id.

        Tickets that were open or expired at the save keep their ids. Those issued from now on carry a new random tag,
        so that an outcome of a ticket issued after the save, by the run that was lost, is refused as foreign.

        Args:
            state: what `state_dict` returned.
            strict: whether options that differ from the saved ones raise; if not, the present ones hold, and what
                they need that the saved ones did not begins as for a new prompt.
            new_incarnation: False where no ticket leaves this process, as in a trainer that makes its own rollouts:
                then ids go on without a new tag, and a resumed run's files equal the uninterrupted run's.

        Raises:
            StateError: another method or version, options that differ, no prompt in common, or damaged contents.
                Nothing has changed then.
            ConcurrentUseError: another call is running. Nothing has changed.
        """
        saving.check_header(state, type(self).__name__, self.options, strict=strict)
        report = self._join(self.pool, state, "the data set has changed since the state was saved: %s", strict=strict)
        if new_incarnation:
            self.ledger.incarnations.renew()
        return report

    @exclusive
    def new_incarnation(self) -> None:
        """Give the tickets issued from now on a new random tag, as every load does.

        A service calls it at a fresh start, so that outcomes of a run before it are refused; see `ticket_status`.
        """
        self.ledger.incarnations.renew()

    @exclusive
    def rebind(self, pool: PromptPool) -> JoinReport:
        """Go on with another pool: beliefs, open tickets and random streams stay with the prompts found in both.

        So a pool grows and shrinks while training. Late evidence on prompts that are gone raises `TicketError`.

        Raises:
            PoolError: it has none of the present prompts, or is not a pool.
            MissingColumnError: it lacks a column that the method needs. Nothing has changed in either case.
        """
        check_pool(pool, "goes on with")
        if not any(id_ in pool for id_ in self.pool.ids):
            raise PoolError("none of the present prompts is in the new pool: bind a new curriculum to it instead")
        tag = self.ledger.incarnations.tag
        report = self._join(pool, self._packed(), "the pool has changed: %s")
        self.ledger.incarnations.tag = tag
        return report

    def _join(self, pool: PromptPool, state: Mapping[str, Any], message: str, *, strict: bool = True) -> JoinReport:
        try:
            old_rows, new_rows, saved = saving.join(state["ids"], pool)
            fresh = copy.copy(self)
            fresh._start(pool)
            dropped_tickets = fresh.ledger.load_state_dict(state["ledger"])
            fresh.load_body(state["body"], old_rows, new_rows, strict=strict)
            fresh._release(np.flatnonzero(~fresh.ledger.open))
            if not fresh.range_declared:
                fresh.set_reward_spec(RewardSpec(**(state.get("widened") or self.options["reward_spec"])))
        except (StateError, PoolError):
            raise
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise StateError(f"the state is damaged: {error!r}") from error
        matched = len(old_rows)
        report = JoinReport(matched, len(pool) - matched, saved - matched, dropped_tickets)
        fresh.counters["state_added"] += report.added
        fresh.counters["state_dropped"] += report.dropped
        self.__dict__ = fresh.__dict__
        if report.added or report.dropped:
            logger.warning(message, report)
        return report

    # ---- its parts, also used by curricula of curricula ----

    def body_state(self) -> dict[str, Any]:
        """All that is saved of this curriculum besides the ids and the tickets."""
        return {
            "step": self.step,
            "step_begun": self.step_begun,
            **({"owns_clock": True} if self.owns_clock else {}),
            **({"tokens": self.tokens} if self.counts_tokens else {}),
            "told_step": self.told_step,
            "rng": self.rng.state_dict(),
            "counters": {name: n for name, n in self.counters.items() if n or name not in self.rare},
            "columns": self.columns.state_dict(),
            "own": self.own_state(),
            **self.safeguards.state_dict(),
            **({"contrast": state} if (state := self.contrast.state()) else {}),
            **({"awaiting": dict(self.awaiting)} if self.awaiting else {}),
        }

    def load_body(
        self, body: Mapping[str, Any], old_rows: np.ndarray, new_rows: np.ndarray, *, strict: bool = True
    ) -> None:
        """Take back `body_state` while all is on hold; saved rows `old_rows` (K,) belong to slots `new_rows` (K,)."""
        self.step, self.told_step, self.step_begun = int(body["step"]), int(body["told_step"]), bool(body["step_begun"])
        self.owns_clock, self.tokens = bool(body.get("owns_clock", False)), int(body.get("tokens", 0))
        self.rng.load_state_dict(body["rng"])
        saved = {**dict.fromkeys(self.rare, 0), **body["counters"]}
        self.counters = {name: int(saved[name]) for name in self.counted}
        self.columns.load(body["columns"], old_rows, new_rows, strict=strict)
        unseen = np.ones(len(self.pool), dtype=bool)
        unseen[new_rows] = False
        added = np.flatnonzero(unseen)
        self.load_own_state(body["own"], added)
        self.safeguards.load(body, old_rows, new_rows, added)
        self.contrast.load(body.get("contrast", {}))
        slot_of = dict(zip(old_rows.tolist(), new_rows.tolist(), strict=True)) if body.get("awaiting") else {}
        saved_awaiting = body.get("awaiting", {}).items()
        self.awaiting = {id_: (slot_of[row], int(step)) for id_, (row, step) in saved_awaiting if row in slot_of}

    # ---- options whose value changes while training ----

    def present(self, option: float | Schedule) -> float:
        """The value of an option at the step whose prompts are chosen, or whose outcomes are being settled."""
        if not isinstance(option, Schedule):
            return option
        return option.at(step=self.told_step if self.told_step >= 0 else self.step, tokens=self.tokens)

    def scheduled(self) -> dict[str, float]:
        """The present value of each option that has a schedule."""
        return {name: self.present(schedule) for name, schedule in self.schedules.items()}

    @property
    def counts_tokens(self) -> bool:
        """Whether an option follows the number of tokens."""
        return any(schedule.by == "tokens" for schedule in self.schedules.values())

    def count_tokens(self, total: int) -> None:
        """Say how many tokens training has seen so far, for schedules by tokens; a trainer does it before each step.

        Raises:
            ConfigError: no whole number >= 0. Nothing has changed then.
        """
        self.tokens = max(self.tokens, check_whole("total", total, least=0))


def check_pool(pool: object, what: str) -> None:
    """Raise `PoolError` unless it is a pool; `what` a curriculum does with it."""
    if not isinstance(pool, PromptPool):
        raise PoolError(f"a curriculum {what} a PromptPool, got {shown(pool)}; PromptPool.from_records makes one")
