"""The seam: `ask` for prompts to roll out, `tell` what came of them.

`Curriculum` owns everything that methods share: tickets, validation, expiry, the clock, random streams, saving and
joining by id (`resumable.py`). A method is a subclass with a few hooks (`method.py`): `select` chooses, `observe`
learns.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, ClassVar, TypedDict

import numpy as np

from rollwise.curricula.seam.allotment import AllocatorOption, describe_allocator, read_allocator
from rollwise.curricula.seam.exclusive import Busy, exclusive
from rollwise.curricula.seam.rails import Rails
from rollwise.curricula.seam.resumable import Resumable, check_pool
from rollwise.errors import ConfigError, PoolError
from rollwise.options import Schedule, check_whole, checked, keyword_options, written
from rollwise.plugins import Registry
from rollwise.pool import PromptPool
from rollwise.rng import check_seed
from rollwise.tickets.outcome import RewardSpec

CURRICULA: Registry[type[Curriculum]] = Registry("curriculum", "curricula")
"""Name -> method. A subclass of `Curriculum` with a `name` is in it once its module is imported."""


class CoreOptions(TypedDict, total=False):
    """The options that every curriculum takes: `Curriculum` says what they are."""

    seed: int
    reward_spec: RewardSpec
    expire_after: int | None
    rails: Rails | Mapping[str, Any] | str | bool | None
    allocator: AllocatorOption


class Curriculum(Resumable):
    """Decides which prompts to roll out next.

    Args:
        pool: the prompts; or None, and `bind` gives them later (a trainer does it with its data set).
        seed: root of every random choice.
        reward_spec: range of the raw rewards; by default 0 to 1, solved at 1.
        expire_after: a ticket not told within this many steps expires and frees its prompt; None: never.
        rails: what every batch guarantees, whatever the method believes: "on" (`Rails()`), "off" or None, a `Rails`, or
            a mapping of its attributes. By default on for `EmpiricalBayes`, `Recommended`, `Selector`, `Mixture` and
            `Nested`, off for all others, as the papers have none.
        allocator: gives each ticket its own number of rollouts, `n_rollouts` on average: a name in `ALLOCATORS`, a
            mapping with `name` and its options, or an `Allocator`; None: all have `n_rollouts`.

    A subclass declares its options as keyword-only arguments of its `__init__`, which are checked before it runs and
    saved (`rollwise.options`); it passes options that are not plain values on as `options`. It makes everything that
    changes in `build`, and implements `select`, `observe`, `hold` and `release`.
    """

    unsaved: ClassVar[frozenset[str]] = frozenset()
    """Options that the saved state holds in another form."""
    saved_if_set: ClassVar[frozenset[str]] = frozenset()
    """Options that came later: saved where they are not the default, so that states of before go on."""

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
            known = CURRICULA.get(name)  # a notebook may define its own class again
            if known is not None and known.__module__.startswith("rollwise.") and cls.__module__ != known.__module__:
                raise ConfigError(f"the name {name!r} is that of {known.__name__}; give your class another one")
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
        allocator: AllocatorOption = None,
    ) -> None:
        self.seed = check_seed(seed)
        self.range_declared = reward_spec is not None
        self.reward_spec = RewardSpec() if reward_spec is None else reward_spec
        if not isinstance(self.reward_spec, RewardSpec):
            raise ConfigError(f"reward_spec must be a RewardSpec, got {reward_spec!r}")
        self.expire_after = None if expire_after is None else check_whole("expire_after", expire_after, least=1)
        self.rails = Rails.read(rails, self.default_rails)
        self.allocator = read_allocator(allocator)
        if self.allocator is not None and self.allocator.in_rounds and self.probe_purpose == "screen":
            raise ConfigError(
                f"{type(self).__name__} begins each group with a screening and goes on with the rest of it at once, so "
                f"{type(self.allocator).__name__} can't make it in rounds of its own; leave the allocator out"
            )
        given = self.__dict__.pop("given_options", {})
        self.schedules = {name: value for name, value in given.items() if isinstance(value, Schedule)}
        self.options: dict[str, Any] = {
            **{name: written(value) for name, value in given.items() if name not in self._left_out(given)},
            **(options or {}),
            "reward_spec": asdict(self.reward_spec),
            "expire_after": expire_after,
            "rails": None if self.rails is None else asdict(self.rails),
            **({} if self.allocator is None else {"allocator": describe_allocator(self.allocator)}),
        }
        self._pool: PromptPool | None = None
        self.busy = Busy()
        self.step = 0
        if pool is not None:
            self.bind(pool)

    def _left_out(self, given: Mapping[str, Any]) -> frozenset[str]:
        defaults = keyword_options(type(self)) if self.saved_if_set else {}
        return self.unsaved | {name for name in self.saved_if_set if given.get(name) == defaults.get(name)}

    # ---- its prompts ----

    @exclusive
    def bind(self, pool: PromptPool) -> None:
        """Give the curriculum its prompts; once.

        Raises:
            PoolError: it has a pool already.
            MissingColumnError: the pool lacks a column that the method needs. The curriculum stays unbound.
        """
        if self._pool is not None:
            raise PoolError(f"this {type(self).__name__} is bound to a pool already; make a new one for another pool")
        check_pool(pool, "is bound to")
        fresh = copy.copy(self)
        fresh._start(pool)
        fresh._release(np.arange(len(pool)))
        self.__dict__ = fresh.__dict__

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
            **self.contrast.metrics(),
            **self.own_metrics(),
            **self.scheduled(),
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


CURRICULA.base = Curriculum
