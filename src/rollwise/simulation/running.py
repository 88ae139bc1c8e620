"""Plays a trainer's part against a curriculum, with a simulated world for a model."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rollwise.checks import check_whole
from rollwise.curricula import Curriculum
from rollwise.errors import PoolError, UnboundError
from rollwise.evidence import MIXED_TOLERANCE
from rollwise.outcome import Outcome
from rollwise.simulation.world import World
from rollwise.ticket import Ticket


@dataclass(frozen=True, slots=True)
class SimulationLog:
    """What happened in a *simulated* training of T steps, B prompts asked for in each; row t is what step t asked.

    Attributes:
        slots: (T, B) int64, rows of the prompts in the world's pool; -1 where fewer came.
        expected: (T, B) the true success probability of each when it was rolled out; NaN where fewer came, as below.
        realised: (T, B) the mean reward of each group.
        effective_ratio: (T,) share of the groups whose rewards differ.
        all_good: (T,) share of the groups that are all solved.
        all_bad: (T,) share of the others without contrast.
        abs_advantage: (T,) mean |A| over the groups, A as the learner's `advantage` has it.
        score: (T,) mean true success probability on held-out prompts, when the step's rollouts are made.
        category_scores: (T, C) the same by category.
        final_score: that after the last training.
        category_share: (T, C) share of the prompts in each category.
        categories: C names.
        lanes: lane -> (T,) how many prompts came by it.
        rollouts: (T,) int64, rollouts made so far, to measure and to screen included.
        group_size: rollouts a group.
    """

    slots: np.ndarray
    expected: np.ndarray
    realised: np.ndarray
    effective_ratio: np.ndarray
    all_good: np.ndarray
    all_bad: np.ndarray
    abs_advantage: np.ndarray
    score: np.ndarray
    category_scores: np.ndarray
    final_score: float
    category_share: np.ndarray
    categories: tuple[str, ...]
    lanes: dict[str, np.ndarray]
    rollouts: np.ndarray
    group_size: int

    def average(self, values: np.ndarray) -> np.ndarray:
        """Mean of a value of each prompt, (N,), over those that each step asked for, (T,); NaN where none came."""
        there = self.slots >= 0
        sums = np.where(there, np.asarray(values, dtype=np.float64)[self.slots], 0.0).sum(axis=1)
        counts = there.sum(axis=1)
        return np.asarray(np.where(counts > 0, sums / np.maximum(counts, 1), np.nan))


def parts(series: np.ndarray, n: int = 3) -> np.ndarray:
    """Means of a series (T, ...) over `n` equal parts of training, (n, ...); NaN is left out.

    >>> parts(np.array([0.0, 1.0, 2.0, 3.0, 4.0, 6.0])).tolist()
    [0.5, 2.5, 5.0]
    """
    return np.array([np.nanmean(part, axis=0) for part in np.array_split(series, check_whole("n", n, least=1))])


def heatmap(log: SimulationLog, bins: int | None = None) -> np.ndarray:
    """Share of each step's groups by realised success rate, (T, bins); BOTS, appendix F.4 and Figure 7.

    Bin b of `bins` holds the rates nearest to b / (bins - 1), so the first and the last hold the ends. By default one
    for each possible number of successes in a group, 0/G to G/G. A step in which nothing came is NaN.
    """
    bins = log.group_size + 1 if bins is None else check_whole("bins", bins, least=2)
    there = ~np.isnan(log.realised)
    steps = np.broadcast_to(np.arange(len(log.realised))[:, None], log.realised.shape)
    nearest = np.floor(np.where(there, log.realised, 0.0) * (bins - 1) + 0.5).astype(np.int64)
    counts = np.zeros((len(log.realised), bins))
    np.add.at(counts, (steps[there], nearest[there]), 1.0)
    total = there.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0, counts / np.maximum(total, 1), np.nan))


@dataclass(slots=True)
class _Batch:
    """One step's rollouts on their way from the engine to the trainer.

    Attributes:
        row: of the log.
        tickets: K of them.
        slots: (K,).
        rewards: (K, G) of whole groups, in which the rollouts of a screening come first.
    """

    row: int
    tickets: list[Ticket]
    slots: np.ndarray
    rewards: np.ndarray


def simulate(
    curriculum: Curriculum,
    world: World,
    steps: int,
    batch: int,
    group_size: int,
    *,
    lag: int = 0,
    most_rollouts: int | None = None,
    on_step: Callable[[int, World], None] | None = None,
) -> SimulationLog:
    """Train a *simulated* learner for `steps` steps on what the curriculum asks for. The world is changed by it.

    Everything passes through `probe`, `ask` and `tell`, so whatever keeps their contract can be simulated.

    Args:
        curriculum: unbound, or bound to a pool of the world's prompts. Its rewards must be those of [0, 1].
        world: the learner; `World.fresh` makes another of the same prompts.
        steps: T.
        batch: prompts in a step.
        group_size: rollouts of each.
        lag: rollouts are told and trained on this many steps after they were made, as asynchronous engines have it:
            they come from the abilities of `lag` steps ago, and as many batches are in flight. After the last step
            those are told and trained on too, so T batches are, whatever the lag.
        most_rollouts: no step begins once so many are made, those to measure and screen included: equal compute. The
            log has fewer than T rows then.
        on_step: called before each step with its number, from 0, and the world: to change it while training.

    Raises:
        ConfigError: a number out of range.
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
    try:
        _ = curriculum.pool
    except UnboundError:
        curriculum.bind(world.pool)
    record = _Recorder(world, steps, batch, group_size)
    in_flight: deque[_Batch] = deque()
    screened: dict[str, np.ndarray] = {}  # prompt id -> rewards of its screening
    for row in range(steps):
        if most_rollouts is not None and record.made() >= most_rollouts:
            record.cut(row)
            break
        if on_step is not None:
            on_step(row, world)
        while probes := curriculum.probe(batch, n_rollouts=group_size):
            _measure(curriculum, world, probes, group_size, screened)
            record.extra[row] += sum(t.n_rollouts or group_size for t in probes)
        tickets = curriculum.ask(batch, n_rollouts=group_size)
        slots = world.pool.slots_of([t.prompt_id for t in tickets])
        if (slots < 0).any():
            raise PoolError("the curriculum asks for prompts that this world does not have; bind it to world.pool")
        record.asked(row, tickets, slots)
        rewards = world.rollout(slots, group_size)
        for i, ticket in enumerate(tickets):
            have = group_size - (ticket.n_rollouts or group_size)
            if have:
                rewards[i, :have] = screened.pop(ticket.prompt_id)[:have]
                record.extra[row] -= have
        in_flight.append(_Batch(row, tickets, slots, rewards))
        if len(in_flight) > lag:
            _train(curriculum, world, in_flight.popleft(), record)
    while in_flight:
        _train(curriculum, world, in_flight.popleft(), record)
    return record.log()


def _measure(
    curriculum: Curriculum, world: World, tickets: list[Ticket], group_size: int, screened: dict[str, np.ndarray]
) -> None:
    """Roll out what is only looked at, and keep the rewards of screenings."""
    slots = world.pool.slots_of([t.prompt_id for t in tickets])
    rewards = world.rollout(slots, tickets[0].n_rollouts or group_size)
    curriculum.tell([Outcome(t.id, r) for t, r in zip(tickets, rewards, strict=True)])
    if tickets[0].purpose == "screen":
        screened.update({t.prompt_id: r for t, r in zip(tickets, rewards, strict=True)})


def _train(curriculum: Curriculum, world: World, batch: _Batch, record: _Recorder) -> None:
    groups = zip(batch.tickets, batch.rewards, world.advantages(batch.rewards), strict=True)
    outcomes = [
        Outcome(ticket.id, rewards[-n:], advantages[-n:])
        for ticket, rewards, advantages in groups
        for n in [ticket.n_rollouts or len(rewards)]
    ]
    curriculum.tell(outcomes)
    record.trained(batch.row, batch.rewards, world.advantages(batch.rewards))
    world.train(batch.slots, batch.rewards)


@dataclass(slots=True)
class _Recorder:
    """The arrays of a `SimulationLog` while they are filled."""

    world: World
    steps: int
    batch: int
    group_size: int
    slots: np.ndarray = field(init=False)
    expected: np.ndarray = field(init=False)
    realised: np.ndarray = field(init=False)
    shares: np.ndarray = field(init=False)
    extra: np.ndarray = field(init=False)
    score: np.ndarray = field(init=False)
    category_scores: np.ndarray = field(init=False)
    category_share: np.ndarray = field(init=False)
    lanes: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape, by_category = (self.steps, self.batch), (self.steps, len(self.world.categories))
        self.slots = np.full(shape, -1, dtype=np.int64)
        self.expected, self.realised = np.full(shape, np.nan), np.full(shape, np.nan)
        self.shares = np.full((4, self.steps), np.nan)  # mixed, all good, all bad, |A|
        self.extra = np.zeros(self.steps, dtype=np.int64)  # rollouts besides the groups' own
        self.score = np.full(self.steps, np.nan)
        self.category_scores, self.category_share = np.full(by_category, np.nan), np.zeros(by_category)

    def asked(self, row: int, tickets: list[Ticket], slots: np.ndarray) -> None:
        """Note what was asked for, and how good the learner is, as its rollouts begin."""
        world, k = self.world, len(slots)
        self.slots[row, :k] = slots
        self.expected[row, :k] = world.success_rates(slots)
        numbers = np.bincount(world.items.category[slots], minlength=len(world.categories))
        self.category_share[row] = numbers / max(k, 1)
        self.score[row], self.category_scores[row] = world.score(), world.category_scores()
        for ticket in tickets:
            if ticket.lane not in self.lanes:
                self.lanes[ticket.lane] = np.zeros(self.steps, dtype=np.int64)
            self.lanes[ticket.lane][row] += 1

    def trained(self, row: int, rewards: np.ndarray, advantages: np.ndarray) -> None:
        """Note what came of it: rewards and advantages (K, G) of whole groups."""
        if not len(rewards):
            return
        self.realised[row, : len(rewards)] = rewards.mean(axis=1)
        mixed = np.ptp(rewards, axis=1) > MIXED_TOLERANCE
        all_good = ~mixed & (rewards.min(axis=1) >= 1.0 - MIXED_TOLERANCE)
        judged = (mixed, all_good, ~mixed & ~all_good, np.abs(advantages))
        self.shares[:, row] = [values.mean() for values in judged]

    def made(self) -> int:
        """Rollouts so far."""
        return int(self.extra.sum() + self.group_size * np.count_nonzero(self.slots >= 0))

    def cut(self, rows: int) -> None:
        """Keep the first rows only: no more will come."""
        for name in ("slots", "expected", "realised", "score", "category_scores", "category_share", "extra"):
            setattr(self, name, getattr(self, name)[:rows])
        self.shares = self.shares[:, :rows]
        self.lanes = {lane: counts[:rows] for lane, counts in self.lanes.items()}

    def log(self) -> SimulationLog:
        """All of it."""
        mixed, all_good, all_bad, abs_advantage = self.shares
        return SimulationLog(
            slots=self.slots,
            expected=self.expected,
            realised=self.realised,
            effective_ratio=mixed,
            all_good=all_good,
            all_bad=all_bad,
            abs_advantage=abs_advantage,
            score=self.score,
            category_scores=self.category_scores,
            final_score=self.world.score(),
            category_share=self.category_share,
            categories=self.world.categories,
            lanes=self.lanes,
            rollouts=np.cumsum(self.extra + self.group_size * (self.slots >= 0).sum(axis=1)),
            group_size=self.group_size,
        )
