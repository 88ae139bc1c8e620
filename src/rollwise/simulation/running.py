"""Plays a trainer's part against a curriculum, with a simulated world for a model."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from rollwise.allocators import Rounds
from rollwise.curricula import Curriculum
from rollwise.errors import ConfigError, PoolError, UnboundError
from rollwise.gates import DynamicSampling
from rollwise.options import check_whole
from rollwise.simulation.items import outcome_gains
from rollwise.simulation.log import Recorder, SimulationLog
from rollwise.simulation.world import AnyWorld
from rollwise.tickets import Evidence, Outcome, by_size
from rollwise.tickets.ticket import Ticket, is_continued

W = TypeVar("W", bound=AnyWorld)


def simulate(
    curriculum: Curriculum,
    world: W,
    steps: int,
    batch: int,
    group_size: int,
    *,
    lag: int = 0,
    most_rollouts: int | None = None,
    gate: DynamicSampling | None = None,
    on_step: Callable[[int, W], None] | None = None,
) -> SimulationLog:
    """Train a *simulated* learner for `steps` steps on what the curriculum asks for. The world is changed by it.

    Everything passes through `probe`, `ask` and `tell`, so whatever keeps their contract can be simulated. Each step
    begins with an evaluation, whose score the curriculum is given (`note_score`); a replay has none. Probes count as
    rollouts, but for those of an oracle (tickets of the purpose "oracle"), which are counted apart.

    Args:
        curriculum: unbound, or bound to a pool of the world's prompts. Its rewards must be those of [0, 1].
        world: the learner; `World.fresh` makes another of the same prompts.
        steps: T.
        batch: prompts in a step.
        group_size: rollouts of each.
        lag: rollouts are told and trained on this many steps after they were made, as asynchronous engines have it:
            they come from the abilities of `lag` steps ago, and as many batches are in flight. After the last step
            those are told and trained on too, so T batches are, whatever the lag.
        most_rollouts: no step begins once this many are made, those to measure and screen included: equal compute. The
            log has fewer than T rows then.
        gate: which groups train, with further prompts rolled out in place of the others. It must know at once what
            came of a round, so its groups are told at once, and only trained on after the lag.
        on_step: called before each step with its number, from 0, and the world: to change it while training.

    Raises:
        ConfigError: a number out of range, or an option with a schedule by tokens, of which there are none; or a ticket
            for another number of rollouts than the group: nothing of its batch is rolled out then.
        PoolError: the curriculum asks for a prompt that the world does not have.

    >>> from rollwise.curricula import Uniform
    >>> from rollwise.simulation import make_world
    >>> world, pool = make_world(200, seed=0)
    >>> log = simulate(Uniform(pool), world, steps=5, batch=8, group_size=4)
    >>> log.realised.shape, int(log.rollouts[-1]), bool(log.final_score > log.score[0])
    ((5, 8), 160, True)
    """
    steps, batch = check_whole("steps", steps, least=1), check_whole("batch", batch, least=1)
    group_size, lag = check_whole("group_size", group_size, least=1), check_whole("lag", lag, least=0)
    without_tokens(curriculum)
    try:
        _ = curriculum.pool
    except UnboundError:
        curriculum.bind(world.pool)
    width = batch if gate is None else gate.most_groups(batch)
    record = Recorder(steps, width, group_size, world.categories)
    trainer = _Trainer(curriculum, world, group_size, record)
    in_flight: deque[tuple[int, _Groups, bool]] = deque()
    for row in range(steps):
        if most_rollouts is not None and record.made >= most_rollouts:
            break
        if on_step is not None:
            on_step(row, world)
        trainer.begin(row, batch, wanted=batch if gate is None else gate.batch(batch).wanted())
        if gate is None:
            groups = trainer.roll_out(row, curriculum.ask(batch, n_rollouts=group_size))
        else:
            groups = trainer.refill(row, gate, batch)
        in_flight.append((row, groups, gate is not None))
        if len(in_flight) > lag:
            trainer.train(*in_flight.popleft())
    while in_flight:
        trainer.train(*in_flight.popleft())
    return record.log(world.scores()[0])


def without_tokens(curriculum: Curriculum) -> Curriculum:
    """The curriculum; `ConfigError` if an option has a schedule by tokens, which would stay at its first value."""
    if curriculum.counts_tokens:
        raise ConfigError(
            f"an option of {type(curriculum).__name__} has a schedule by tokens, and a simulation has no tokens; give "
            "the schedule by steps"
        )
    return curriculum


@dataclass(frozen=True, slots=True)
class _Groups:
    """Rollouts on their way from the engine to the trainer.

    Attributes:
        tickets: K of them.
        slots: (K,).
        rewards, advantages: K arrays (G,) of whole groups, in which the rollouts of a screening come first.
        used: K arrays of the rollouts that are trained on, if the group is.
    """

    tickets: list[Ticket]
    slots: np.ndarray
    rewards: list[np.ndarray]
    advantages: list[np.ndarray]
    used: list[np.ndarray]

    @property
    def own(self) -> list[np.ndarray]:
        """K arrays of the rewards of what the tickets asked for, without those of a screening."""
        return [own[-(ticket.n_rollouts or len(own)) :] for ticket, own in zip(self.tickets, self.rewards, strict=True)]

    def at(self, rows: list[int], shares: list[int] | None) -> _Groups:
        """The groups at these rows, and of each no more rollouts to train on than its share."""
        shares = [self.rewards[i].size for i in rows] if shares is None else shares
        tickets, rewards, advantages = ([of[i] for i in rows] for of in (self.tickets, self.rewards, self.advantages))
        used = [self.used[i][:n] for i, n in zip(rows, shares, strict=True)]
        return _Groups(tickets, self.slots[rows], rewards, advantages, used)  # type: ignore[arg-type]

    @classmethod
    def join(cls, rounds: list[_Groups]) -> _Groups:
        return cls(
            [ticket for groups in rounds for ticket in groups.tickets],
            np.concatenate([groups.slots for groups in rounds]),
            [rewards for groups in rounds for rewards in groups.rewards],
            [advantages for groups in rounds for advantages in groups.advantages],
            [used for groups in rounds for used in groups.used],
        )


@dataclass(slots=True)
class _Trainer(Generic[W]):
    """Rolls out, tells and trains.

    Attributes:
        screened: prompt id -> rewards of its screening.
    """

    curriculum: Curriculum
    world: W
    group_size: int
    record: Recorder
    screened: dict[str, np.ndarray] = field(default_factory=dict)

    def begin(self, row: int, batch: int, *, wanted: int) -> None:
        """Evaluate, and roll out what is only looked at before `wanted` prompts are asked for."""
        score, by_category = self.world.scores()
        if not np.isnan(score):
            self.curriculum.note_score(score)
        self.probe(row, batch, wanted=wanted)
        self.record.begun(row, score, by_category)

    def probe(self, row: int, batch: int, *, wanted: int) -> None:
        """Roll out what is only looked at, and keep the rewards of screenings."""
        while tickets := self.curriculum.probe(batch, n_rollouts=self.group_size, wanted=wanted):
            parts: dict[int, list[Ticket]] = {}
            for ticket in tickets:
                parts.setdefault(ticket.n_rollouts or self.group_size, []).append(ticket)
            for n, part in parts.items():
                rewards = self.world.rollout(self._slots(part), n)
                self.curriculum.tell([Outcome(t.id, r) for t, r in zip(part, rewards, strict=True)])
                self.record.spent(row, rewards.size, charged=part[0].purpose != "oracle")
                if part[0].purpose == "screen":
                    self.screened.update({t.prompt_id: r for t, r in zip(part, rewards, strict=True)})

    def roll_out(self, row: int, tickets: list[Ticket]) -> _Groups:
        """Whole groups, those of screened prompts completed, and those of an allocator in all of their rounds."""
        slots, allocator = self._slots(tickets), self.curriculum.allocator
        if allocator is None or not allocator.in_rounds:
            made = [self._to_make(ticket) for ticket in tickets]  # raises before anything is noted
        self.record.asked(row, tickets, slots, self.world.success_rates(slots))
        if allocator is not None and allocator.in_rounds:
            turns = Rounds(self.curriculum, tickets, n_rollouts=self.group_size)
            while part := turns.ask():
                sizes = np.array([t.n_rollouts for t in part])
                self.record.spent(row, int(sizes.sum()))
                turns.add(dict(zip([t.id for t in part], self._made(self._slots(part), sizes), strict=True)))
            rewards, used = [g.rewards for g in turns.groups], [g.kept for g in turns.groups]
        else:
            rewards = self._completed(tickets, slots, made)
            self.record.spent(row, sum(made))
            used = [np.arange(len(own)) for own in rewards]
        advantages = list(rewards)
        for rows, same in by_size(rewards):
            for i, own in zip(rows.tolist(), self.world.advantages(same), strict=True):
                advantages[i] = own
        return _Groups(tickets, slots, rewards, advantages, used)

    def _made(self, slots: np.ndarray, sizes: np.ndarray) -> list[np.ndarray]:
        """Rewards of as many rollouts as `sizes` (K,) of each of the slots (K,)."""
        rewards: list[np.ndarray] = [np.empty(0)] * len(slots)
        for size in dict.fromkeys(sizes.tolist()):
            rows = np.flatnonzero(sizes == size)
            for i, group in zip(rows.tolist(), self.world.rollout(slots[rows], size), strict=True):
                rewards[i] = group
        return rewards

    def _completed(self, tickets: list[Ticket], slots: np.ndarray, made: list[int]) -> list[np.ndarray]:
        """Rewards of whole groups; of screened prompts only the last `made` rollouts are new."""
        sizes = np.array(made, dtype=np.int64)
        allocated = self.curriculum.allocator is not None
        for i, ticket in enumerate(tickets):
            if ticket.prompt_id in self.screened and (is_continued(ticket) or not allocated):
                sizes[i] = made[i] + len(self.screened[ticket.prompt_id]) if allocated else self.group_size
        rewards = self._made(slots, sizes)
        for i, n in enumerate(made):
            if n < sizes[i]:
                rewards[i][:-n] = self.screened.pop(tickets[i].prompt_id)
        return rewards

    def refill(self, row: int, gate: DynamicSampling, batch: int) -> _Groups:
        """The groups of a batch that the gate admits, or fills it with; all of its rounds are told and noted."""
        allocated = self.curriculum.allocator is not None
        filling, rounds = gate.batch(batch, mean=self.group_size if allocated else 1), [self.roll_out(row, [])]
        while filling.missing:
            tickets = filling.ask(self.curriculum, n_rollouts=self.group_size)
            groups = self.roll_out(row, tickets)
            first = sum(len(r.tickets) for r in rounds)
            rounds.append(groups)
            self._tell(groups)
            sizes = [len(used) for used in groups.used] if allocated else None
            filling.add(range(first, first + len(tickets)), self._evidence(groups), sizes)
        whole = _Groups.join(rounds)
        self._note(row, whole)
        return whole.at(filling.groups, filling.shares if allocated else None)

    def train(self, row: int, groups: _Groups, told: bool) -> None:
        """Tell, unless that is done, and train."""
        if not told:
            self._tell(groups)
            self._note(row, groups)
        allocator, rewards = self.curriculum.allocator, groups.rewards
        some = any(len(used) < len(own) for used, own in zip(groups.used, rewards, strict=True))
        before = self.world.success_rates(groups.slots)
        given = np.stack(rewards) if len(set(map(len, rewards))) == 1 else rewards
        weight = "rollout" if allocator is None else allocator.weight
        self.world.train(groups.slots, given, weight, groups.used if some else None)
        if self.curriculum.wants_feedback:
            gains = outcome_gains(before, self.world.success_rates(groups.slots), rewards, groups.advantages)
            self.curriculum.feedback({t.id: gain for t, gain in zip(groups.tickets, gains, strict=True)})

    def _to_make(self, ticket: Ticket) -> int:
        """Rollouts to make of a ticket: the whole group, where its screening was made before this simulation."""
        kept = None if (own := self.screened.get(ticket.prompt_id)) is None else len(own)
        return self.curriculum.to_make(ticket, self.group_size, kept=kept)

    def _slots(self, tickets: list[Ticket]) -> np.ndarray:
        slots = self.world.pool.slots_of([t.prompt_id for t in tickets])
        if (slots < 0).any():
            raise PoolError("the curriculum asks for prompts that this world does not have; bind it to world.pool")
        return slots

    def _tell(self, groups: _Groups) -> None:
        """What was rolled out for these tickets, without their screening, which is told already."""
        rows = zip(groups.tickets, groups.own, groups.advantages, strict=True)
        self.curriculum.tell([Outcome(t.id, own, advantages[-len(own) :]) for t, own, advantages in rows])

    def _note(self, row: int, groups: _Groups) -> None:
        category, advantages = self.world.category[groups.slots], groups.advantages
        self.record.came(row, self._evidence(groups), category, advantages, [own.mean() for own in groups.own])

    def _evidence(self, groups: _Groups) -> Evidence:
        """Of whole groups, screenings included."""
        return Evidence.from_groups(
            slots=groups.slots.tolist(),
            scores=groups.rewards,
            solved=[rewards >= self.curriculum.reward_spec.threshold for rewards in groups.rewards],
            advantages=groups.advantages,
            step=[t.step for t in groups.tickets],
        )
