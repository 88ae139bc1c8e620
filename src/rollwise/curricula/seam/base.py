"""The seam: `ask` for prompts to roll out, `tell` what came of them.

`Curriculum` owns everything that methods share: tickets, validation, expiry, the clock, random streams, saving and
joining by id (`resumable.py`). A method is a subclass with a few hooks (`method.py`): `select` chooses, `observe`
learns.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, TypedDict

import numpy as np

from rollwise.columns import Columns
from rollwise.curricula.seam.consulting import Consulting
from rollwise.curricula.seam.picks import Picks
from rollwise.curricula.seam.rails import Guard, Rails, describe
from rollwise.curricula.seam.resumable import COUNTERS
from rollwise.curricula.seam.starvation import ALARM_SHARE, StarvationAlarm
from rollwise.curricula.seam.unscored import Unscored
from rollwise.draws import hash_ids, ties
from rollwise.errors import ConfigError, PoolError, UnboundError
from rollwise.evidence import Evidence
from rollwise.ledger import Ledger
from rollwise.options import check_ids, check_whole, checked
from rollwise.outcome import Outcome, RewardSpec
from rollwise.pool import PromptPool
from rollwise.rng import RngStreams, check_seed
from rollwise.ticket import Purpose, Ticket

logger = logging.getLogger(__name__)

_SHARED_COLUMNS: dict[str, tuple[type, Any]] = {
    "asked": (np.int64, 0),
    "streak": (np.int32, 0),  # +z after z groups in a row that were all solved, -z after z without contrast else
}


CURRICULA: dict[str, type[Curriculum]] = {}
"""Name -> method. A subclass of `Curriculum` with a `name` is in it once its module is imported."""


class CoreOptions(TypedDict, total=False):
    """The options that every curriculum takes.

    Attributes:
        seed: root of every random choice; default 0.
        reward_spec: range of the raw rewards; default 0 to 1, solved at 1.
        expire_after: a ticket not told within this many steps expires and frees its prompt; default 100; None: never.
        rails: what every batch guarantees, whatever the method believes: "on" (`Rails()`), "off" or None, a `Rails`, or
            a mapping of its attributes. By default on for `EmpiricalBayes`, `Recommended`, `Selector`, `Mixture` and
            `Nested`, off for all others, as the papers have none.
    """

    seed: int
    reward_spec: RewardSpec
    expire_after: int | None
    rails: Rails | Mapping[str, Any] | str | bool | None


class Curriculum(Consulting):
    """Decides which prompts to roll out next.

    Args:
        pool: the prompts; or None, and `bind` gives them later (a trainer does it with its data set).
        **core: see `CoreOptions`.

    A subclass declares its options as keyword-only arguments of its `__init__`, which are checked before it runs and
    saved (`rollwise.options`); those that are no plain values it passes on as `options`. It makes everything that
    changes in `build`, and implements `select`, `observe`, `hold` and `release`.
    """

    unsaved: ClassVar[frozenset[str]] = frozenset()
    """Options that the saved state holds in another form."""

    method_name: ClassVar[str | None] = None
    """Its name in `CURRICULA`, for commands and configuration files; None of a base."""
    paper: ClassVar[str] = ""
    needs: ClassVar[str] = ""

    def __init_subclass__(cls, *, name: str | None = None, paper: str = "", needs: str = "", **more: Any) -> None:
        """Register a method, and have its options checked.

        Args:
            name: for commands and configuration files, as in `train --curriculum NAME`; None for a base.
            paper: where the method is from, for the table of methods.
            needs: what it needs of the pool or the trainer, likewise.
            **more: of other bases.
        """
        super().__init_subclass__(**more)
        cls.method_name, cls.paper, cls.needs = name, paper, needs
        if name is not None:
            CURRICULA[name] = cls
        if "__init__" in vars(cls):
            cls.__init__ = checked(cls.__init__)  # type: ignore[method-assign]

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        options: Mapping[str, Any] | None = None,
        seed: int = 0,
        reward_spec: RewardSpec | None = None,
        expire_after: int | None = 100,
        rails: Rails | Mapping[str, Any] | str | bool | None = "default",
    ) -> None:
        self.seed = check_seed(seed)
        self.reward_spec = RewardSpec() if reward_spec is None else reward_spec
        if not isinstance(self.reward_spec, RewardSpec):
            raise ConfigError(f"reward_spec must be a RewardSpec, got {reward_spec!r}")
        self.expire_after = None if expire_after is None else check_whole("expire_after", expire_after, least=1)
        self.rails = Rails.read(rails, self.default_rails)
        self.options: dict[str, Any] = {
            **{k: v for k, v in self.__dict__.pop("given_options", {}).items() if k not in self.unsaved},
            **(options or {}),
            "reward_spec": asdict(self.reward_spec),
            "expire_after": expire_after,
            "rails": describe(self.rails),
        }
        self._pool: PromptPool | None = None
        self.step = 0
        if pool is not None:
            self.bind(pool)

    # ---- the seam ----

    def bind(self, pool: PromptPool) -> None:
        """Give the curriculum its prompts; once.

        Raises:
            PoolError: it has a pool already.
            MissingColumnError: the pool lacks a column that the method needs. The curriculum stays unbound.
        """
        if self._pool is not None:
            raise PoolError(f"this {type(self).__name__} is bound to a pool already; make a new one for another pool")
        if not isinstance(pool, PromptPool):
            raise PoolError(f"a curriculum is bound to a PromptPool, got {type(pool).__name__}")
        fresh = copy.copy(self)
        fresh._start(pool)
        self.__dict__ = fresh.__dict__

    def ask(
        self, n: int, *, step: int | None = None, n_rollouts: int | None = None, exclude: Sequence[str] = ()
    ) -> list[Ticket]:
        """Up to `n` distinct prompts to roll out now, none of which has an open ticket.

        Fewer come back only if fewer are eligible, which the metric `short` counts.

        Args:
            n: how many prompts.
            step: the training step they are for, never less than the last one; by default one more than the last.
            n_rollouts: how many rollouts make a group, those of a screening before included; what is left of them to
                make is written on the tickets: all of them, where the screening had as many, or more.
            exclude: ids of prompts that may not be chosen this time.

        Raises:
            ConfigError: a number out of range. Nothing has changed then.
        """
        n = check_whole("n", n, least=1)
        aside = np.unique(self.pool.slots_of(check_ids("exclude", exclude)))
        n_rollouts = self._begin(step, n_rollouts)
        self.step_begun = False
        aside = aside[(aside >= 0) & ~self.ledger.open[aside]]
        self._hold(aside)
        try:
            picks = self._choose(min(n, len(self.pool) - self.ledger.n_open - len(aside)))
        except Exception:
            self._release(np.flatnonzero(~self.ledger.open))  # what was chosen before it failed, and the excluded
            raise
        self._release(aside)
        self.counters["asked"] += len(picks)
        self.counters["short"] += n - len(picks)
        return self._issue(picks, n_rollouts, "train")

    def probe(
        self, n: int, *, step: int | None = None, n_rollouts: int | None = None, wanted: int | None = None
    ) -> list[Ticket]:
        """Up to `n` prompts to roll out and tell about, but not to train on; most methods never want any.

        SFL, LILO, ADCL and SPEED choose by what such rollouts find. Call it before `ask`, tell what came of it, and
        again until nothing comes back. Who never calls it gets the fallback that the method documents.

        Args:
            n: at most how many prompts at a time.
            step: as in `ask`; a step that is given need not be given again to the `ask` that follows.
            n_rollouts: how many rollouts of each, where the method has no number of its own.
            wanted: how many prompts the `ask` that follows will want. SPEED screens until it has as many.

        Raises:
            ConfigError: a number out of range. Nothing has changed then.
        """
        n = check_whole("n", n, least=1)
        wanted = None if wanted is None else check_whole("wanted", wanted, least=1)
        n_rollouts = self._begin(step, n_rollouts)
        self.step_begun = True
        self.next_ask = wanted
        picks = self.select_probes(self._eligible(n))
        self.next_ask = None
        self._hold(picks.slots)
        self.counters["probed"] += len(picks)
        return self._issue(picks, self.probe_rollouts or n_rollouts, self.probe_purpose)

    def tell(self, outcomes: Iterable[Outcome]) -> Evidence:
        """Learn from outcomes, in any order, early, late or partial; all of them, or none if one is wrong.

        Returns:
            What was learnt, group by group in the order the tickets were issued.

        Raises:
            TicketError: a ticket is unknown, told already, or named twice.
            RewardError: rewards are NaN, infinite, out of range or too many. Nothing has changed in either case.
        """
        pool = self.pool
        told = self.ledger.check([outcomes] if isinstance(outcomes, Outcome) else outcomes, self.reward_spec)
        evidence = self.ledger.close(told, self.reward_spec)
        if len(evidence):
            self._settle()
            self.count(evidence)
            slots = np.unique(evidence.slots)
            if self.unscored is not None:
                self.unscored.observe(evidence, self.step)
            self._hold(slots)  # a late ticket's prompt is not in flight: take it out before its rank changes
            for part in evidence.rounds():
                self._learn(part)
            self._release(slots[~self.ledger.open[slots]])
            if evidence.count[~evidence.probe].any():
                self.told_step = self.step
        logger.debug("told %d of %d prompts", len(evidence), len(pool))
        return evidence

    def metrics(self) -> dict[str, float]:
        """Flat numbers since the beginning: tickets asked, told, open, expired, late; coverage; effective ratio; ..."""
        pool, counters = self.pool, self.counters
        groups = counters["mixed"] + counters["all_good"] + counters["all_bad"]
        ratio = {"effective_ratio": counters["mixed"] / groups} if groups else {}
        numbers = {
            **counters,
            **ratio,
            "open": self.ledger.n_open,
            "coverage": np.count_nonzero(self.columns["asked"]) / len(pool),
            **{k: v for part in (self.guard, self.unscored, self.alarm) if part for k, v in part.metrics().items()},
            **self.own_metrics(),
        }
        return {name: float(value) for name, value in numbers.items()}

    def mastered(self, groups: int = 2) -> list[str]:
        """Ids of the prompts not in flight whose last `groups` groups were all solved: candidates for retirement."""
        done = (self.columns["streak"] >= check_whole("groups", groups, least=1)) & ~self.ledger.open
        return [self.pool.ids[slot] for slot in np.flatnonzero(done)]

    def hopeless(self, groups: int = 4) -> list[str]:
        """Ids of the prompts not in flight whose last `groups` groups had no contrast and were not solved."""
        lost = (self.columns["streak"] <= -check_whole("groups", groups, least=1)) & ~self.ledger.open
        return [self.pool.ids[slot] for slot in np.flatnonzero(lost)]

    @property
    def pool(self) -> PromptPool:
        """The prompts; `UnboundError` before there are any."""
        if self._pool is None:
            raise UnboundError(
                f"this {type(self).__name__} has no prompts yet: construct it with a PromptPool, call bind(pool), or "
                "hand it to a trainer, which binds it to its data set"
            )
        return self._pool

    # ---- what a method may use ----

    def ties(self, slots: np.ndarray) -> np.ndarray:
        """uint32 tie-breakers (K,): random over prompts and visits, but the same whatever the order of events."""
        return ties(self.rng.seed, self.id_hashes[slots], self.columns["asked"][slots])

    # ---- inside, also used by curricula of curricula ----

    def _begin(self, step: int | None, n_rollouts: int | None) -> int | None:
        """Set the clock, if the arguments are right, and free what has expired; `n_rollouts` as an int."""
        if n_rollouts is not None:
            n_rollouts = check_whole("n_rollouts", n_rollouts, least=1)
        pool = self.pool
        following = self.step if self.step_begun else self.step + 1
        now = following if step is None else check_whole("step", step, least=self.step)
        self.set_clock(now)
        freed = self.ledger.expire(now)
        self._release(freed[~self.ledger.open[freed]])
        self.counters["expired"] += len(freed)
        self._settle()
        self._set_aside()
        logger.debug("step %d: %d of %d prompts in flight", now, self.ledger.n_open, len(pool))
        return n_rollouts

    def _issue(self, picks: Picks, n_rollouts: int | None, purpose: Purpose) -> list[Ticket]:
        return self.ledger.issue(
            picks.slots,
            lanes=picks.lanes,
            predicted=np.where(np.isnan(picks.predicted), self.expected(picks.slots), picks.predicted),
            propensity=picks.propensity,
            step=self.step,
            n_rollouts=[
                None if n_rollouts is None else n_rollouts - have if have < n_rollouts else n_rollouts
                for have in picks.have.tolist()
            ],
            variance=picks.variance,
            purpose=purpose,
        )

    def _learn(self, evidence: Evidence) -> None:
        """From groups of distinct prompts, of either purpose."""
        judged = evidence.where(evidence.judged)
        self.columns["streak"][judged.slots] = judged.streaks(self.columns["streak"][judged.slots])
        if evidence.probe.any():
            self.observe_probes(evidence.where(evidence.probe))
        trained = evidence.where(~evidence.probe)
        if len(trained):
            self.observe(trained)
            if self.guard is not None:
                self.guard.observe(trained, self.step)

    def _choose(self, k: int) -> Picks:
        """`k` prompts, those of the rails first; they are on hold and counted when this returns.

        What is set aside for want of rewards makes up for what the others lack.
        """
        parts: list[Picks] = []
        if self.guard is not None and k:
            parts.append(self.guard.choose(k, self.step))
            self._hold(parts[0].slots)
        railed = sum(map(len, parts))
        if self.unscored is not None:
            parts.append(self.unscored.choose(k - railed))
        own = self._eligible(k - sum(map(len, parts)))
        chosen = self.select(own) if own else Picks.join([])
        parts.append(chosen)
        if self.unscored is not None:
            parts.append(self.unscored.fill(k - sum(map(len, parts))))
        picks = Picks.join(parts)
        self._hold(picks.slots)
        self.mark(picks)
        if self.guard is not None:
            self.guard.mark(picks.slots, railed)
        if self.alarm is not None and self.unscored is not None:
            asked, streak = self.columns["asked"], self.columns["streak"]
            self.alarm.count(chosen.slots, asked=asked, streak=streak, failing=self.unscored.failing)
        return picks

    def _eligible(self, n: int) -> int:
        """Of `n` prompts wanted, as many as are neither in flight nor set aside."""
        n = min(n, len(self.pool) - self.ledger.n_open)
        return n if self.unscored is None else self.unscored.eligible(n)

    def _set_aside(self) -> None:
        """Take out what never gets a reward, and put back what got one again."""
        if self.unscored is None:
            return
        out, back = self.unscored.settle(self.step)
        for part in (self, self.guard):
            if part is not None:
                part.hold(out)
        self._release(back[~self.ledger.open[back]])

    def _hold(self, slots: np.ndarray) -> None:
        for part in (self, self.guard, self.unscored):
            if part is not None:
                part.hold(slots)

    def _release(self, slots: np.ndarray) -> None:
        if self.unscored is not None:
            slots = self.unscored.release(slots)
        for part in (self, self.guard):
            if part is not None:
                part.release(slots)

    def set_clock(self, now: int) -> None:
        """The present step is `now`."""
        self.step = now

    def _settle(self) -> None:
        if 0 <= self.told_step < self.step:
            self.end_step()
            self.told_step = -1

    def _start(self, pool: PromptPool, *, ledger: Ledger | None = None, id_hashes: np.ndarray | None = None) -> None:
        self._pool = pool
        self.ledger = Ledger(pool, expire_after=self.expire_after) if ledger is None else ledger
        self.columns = Columns(len(pool), {**_SHARED_COLUMNS, **self.columns_spec})
        self.rng = RngStreams(self.seed)
        self.id_hashes = hash_ids(pool.ids) if id_hashes is None else id_hashes
        self.step = 0
        self.step_begun = False  # whether a probe has begun the step of the next `ask`
        self.told_step = -1  # the step in which something was told that `end_step` has not yet closed; -1: none
        self.counters: dict[str, int] = dict.fromkeys(COUNTERS, 0)
        alone = ledger is None  # a curriculum within another is guarded there
        self.guard = Guard(self.rails, pool, ties=self.ties) if alone and self.rails is not None else None
        before = (getattr(self, "unscored", None), getattr(self, "alarm", None))
        self.unscored = self.alarm = None
        if alone:
            self.unscored = Unscored(pool, ties=self.ties, sets_aside=not self.rotates, before=before[0])
            share = ALARM_SHARE if self.rails is None else self.rails.alarm_share
            if pool.has_categories and not self.rotates:
                self.alarm = StarvationAlarm(pool, share=share, before=before[1])
        self.build()
        self._release(np.arange(len(pool)))

    def mark(self, picks: Picks) -> None:
        """Count one visit to each of the picks."""
        self.columns["asked"][picks.slots] += 1

    def count(self, evidence: Evidence) -> None:
        """Update the counters. Probe groups add to `probe_rollouts` only."""
        self.counters["probe_rollouts"] += int(evidence.count[evidence.probe].sum())
        evidence = evidence.where(~evidence.probe)
        self.counters["told"] += len(evidence)
        self.counters["late"] += int(evidence.late.sum())
        self.counters["failed"] += int(evidence.failed.sum())
        self.counters["rollouts"] += int(evidence.count.sum())
        self.counters["mixed"] += int(evidence.mixed.sum())
        self.counters["all_good"] += int(evidence.all_good.sum())
        self.counters["all_bad"] += int(evidence.all_bad.sum())
