"""The loop of a step: the rollouts of its prompts in one round, or in as many as the allocator wants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from rollwise.allocators.base import Allocator
from rollwise.allocators.in_rounds import InRounds, Seen
from rollwise.errors import RewardError, TicketError
from rollwise.options import check_whole, shown
from rollwise.tickets import Evidence, Learner, Outcome, RewardSpec, Ticket
from rollwise.tickets.outcome import outcomes_of
from rollwise.tickets.told import read_outcome


class Told(Protocol):
    """What `Rounds` needs of a curriculum."""

    allocator: Allocator | None
    reward_spec: RewardSpec

    def tell(self, outcomes: Iterable[Outcome]) -> Evidence: ...


@dataclass(frozen=True, slots=True)
class Group:
    """A prompt's rollouts of all rounds.

    Attributes:
        ticket: the curriculum's.
        rewards: (n,) in the order made; NaN where there is none.
        kept: indices of those that are trained on; the baseline is that of all.
    """

    ticket: Ticket
    rewards: np.ndarray
    kept: np.ndarray


class Rounds:
    """The groups of one `ask`. The curriculum is told each group once, when all of its rounds are there.

    Args:
        curriculum: that gave the tickets.
        tickets: what it gave.
        n_rollouts: as in `ask`.

    >>> import rollwise as rw
    >>> curriculum = rw.Uniform(rw.PromptPool(ids=["easy", "hard"]), allocator=rw.ReinforceAda(round_rollouts=4))
    >>> rounds = rw.Rounds(curriculum, curriculum.ask(2, n_rollouts=4), n_rollouts=4)
    >>> while tickets := rounds.ask():
    ...     rewards = {"easy": [1, 0, 1, 0], "hard": [0, 0, 0, 0]}
    ...     rounds.tell([rw.Outcome(t.id, rewards[t.prompt_id]) for t in tickets])
    >>> sorted((group.ticket.prompt_id, len(group.rewards), len(group.kept)) for group in rounds.groups)
    [('easy', 4, 4), ('hard', 16, 4)]
    """

    def __init__(self, curriculum: Told, tickets: Sequence[Ticket], *, n_rollouts: int) -> None:
        self.curriculum, self.mean = curriculum, check_whole("n_rollouts", n_rollouts, least=1)
        self.tickets = list(tickets)
        self.rounds = 0
        allocator = curriculum.allocator
        self._allocator = allocator if isinstance(allocator, InRounds) else None
        self._rewards: dict[str, list[np.ndarray]] = {t.id: [] for t in self.tickets}
        self._told: dict[str, list[Outcome]] = {t.id: [] for t in self.tickets}
        self._free = [t for t in self.tickets if self._allocator is not None and t.n_rollouts is None]
        self._next = self._round()

    def ask(self) -> list[Ticket]:
        """The tickets of the next round, each with its number of rollouts; none when the groups are there."""
        return [replace(t, n_rollouts=n) for t in self.tickets if (n := self._next.get(t.id))]

    def tell(self, outcomes: Iterable[Outcome]) -> None:
        """Take the rewards of the round's tickets; with those of the last round the curriculum is told.

        Advantages, labels and steps are passed on; of a group of several rounds, advantages if each round has some, and
        the earliest step. An outcome by its mean is refused: the next round depends on single rewards.

        Raises:
            TicketError: a ticket of the round is missing or named twice, or another one is there.
            RewardError: as `Curriculum.tell`, of any round; or more rewards than the round has rollouts. In either case
                nothing has changed, and the round can be told again.
        """
        told = outcomes_of(outcomes)
        if wrong := [one for one in told if not isinstance(one, Outcome) or not isinstance(one.ticket_id, str)]:
            raise TicketError(f"tell takes Outcome objects with the id of a ticket, got {shown(wrong[0])}")
        named = [outcome.ticket_id for outcome in told]
        if sorted(named) != sorted(self._next):
            wrong = next(id_ for id_ in (*self._next, *named) if named.count(id_) != (id_ in self._next))
            raise TicketError(f"tell every ticket of this round and no other, once and together; {wrong!r} is not so")
        tickets, spec = {t.id: t for t in self.ask()}, self.curriculum.reward_spec
        read = {outcome.ticket_id: _read(outcome, tickets[outcome.ticket_id], spec) for outcome in told}
        before = self._next
        for id_, outcome in read.items():
            self._told[id_].append(outcome)
        if self.add({id_: _with_failed(outcome.rewards, before[id_]) for id_, outcome in read.items()}):
            try:
                self.curriculum.tell([_joined(parts) for parts in self._told.values() if parts])
            except Exception:
                for id_ in named:
                    self._told[id_].pop()
                    self._rewards[id_].pop()
                self.rounds, self._next = self.rounds - 1, before
                raise

    def add(self, rewards: Mapping[str, np.ndarray]) -> bool:
        """Take the rewards (n,) of the round's tickets by id, NaN for none; whether the groups are there.

        For loops that tell the curriculum themselves.
        """
        for ticket_id, own in rewards.items():
            self._rewards[ticket_id].append(np.asarray(own, dtype=np.float64))
        self.rounds += 1
        self._next = self._round()
        return not self._next

    @property
    def groups(self) -> list[Group]:
        """What came of the tickets, in the order asked."""
        return [Group(t, self._of(t), self.kept(t)) for t in self.tickets]

    def kept(self, ticket: Ticket) -> np.ndarray:
        """Which rollouts of a ticket's group are trained on: indices."""
        rewards = self._of(ticket)
        if self._allocator is None or ticket.n_rollouts is not None:
            return np.arange(len(rewards))
        return self._allocator.kept(self._scores(ticket), self.mean)

    def _round(self) -> dict[str, int]:
        """Rollouts of each ticket in the next round, by id."""
        fixed: dict[str, Any] = {} if self.rounds else {t.id: t.n_rollouts or self.mean for t in self.tickets}
        if self._allocator is None or not self._free:
            return fixed
        spec = self.curriculum.reward_spec
        seen = Seen(self.rounds, [self._scores(t) for t in self._free], float(spec.scores(np.array(spec.threshold))))
        sizes = self._allocator.more(seen, self.mean)
        given = {t.id: n for t, n in zip(self._free, sizes.tolist(), strict=True)}
        return {id_: n for id_, n in {**fixed, **given}.items() if n}

    def _of(self, ticket: Ticket) -> np.ndarray:
        return np.concatenate([np.empty(0), *self._rewards[ticket.id]])

    def _scores(self, ticket: Ticket) -> np.ndarray:
        rewards = self._of(ticket)
        known = ~np.isnan(rewards)
        scores = np.full(len(rewards), np.nan)
        scores[known] = self.curriculum.reward_spec.scores(rewards[known])
        return scores


def _read(outcome: Outcome, ticket: Ticket, spec: RewardSpec) -> Outcome:
    """An outcome of a round's ticket, checked as the curriculum checks that of a whole group."""
    if outcome.mean is not None or outcome.count is not None:
        raise RewardError(f"ticket {ticket.id!r} was told by a mean, and rounds need rewards=[...], one a rollout")
    told = read_outcome(outcome, ticket, Learner("Rounds", spec, "rewards"))
    return replace(outcome, rewards=told.rewards, advantages=told.advantages, labels=told.labels)


def _with_failed(rewards: Any, n: int) -> np.ndarray:
    """The rewards of `n` rollouts, (n,): those given, then NaN."""
    return np.append(rewards, np.full(n - len(rewards), np.nan))


def _joined(parts: list[Outcome]) -> Outcome:
    """What was told of a ticket round by round, as one outcome."""
    if len(parts) == 1:
        return parts[0]
    rewards = [np.asarray(part.rewards, dtype=np.float64) for part in parts]
    advantages: list[Any] = [each for part in parts if part.advantages is not None for each in part.advantages]
    labels = [part.labels or [None] * len(own) for part, own in zip(parts, rewards, strict=True)]
    return Outcome(
        parts[0].ticket_id,
        np.concatenate(rewards),
        advantages=advantages if all(part.advantages is not None for part in parts) else None,
        failed=sum(part.failed for part in parts),
        step=min((part.step for part in parts if part.step is not None), default=None),
        labels=[each for own in labels for each in own] if any(part.labels for part in parts) else None,
    )
