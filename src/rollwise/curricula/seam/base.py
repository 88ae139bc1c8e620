"""The seam: `ask` for prompts to roll out, `tell` what came of them.

`Curriculum` owns everything that methods share: tickets, validation, expiry, the clock, random streams, saving and
joining by id (`resumable.py`). A method is a subclass with a few hooks (`method.py`): `select` chooses, `observe`
learns.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypedDict

import numpy as np

from rollwise.curricula.seam.exclusive import Busy, exclusive
from rollwise.curricula.seam.flow import Flow
from rollwise.curricula.seam.rails import Rails, describe
from rollwise.errors import ConfigError, PoolError, ShortError, UnboundError
from rollwise.evidence import Evidence
from rollwise.incarnations import TicketStatus
from rollwise.ledger import Checked, TellReport
from rollwise.options import check_ids, check_whole, checked
from rollwise.outcome import Outcome, RewardSpec
from rollwise.plugins import Registry
from rollwise.pool import PromptPool
from rollwise.rng import check_seed
from rollwise.ticket import Ticket

logger = logging.getLogger(__name__)

CURRICULA: Registry[type[Curriculum]] = Registry("curriculum", "curricula")
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


class Curriculum(Flow):
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
        self.range_declared = reward_spec is not None
        self.reward_spec = RewardSpec() if reward_spec is None else reward_spec
        if not isinstance(self.reward_spec, RewardSpec):
            raise ConfigError(f"reward_spec must be a RewardSpec, got {reward_spec!r}")
        self.expire_after = None if expire_after is None else check_whole("expire_after", expire_after, least=1)
        self.rails = Rails.read(rails, self.default_rails)
        self.options: dict[str, Any] = {
            **{k: v for k, v in self.__dict__.pop("given_options", {}).items() if k not in self.unsaved},
            **(options or {}),
            "reward_spec": describe(self.reward_spec),
            "expire_after": expire_after,
            "rails": describe(self.rails),
        }
        self._pool: PromptPool | None = None
        self.busy = Busy()
        self.step = 0
        if pool is not None:
            self.bind(pool)

    # ---- the seam ----

    @exclusive
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

    @exclusive
    def ask(
        self,
        n: int,
        *,
        step: int | None = None,
        n_rollouts: int | None = None,
        exclude: Sequence[str] = (),
        short: Literal["allow", "raise"] = "allow",
    ) -> list[Ticket]:
        """Up to `n` distinct prompts to roll out now, all without an open ticket.

        Fewer come back only if fewer are eligible, which the metric `short` counts. An engine with fixed batches asks
        with `short="raise"`; on `ShortError` it waits for outcomes, tells them and asks again.

        Args:
            n: how many prompts.
            step: the training step they are for. By default one more than the last, and never less than the last; once
                `advance` was called, the clock's step, and a smaller one is served as well, see there.
            n_rollouts: how many rollouts make a group, those of a screening before included; what is left of them to
                make is written on the tickets: all of them, where the screening had as many, or more.
            exclude: ids of prompts that may not be chosen this time.
            short: "raise": raise where fewer than `n` are eligible; "allow": give those.

        Raises:
            ConfigError: a number out of range. Nothing has changed then.
            ShortError: fewer than `n` are eligible, and `short` is "raise". Nothing has changed then.
            ConcurrentUseError: another call is running. Nothing has changed.
        """
        n, n_rollouts = check_whole("n", n, least=1), _check_rollouts(n_rollouts)
        if short not in ("allow", "raise"):
            raise ConfigError(f"short must be 'allow' or 'raise', got {short!r}")
        aside = np.unique(self.pool.slots_of(check_ids("exclude", exclude)))
        if short == "raise":
            self._check_enough(n, aside[aside >= 0], max(self._step_of(step), self.step))
        step = self._begin(step)
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
        return self._issue(picks, step, n_rollouts, "train")

    @exclusive
    def probe(
        self, n: int, *, step: int | None = None, n_rollouts: int | None = None, wanted: int | None = None
    ) -> list[Ticket]:
        """Up to `n` prompts to roll out and tell about, but not to train on; most methods never want any.

        SFL, LILO, ADCL and SPEED choose by what such rollouts find. Call it before `ask`, tell what came of it, and
        again until nothing comes back. Without it, a method falls back to what it documents.

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
        n_rollouts = _check_rollouts(n_rollouts)
        self.pool  # noqa: B018 - raises UnboundError
        step = self._begin(step)
        self.step_begun = True
        self.next_ask = wanted
        picks = self.select_probes(self._eligible(n))
        self.next_ask = None
        self._hold(picks.slots)
        self.counters["probed"] += len(picks)
        return self._issue(picks, step, self.probe_rollouts or n_rollouts, self.probe_purpose)

    @exclusive
    def advance(self, step: int) -> None:
        """Say that the learner is at `step`: from the first call on, the learner owns the clock.

        Then an `ask` or `probe` without a step is for the clock's step and does not move it, so that asking for prompts
        one by one is the same as asking for them in batches. One of a smaller step, from a worker that is behind, is
        served; its tickets carry that step, and the metric `behind` counts it. A greater step moves the clock as
        `advance` does. Old tickets expire, and the beliefs of a step are settled, when the clock moves.

        Raises:
            ConfigError: `step` is less than the clock's, or no whole number. Nothing has changed then.
            ConcurrentUseError: another call is running. Nothing has changed.
        """
        self.pool  # noqa: B018 - raises UnboundError
        now = check_whole("step", step, least=self.step)
        self.owns_clock, self.step_begun = True, False
        self._move(now)

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
        self.pool  # noqa: B018 - raises UnboundError
        return self._take(self.ledger.check(outcomes, self._learner))

    @exclusive
    def tell_each(self, outcomes: Iterable[Outcome]) -> TellReport:
        """Learn from the outcomes that are right, and return the others with their reasons.

        For engines in which an outcome may come twice, after a restart, or for a ticket that was lost.

        Raises:
            TicketError: `outcomes` is no `Outcome` and no list.
            ConcurrentUseError: another call is running. Nothing has changed.
        """
        self.pool  # noqa: B018 - raises UnboundError
        checked, refused = self.ledger.sift(outcomes, self._learner)
        return TellReport(self._take(checked), refused)

    def _take(self, checked: Checked) -> Evidence:
        """Learn from checked outcomes."""
        evidence = self.ledger.close(checked, self._learner)
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
        logger.debug("told %d of %d prompts", len(evidence), len(self.pool))
        return evidence

    # ---- tickets ----

    def ticket_status(self, ticket_id: str) -> TicketStatus:
        """What has become of a ticket.

        Returns:
            "open": in flight. "told". "expired": it may still be told, late; of the oldest, when 65,536 more have
            expired, "told". "foreign": issued by another incarnation, see `load_state_dict`. "unknown": no such id.
        """
        self.pool  # noqa: B018 - raises UnboundError
        return self.ledger.status(ticket_id)

    def open_tickets(self, prompt_id: str | None = None) -> list[Ticket]:
        """The tickets in flight, in the order issued.

        Args:
            prompt_id: only that prompt's: one, or none. For engines that give back the prompt without its ticket.
        """
        if prompt_id is None:
            return self.ledger.open_tickets() if self.pool else []
        (slot,) = self.pool.slots_of([prompt_id]).tolist()
        ticket = self.ledger.open_ticket_of(slot)
        return [] if ticket is None else [ticket]

    # ---- rewards, numbers ----

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

    def metrics(self) -> dict[str, float]:
        """Flat numbers since the beginning: tickets asked, told, open, expired, late; coverage; effective ratio; ..."""
        pool, counters = self.pool, self.counters
        groups = counters["mixed"] + counters["all_good"] + counters["all_bad"]
        ratio = {"effective_ratio": counters["mixed"] / groups} if groups else {}
        rare = set() if self.owns_clock else {name for name in self.rare if not counters[name]}
        numbers = {
            **{name: number for name, number in counters.items() if name not in rare},
            **ratio,
            "open": self.ledger.n_open,
            "coverage": np.count_nonzero(self.columns["asked"]) / len(pool),
            **self.safeguards.metrics(),
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

    def _check_enough(self, n: int, aside: np.ndarray, clock: int) -> None:
        """Raise `ShortError` unless `n` prompts besides the slots `aside` are eligible when the clock is `clock`."""
        taken = self.ledger.open.copy()
        taken[[entry.slot for entry in self.ledger.due(clock)]] = False
        in_flight = int(np.count_nonzero(taken))
        taken[aside] = True
        eligible = len(taken) - int(np.count_nonzero(taken))
        if eligible < n:
            raise ShortError(
                f"asked for n={n} prompts, but {eligible} of {len(taken)} are eligible and {in_flight} are in flight: tell "
                'outcomes first, ask for fewer, or ask with short="allow"'
            )


def _check_rollouts(n_rollouts: int | None) -> int | None:
    return None if n_rollouts is None else check_whole("n_rollouts", n_rollouts, least=1)


CURRICULA.base = Curriculum
