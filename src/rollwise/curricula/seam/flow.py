"""What happens inside `ask`, `probe` and `tell`: the clock, expiry, holds, the choice with rails, learning, counters.

Curricula of curricula call these parts of their children.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rollwise.columns import Columns
from rollwise.curricula.seam.allotment import allot, learn_rates, note, predictor_of, remembered
from rollwise.curricula.seam.method import Method
from rollwise.curricula.seam.picks import Picks, checked_picks
from rollwise.curricula.seam.safeguards import Safeguards, TieBreaks
from rollwise.draws import ties
from rollwise.errors import ConfigError, UnboundError
from rollwise.options import check_whole
from rollwise.pool import PromptPool
from rollwise.rng import RngStreams
from rollwise.tickets import Contrast, Evidence, Ledger, Purpose, RewardSpec, Ticket

logger = logging.getLogger(__name__)

_SHARED_COLUMNS: dict[str, tuple[type, Any]] = {
    "asked": (np.int64, 0),
    "streak": (np.int32, 0),  # +z after z groups in a row that were all solved, -z after z without contrast else
}

_NO_PROMPTS = (
    "this {} has no prompts yet: construct it with a PromptPool, call bind(pool), or hand it to a trainer, "
    "which binds it to its data set"
)
_FEW_EXPIRED = 32
_NEARLY_ALL = 0.9
"""Warn of asks without a step from this many expired tickets on, if they are this share of all that are closed."""


class _NotYetError(UnboundError, AttributeError):
    """So `hasattr` says no."""


class Flow(Method):
    """The inner steps of a curriculum; `Curriculum` adds the calls that trainers make."""

    counted: ClassVar[tuple[str, ...]] = (
        *("asked", "told", "short", "expired", "late", "failed", "rollouts", "mixed", "all_good", "all_bad"),
        *("probed", "probe_rollouts"),
        *("behind", "unknown"),  # asks of a step before the clock's; groups told by a mean that does not say if mixed
        *("state_added", "state_dropped"),  # prompts that were new, or gone, when a state or another pool was joined
    )
    """What is counted since the beginning."""
    rare: ClassVar[tuple[str, ...]] = ("behind", "unknown")
    """Counters that are saved once they are not 0; states of version 0.1 have none of them."""

    seed: int
    expire_after: int | None
    told_step: int
    contrast: Contrast
    _pool: PromptPool | None
    _warned_of_steps: bool = False

    @property
    def pool(self) -> PromptPool:
        """The prompts; `UnboundError` before there are any."""
        if self._pool is None:
            raise UnboundError(_NO_PROMPTS.format(type(self).__name__))
        return self._pool

    if not TYPE_CHECKING:  # which would take every name for one that is there

        def __getattr__(self, name: str) -> Any:
            """Say that what is made with the prompts, as tickets and beliefs are, is not there without."""
            if name.startswith("_") or self.__dict__.get("_pool", self) is not None:
                return self.__getattribute__(name)  # raises what it has raised
            raise _NotYetError(_NO_PROMPTS.format(type(self).__name__))

    def _step_of(self, step: int | None) -> int:
        """The step that an `ask` with this argument is for; nothing changes."""
        least = 0 if self.owns_clock else self.step
        if step is not None:
            return check_whole("step", step, least=least)
        return self.step if self.owns_clock or self.step_begun else self.step + 1

    def _begin(self, step: int | None) -> int:
        """Move the clock to the step that a call is for, unless the caller is behind; that step."""
        now = self._step_of(step)
        self.counters["behind"] += now < self.step
        if self._move(max(now, self.step)) and step is None:
            self._warn_of_steps()
        return now

    def _move(self, now: int) -> int:
        """Set the clock, free what has expired, and end the step before; how many tickets expired."""
        self.set_clock(now)
        freed = self.ledger.expire(now)
        self._release(freed[~self.ledger.open[freed]])
        self.counters["expired"] += len(freed)
        self._settle()
        self._set_aside()
        logger.debug("step %d: %d of %d prompts in flight", now, self.ledger.n_open, len(self.pool))
        return len(freed)

    def _warn_of_steps(self) -> None:
        """Warn once if asks without a step let nearly all tickets expire."""
        expired = self.counters["expired"]
        closed = self.counters["asked"] + self.counters["probed"] - self.ledger.n_open
        if not self._warned_of_steps and expired >= _FEW_EXPIRED and expired >= _NEARLY_ALL * closed:
            self._warned_of_steps = True
            logger.warning(
                "%d of %d tickets expired before their outcomes came: each ask without a step counts as a step, and "
                "expire_after=%s; call advance(step) when the learner has made a step, or ask(n, step=...)",
                *(expired, closed, self.expire_after),
            )

    def _issue(self, picks: Picks, step: int, n_rollouts: int | None, purpose: Purpose) -> list[Ticket]:
        return self.ledger.issue(
            picks.slots,
            lanes=picks.lanes,
            predicted=np.where(np.isnan(picks.predicted), self.expected(picks.slots), picks.predicted),
            propensity=picks.propensity,
            step=step,
            clock=self.step,
            n_rollouts=self._sizes(picks, n_rollouts, purpose),
            variance=picks.variance,
            purpose=purpose,
        )

    def _sizes(self, picks: Picks, n_rollouts: int | None, purpose: Purpose) -> list[int] | list[None]:
        """Rollouts to make for each of the picks."""
        if n_rollouts is None:
            return [None] * len(picks)
        if self.allocator is not None and purpose == "train":
            if self.allocator.in_rounds:
                return [n_rollouts if railed else None for railed in picks.railed.tolist()]  # type: ignore[return-value]
            if self.predictor is not None:
                learn_rates(self.columns, self.predictor)
            own = self.predictor is not None or self.allocator.belief == "last"
            belief = None if own else self.believed(picks.slots)
            return list(allot(self.allocator, picks, n_rollouts, self.columns, belief).tolist())
        return [n_rollouts - have if have < n_rollouts else n_rollouts for have in picks.have.tolist()]

    def _learn(self, evidence: Evidence) -> None:
        """From groups of distinct prompts, of either purpose."""
        judged = evidence.where(evidence.judged)
        self.columns["streak"][judged.slots] = judged.streaks(self.columns["streak"][judged.slots])
        if self.allocator is not None:
            note(self.columns, judged)
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
            railed_picks = self.guard.choose(k, self.step)
            parts.append(replace(railed_picks, railed=np.ones(len(railed_picks), dtype=bool)))
            self._hold(parts[0].slots)
        railed = sum(map(len, parts))
        if self.unscored is not None:
            parts.append(self.unscored.choose(k - railed))
        own = self._eligible(k - sum(map(len, parts)))
        chosen = checked_picks(self, own) if own else Picks.join([])
        parts.append(chosen)
        if self.unscored is not None:
            parts.append(self.unscored.fill(k - sum(map(len, parts))))
        picks = Picks.join(parts)
        self._check_picks(picks.slots)
        self._hold(picks.slots)
        self.mark(picks)
        if self.guard is not None:
            self.guard.mark(picks.slots, railed)
        if self.alarm is not None and self.unscored is not None:
            asked, streak = self.columns["asked"], self.columns["streak"]
            self.alarm.count(chosen.slots, asked=asked, streak=streak, failing=self.unscored.failing)
        if self.unseen is not None:
            self.unseen.look(len(picks), self.step)
        return picks

    def _check_picks(self, slots: np.ndarray) -> None:
        """Raise `ConfigError` if a method chose a prompt twice or one in flight, which would then have two tickets."""
        rows = slots.tolist()
        if len(set(rows)) < len(rows) or self.ledger.open[slots].any():
            twice = next(row for i, row in enumerate(rows) if self.ledger.open[row] or row in rows[:i])
            raise ConfigError(
                f"{type(self).__name__} chose the prompt {self.pool.ids[twice]!r:.80} twice, or while it is in flight; "
                "`select` and `select_probes` must give distinct prompts that are not in flight. No ticket was issued"
            )

    def _eligible(self, n: int) -> int:
        """Of `n` prompts wanted, as many as are neither in flight nor set aside."""
        n = min(n, len(self.pool) - self.ledger.n_open)
        return n if self.unscored is None else self.unscored.eligible(n)

    def _set_aside(self) -> None:
        """Take out what never gets a reward, and put back what got one again."""
        if self.unscored is None:
            return
        out, back = self.unscored.settle(self.step)
        self.hold(out)
        if self.guard is not None:
            self.guard.hold(out)
        self._release(back[~self.ledger.open[back]])

    def _hold(self, slots: np.ndarray) -> None:
        if not len(slots):
            return
        for part in (self, self.guard, self.unscored):
            if part is not None:
                part.hold(slots)

    def _release(self, slots: np.ndarray) -> None:
        if not len(slots):
            return
        if self.unscored is not None:
            slots = self.unscored.release(slots)
        for part in (self, self.guard):
            if part is not None:
                part.release(slots)

    def set_reward_spec(self, spec: RewardSpec) -> None:
        """Rewards lie in the range of `spec` from now on."""
        self.reward_spec = spec

    def set_clock(self, now: int) -> None:
        """The present step is `now`."""
        self.step = now

    def _settle(self) -> None:
        if 0 <= self.told_step < self.step:
            self.end_step()
            self.contrast.end_step()
            self.told_step = -1

    def _start(self, pool: PromptPool, *, ledger: Ledger | None = None) -> None:
        """Begin with this pool, every prompt on hold; a child shares the `ledger` of the curriculum it is in."""
        self._pool = pool
        self.ledger = Ledger(pool, expire_after=self.expire_after) if ledger is None else ledger
        self.predictor = predictor_of(self.allocator, pool)
        self.columns = Columns(len(pool), {**_SHARED_COLUMNS, **remembered(self.allocator), **self.columns_spec})
        self.rng = RngStreams(self.seed)
        self.id_hashes = pool.id_hashes
        self.step = self.tokens = 0
        self.owns_clock = False  # whether the learner moves the clock, by `advance`
        self.step_begun = False  # whether a probe has begun the step of the next `ask`
        self.told_step = -1  # the step in which something was told that `end_step` has not yet closed; -1: none
        self.counters = dict.fromkeys(self.counted, 0)
        self.safeguards = (
            Safeguards.of(
                pool,
                self.rails,
                ties=TieBreaks(self.rng, self.id_hashes, self.columns),
                rotates=self.rotates,
                measures=self.wants_probes,
                before=getattr(self, "safeguards", None),
            )
            if ledger is None
            else Safeguards()
        )
        self.guard, self.unscored, self.alarm, self.unseen = self.safeguards
        self.contrast = Contrast()
        self.awaiting: dict[str, tuple[int, int]] = {}  # told tickets of which feedback may come: slot, step
        self.build()

    def mark(self, picks: Picks) -> None:
        """Count one visit to each of the picks."""
        self.columns["asked"][picks.slots] += 1

    def count(self, evidence: Evidence) -> None:
        """Update the counters. Probe groups add to `probe_rollouts` only."""
        counters = self.counters
        counters["probe_rollouts"] += int(evidence.count[evidence.probe].sum())
        evidence = evidence.where(~evidence.probe)
        counters["told"] += len(evidence)
        counters["failed"] += int(evidence.failed.sum())
        counters["rollouts"] += int(evidence.count.sum())
        for name in ("late", "mixed", "all_good", "all_bad", "unknown"):
            counters[name] += int(np.count_nonzero(getattr(evidence, name)))

    # ---- what a method may use ----

    def ties(self, slots: np.ndarray) -> np.ndarray:
        """uint32 tie-breakers (K,): random over prompts and visits, but the same whatever the order of events."""
        return TieBreaks(self.rng, self.id_hashes, self.columns)(slots)

    def ties_now(self, slots: np.ndarray) -> np.ndarray:
        """uint32 tie-breakers (K,) that differ from step to step, so that no prompt loses every tie."""
        visits = self.columns["asked"][slots] + (np.int64(self.step) << 32)
        return ties(self.rng.seed, self.id_hashes[slots], visits)
