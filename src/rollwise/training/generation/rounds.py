"""One round of a generation: whole groups, told together, whatever calls their rollouts came from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rollwise.curricula import Curriculum
from rollwise.tickets.evidence import Evidence
from rollwise.tickets.outcome import Outcome
from rollwise.tickets.ticket import Ticket
from rollwise.training.generation.groups import Screening
from rollwise.training.generation.messages import Call, Kept

ToldAdvantages = Callable[[np.ndarray, int], np.ndarray]


class Round:
    """M whole groups of G rollouts that were told together, made by several calls, perhaps on top of screened ones.

    Args:
        parts: (rollouts made, tickets) of each call.
        kept: the screened groups, in the order of the tickets that go on with them.
        calls: the calls.
        group: G.
        offset: how many rollouts the rounds before had.
        advantages_of: see `Generation`.
        told_advantages: see `Generation`.
    """

    evidence: Evidence
    admitted: np.ndarray

    def __init__(
        self,
        parts: list[tuple[int, list[Ticket]]],
        kept: list[Kept],
        calls: list[Call],
        group: int,
        offset: int,
        advantages_of: Callable[[np.ndarray, np.ndarray, int], Any],
        told_advantages: ToldAdvantages | None,
    ) -> None:
        every = [*(one.call for one in kept), *calls]
        starts = np.cumsum([0, *(len(call.rewards) for call in every)])
        self.size = int(starts[-1])
        self.tickets = [ticket for _, tickets in parts for ticket in tickets]
        local = self._whole_groups(parts, kept, starts, group)
        self.index = local + offset
        self.rewards = np.concatenate([call.rewards for call in every])[local]
        totals = np.concatenate([call.totals for call in every])[local]
        self.lengths = np.concatenate([call.lengths for call in every])[local]
        given = np.concatenate([call.advantages for call in every])[local]
        scaled = advantages_of(totals.ravel(), given.ravel(), group)
        self.advantages = scaled.float().cpu().numpy().reshape(-1, group)
        self.told = self.advantages
        if told_advantages is not None:
            self.told = told_advantages(self.rewards.ravel(), group).reshape(-1, group)
        texts = [text for call in every for text in call.texts]
        self.texts = [[texts[i] for i in own] for own in local]
        named = [label for call in every for label in call.labels or []]
        self.labels = [[named[i] for i in own] for own in local] if len(named) == self.size else []

    def _whole_groups(
        self, parts: list[tuple[int, list[Ticket]]], kept: list[Kept], starts: np.ndarray, group: int
    ) -> np.ndarray:
        """Rows (M, G) of each group's rollouts, screened ones first, among those of `kept` and the calls; `starts`."""
        self.screenings: list[Screening | None] = []
        index, waiting = [], iter(enumerate(kept))
        for (n, tickets), start in zip(parts, starts[len(kept) :], strict=False):
            for i in range(len(tickets)):
                own = start + np.arange(i * n, (i + 1) * n)
                screening = None
                if n < group:
                    number, before = next(waiting)
                    own = np.concatenate([np.arange(starts[number], starts[number + 1]), own])
                    screening = Screening(before.ticket, before.step, before.call.n)
                self.screenings.append(screening)
                index.append(own)
        return np.array(index)

    def reorder(self, order: list[int]) -> None:
        """From the order of the calls to the order of the tickets."""
        if order == list(range(len(order))):
            return
        for name in ("index", "rewards", "lengths", "advantages", "told"):
            setattr(self, name, getattr(self, name)[order])
        for name in ("tickets", "screenings", "texts", "labels"):
            values = getattr(self, name)
            setattr(self, name, [values[i] for i in order] if values else values)

    def outcome(self, i: int) -> Outcome:
        """What a group's ticket is told: of its own rollouts, as many as it asked for."""
        ticket, screening = self.tickets[i], self.screenings[i]
        start = 0 if screening is None else screening.rollouts
        own = slice(start, None if ticket.n_rollouts is None else start + ticket.n_rollouts)
        labels = self.labels[i][own] if self.labels else None
        return outcome_of(ticket, self.rewards[i, own], labels, self.told[i, own])

    def whole_evidence(self, curriculum: Curriculum, evidence: Evidence) -> Evidence:
        """The evidence of the whole groups: what was told, unless some had been screened."""
        group = self.rewards.shape[1]
        if all(ticket.n_rollouts in (None, group) for ticket in self.tickets):
            return evidence
        spec, scored = curriculum.reward_spec, ~np.isnan(self.rewards)
        kept = [rewards[s] for rewards, s in zip(self.rewards, scored, strict=True)]
        return Evidence.from_groups(
            slots=evidence.slots.tolist(),
            scores=[spec.scores(spec.check(rewards, t.id)) for t, rewards in zip(self.tickets, kept, strict=True)],
            solved=[rewards >= spec.threshold for rewards in kept],
            advantages=[a[s] for a, s in zip(self.told, scored, strict=True)],
            failed=(~scored).sum(axis=1).tolist(),
            step=evidence.step.tolist(),
            late=evidence.late.tolist(),
            probe=evidence.probe.tolist(),
        )


def outcome_of(
    ticket: Ticket, rewards: np.ndarray, labels: list[str | None] | None, advantages: np.ndarray | None = None
) -> Outcome:
    """What a ticket is told of its rollouts (n,); those without a reward, NaN, are counted as failed."""
    scored = ~np.isnan(rewards)
    return Outcome(
        ticket.id,
        rewards=rewards[scored],
        advantages=None if advantages is None else advantages[scored],
        failed=int((~scored).sum()),
        labels=None if labels is None else [label for label, s in zip(labels, scored, strict=True) if s],
    )
