"""The rounds of a generation: whole groups, told together, whatever calls their rollouts came from."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rollwise.curricula import Curriculum
from rollwise.errors import RewardError
from rollwise.gates import Refill
from rollwise.tickets.evidence import Evidence
from rollwise.tickets.outcome import Outcome, RewardSpec
from rollwise.tickets.ticket import Ticket
from rollwise.training.generation.groups import Screening, join_evidence
from rollwise.training.generation.messages import Call, Chosen, Kept

logger = logging.getLogger(__name__)

_NUMBERS = ("rewards", "lengths", "totals", "advantages")
ToldAdvantages = Callable[[np.ndarray, list[int]], np.ndarray]
RolledOut = list[tuple[list[Ticket], Call]]
"""Calls, each with its tickets."""


@dataclass(slots=True)
class Made:
    """The calls for some tickets, in the order made, and the screened rollouts that they go on with.

    Attributes:
        calls: what was rolled out for them.
        begun: the screened groups by ticket, in the order in which they were taken.
    """

    calls: RolledOut = field(default_factory=list)
    begun: dict[str, Kept] = field(default_factory=dict)

    @property
    def every(self) -> list[Call]:
        """The calls of the screened groups, then the others."""
        return [*(one.call for one in self.begun.values()), *(call for _, call in self.calls)]

    def screening(self, ticket: Ticket) -> Screening | None:
        """Where the first rollouts of a group come from, if it was not rolled out at once."""
        before = self.begun.get(ticket.id)
        return None if before is None else Screening(before.ticket, before.step, before.call.n)

    def whole_groups(self, asked: list[Ticket]) -> np.ndarray:
        """Rows (M, G) of each ticket's rollouts, screened ones first, among those of `every`; -1 behind."""
        starts = np.cumsum([0, *(len(call.rewards) for call in self.every)]).tolist()
        rows: dict[str, list[int]] = {ticket.id: [] for ticket in asked}
        for id_, start, before in zip(self.begun, starts, self.begun.values(), strict=False):
            rows[id_] += range(start, start + before.call.n)
        for (tickets, call), start in zip(self.calls, starts[len(self.begun) :], strict=False):
            for ticket, own in zip(tickets, call.groups, strict=True):
                rows[ticket.id] += range(start + own.start, start + own.stop)
        width = max(map(len, rows.values()))
        return np.array([own + [-1] * (width - len(own)) for own in rows.values()])


class Round:
    """M whole groups that were told together, made by several calls, perhaps on top of screened ones.

    G is the greatest size of them. In arrays (M, G) a smaller group is filled up, with NaN for rewards.

    Args:
        made: what was rolled out.
        tickets: M tickets, in the order asked.
        offset: how many rollouts the rounds before had.
        advantages_of: see `Generation`.
        told_advantages: see `Generation`.
    """

    evidence: Evidence
    admitted: np.ndarray
    kept: list[np.ndarray]
    """The rollouts of each group that are trained on if it is, as indices."""
    outcomes: list[Outcome]
    """What each ticket is told: of its own rollouts, as many as it asked for."""

    def __init__(
        self,
        made: Made,
        tickets: list[Ticket],
        offset: int,
        advantages_of: Callable[[np.ndarray, np.ndarray, list[int]], Any],
        told_advantages: ToldAdvantages | None,
    ) -> None:
        every = made.every
        self.size = sum(len(call.rewards) for call in every)
        self.tickets = tickets
        self.screenings = [made.screening(ticket) for ticket in tickets]
        local = made.whole_groups(tickets)
        there = local >= 0
        self.sizes: np.ndarray = there.sum(axis=1)
        sizes = self.sizes.tolist()
        self.kept = list(map(np.arange, sizes))
        self.index = np.where(there, local + offset, -1)
        flat = {name: np.concatenate([getattr(call, name) for call in every]) for name in _NUMBERS}
        self.rewards = np.where(there, flat["rewards"][local], np.nan)
        self.lengths = np.where(there, flat["lengths"][local], 0)
        totals, given = flat["totals"][local[there]], flat["advantages"][local[there]]
        self.advantages = np.zeros(local.shape, dtype=np.float32)
        self.advantages[there] = advantages_of(totals, given, sizes).float().cpu().numpy()
        self.told = self.advantages
        if told_advantages is not None:
            self.told = np.zeros(local.shape, dtype=np.float32)
            self.told[there] = told_advantages(self.rewards[there], sizes)
        rows = [own[:n].tolist() for own, n in zip(local, sizes, strict=True)]
        texts = [text for call in every for text in call.texts]
        self.texts = [[texts[i] for i in own] for own in rows]
        named = [label for call in every for label in call.labels or []]
        self.labels = [[named[i] for i in own] for own in rows] if len(named) == self.size else []
        self.outcomes = [
            outcome_of(ticket, self.rewards[i, :n], self.labels[i] if self.labels else None, self.told[i, :n], before)
            for i, (ticket, n, before) in enumerate(zip(tickets, sizes, self.screenings, strict=True))
        ]

    def of_width(self, name: str, width: int, empty: float) -> np.ndarray:
        """An array (M, G) of this round, filled up with `empty` to (M, width)."""
        array: np.ndarray = getattr(self, name)
        return np.pad(array, ((0, 0), (0, width - array.shape[1])), constant_values=empty)

    def whole_evidence(self, curriculum: Curriculum, evidence: Evidence) -> Evidence:
        """The evidence of the whole groups: what was told, unless some had been screened."""
        if all(ticket.n_rollouts in (None, n) for ticket, n in zip(self.tickets, self.sizes.tolist(), strict=True)):
            return evidence
        spec, scored = curriculum.reward_spec, ~np.isnan(self.rewards)
        rewards, count = self.rewards[scored], scored.sum(axis=1)
        return Evidence.from_flat(
            slots=evidence.slots.tolist(),
            count=count.tolist(),
            scores=spec.scores(np.clip(rewards, spec.low, spec.high)),
            solved=rewards >= spec.threshold,
            advantages=self.told[scored],
            failed=(self.sizes - count).tolist(),
            step=evidence.step.tolist(),
            late=evidence.late.tolist(),
            probe=evidence.probe.tolist(),
        )


class Collected:
    """The rounds of one batch.

    Args:
        batch: says which of the groups train.
    """

    def __init__(self, batch: Refill[int]) -> None:
        self.batch = batch
        self.rounds: list[Round] = []

    def chosen(self) -> Chosen:
        """What is trained on."""
        index = [own[:n].tolist() for r in self.rounds for own, n in zip(r.index, r.sizes.tolist(), strict=True)]
        groups, used = self.batch.groups, self.used()
        return Chosen(
            rows=[row for group in groups for row in index[group]],
            sizes=[len(index[group]) for group in groups],
            used=[i in used[group] for group in groups for i in range(len(index[group]))],
        )

    def used(self) -> list[set[int]]:
        """The rollouts of each group that are trained on."""
        shares = dict(zip(self.batch.groups, self.batch.shares, strict=True))
        kept = [own.tolist() for r in self.rounds for own in r.kept]
        return [set(own[: shares.get(group, 0)]) for group, own in enumerate(kept)]

    def fields(self) -> dict[str, Any]:
        """What `Groups` has of them."""
        parts = self.rounds
        width, n = max(r.rewards.shape[1] for r in parts), sum(len(r.tickets) for r in parts)
        arrays = {"rewards": np.nan, "advantages": 0.0, "lengths": 0}
        used = np.zeros((n, width), dtype=bool)
        for group, own in enumerate(self.used()):
            used[group, sorted(own)] = True
        return {
            **{name: np.concatenate([r.of_width(name, width, empty) for r in parts]) for name, empty in arrays.items()},
            "used": used,
            "sizes": np.concatenate([r.sizes for r in parts]),
            "texts": [own for r in parts for own in r.texts],
            "labels": [own for r in parts for own in r.labels] if all(r.labels for r in parts) else None,
            "evidence": join_evidence([r.evidence for r in parts]),
            "round": np.repeat(np.arange(1, len(parts) + 1), [len(r.tickets) for r in parts]),
            "admitted": np.concatenate([r.admitted for r in parts]),
            "trained": np.isin(np.arange(n), self.batch.groups),
            "screenings": [own for r in parts for own in r.screenings],
        }


def groups_in(calls: RolledOut) -> Iterator[tuple[Ticket, Call, slice]]:
    """Each ticket, its call, and where its rollouts are in that."""
    for tickets, call in calls:
        for ticket, own in zip(tickets, call.groups, strict=True):
            yield ticket, call, own


def outcome_of(
    ticket: Ticket,
    rewards: np.ndarray,
    labels: list[str | None] | None,
    advantages: np.ndarray | None = None,
    before: Screening | None = None,
) -> Outcome:
    """What a ticket is told of its group's rollouts (n,): of its own, as many as it asked for, not of those `before`.

    Those without a reward, NaN, are counted as failed.
    """
    start = 0 if before is None else before.rollouts
    own = slice(start, None if ticket.n_rollouts is None else start + ticket.n_rollouts)
    scored = ~np.isnan(rewards[own])
    return Outcome(
        ticket.id,
        rewards=rewards[own][scored],
        advantages=None if advantages is None else advantages[own][scored],
        failed=int((~scored).sum()),
        labels=None if labels is None else [label for label, s in zip(labels[own], scored, strict=True) if s],
    )


def widen_rewards(curriculum: Curriculum, calls: list[Call], step: int) -> None:
    """Let the curriculum take rewards outside its range, where nobody declared that; `RewardError` for infinity."""
    every = np.concatenate([call.rewards for call in calls])
    if (odd := every[np.isinf(every)]).size:
        raise RewardError(
            f"step {step}: {odd.size} rewards are infinite, as {odd[0]}; have the reward function return None for a "
            "completion that can't be scored"
        )
    rewards = every[~np.isnan(every)]
    before, spec = curriculum.reward_spec, RewardSpec()
    if not rewards.size or not curriculum.widen_rewards(float(rewards.min()), float(rewards.max())):
        return
    now = curriculum.reward_spec
    say = logger.warning if (before.low, before.high) == (spec.low, spec.high) else logger.info
    say(
        "step %d: a reward lies outside [%g, %g], the range that holds where none is declared; from now on it is "
        "[%g, %g], and %g or more counts as solved. Declare the range to have it right from the start: "
        "RewardSpec(low, high, solved_at) for the curriculum, or --reward_low, --reward_high, --solved_at",
        *(step, before.low, before.high, now.low, now.high, now.high if now.solved_at is None else now.solved_at),
    )
