"""Gaussian target: batches of fixed domain shares whose pass rates follow a Gaussian that moves from easy to hard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from rollwise.curricula.families.arms import ArmBandit
from rollwise.curricula.families.members import ArmMembers, ArmRounds
from rollwise.curricula.families.progress import progress
from rollwise.curricula.families.strata import check_columns
from rollwise.curricula.seam.base import CoreOptions
from rollwise.curricula.seam.picks import Picks
from rollwise.errors import ConfigError, PoolError
from rollwise.options import Count, Positive, PositiveShare, Share, check_mapping, check_number
from rollwise.pool import PromptPool
from rollwise.tickets.evidence import Evidence


def target_mean(step: int, steps: int, start: float, end: float) -> float:
    """The target's mean at a step: from `start` at step 1 linearly to `end` at step `steps`, and `end` from then on.

    >>> [round(target_mean(step, 5, 0.75, 0.25), 3) for step in (1, 2, 5, 9)]
    [0.75, 0.625, 0.25, 0.25]
    """
    return start + (end - start) * progress(step, steps)


def level_shares(levels: np.ndarray, mean: float, width: float) -> np.ndarray:
    """Shares (C,) of levels of the pass rate, in proportion to exp(-(level - mean)^2 / (2 width^2)).

    >>> level_shares(np.array([0.25, 0.5, 0.75]), 0.5, 0.25).round(4).tolist()             # e^-.5 = .6065, 1, .6065
    [0.2741, 0.4519, 0.2741]
    """
    exponents = -0.5 * ((levels - mean) / width) ** 2
    weights = np.exp(exponents - exponents.max())
    return np.asarray(weights / weights.sum())


def rates_of(difficulty: np.ndarray) -> np.ndarray:
    """One minus the difficulties, (N,); where these are not all in [0, 1], one minus the quantile of each.

    >>> rates_of(np.array([0.25, 1.0])).tolist(), rates_of(np.array([3, 9, 9, 12])).tolist()
    ([0.75, 0.0], [0.875, 0.5, 0.5, 0.125])
    """
    if difficulty.min() >= 0.0 and difficulty.max() <= 1.0:
        return np.asarray(1.0 - difficulty)
    _, at, counts = np.unique(difficulty, return_inverse=True, return_counts=True)
    return np.asarray(1.0 - (np.cumsum(counts) - counts / 2.0)[at] / len(difficulty))


_PROFILE_COLUMNS: Mapping[str, tuple[type, Any]] = {
    "rate": (np.float64, np.nan),  # by the last profile of its own
    "found": (np.float64, np.nan),  # by the one under way
    "awaits": (np.bool_, False),  # a place in it
}
_PROGRESS = ("begun", "profiles", "best", "stale", "profiling")


class GaussianTarget(
    ArmBandit,
    name="gaussian-target",
    paper="Nemotron 3 Nano, arXiv 2512.20848, section 3.2.2",
    needs="a column of pass rates or difficulties (`rollwise profile` makes both); uses `category` if there",
):
    """Fixed domain shares in every batch; in each domain, pass rates around a target that falls with the steps.

    Nemotron 3 Nano (arXiv 2512.20848, section 3.2.2). The pass rates are those of a profile before training; the
    rollouts of training do not change them. The target of a domain is a Gaussian over pass rates, whose mean falls
    linearly over the training steps. Prompts that the profile solved always are left out while there are others.

    With `patience`, probes measure the whole pool anew when progress stops, and the target begins again. What the
    report leaves open, and what was decided, is in docs/decisions.md.

    Args:
        pool: needs `pass_rate`, or `difficulty`: one minus the pass rate, or any numbers, whose quantiles count then.
        category: the columns whose values are the domains; None: `category` if there, else one domain; []: one.
        column: the column of pass rates; None: `pass_rate` if there, else one minus `difficulty`.
        shares: domain -> its share of every batch, a weight; None: its share of the pool. Those left out have none.
        start: mean of the Gaussian at the first step.
        end: mean of the Gaussian from the last of `steps` on.
        steps: training steps from `start` to `end`.
        width: standard deviation of the Gaussian.
        levels: pass rates are rounded to multiples of one over this.
        solved_at: prompts of this pass rate or more are left out.
        patience: evaluations without a better score until it profiles again; None: never.
        profile_rollouts: rollouts of each prompt when it profiles again.

    >>> columns = {"category": ["code", "math", "math", "math"], "pass_rate": [0.5, 0.0, 0.75, 1.0]}
    >>> curriculum = GaussianTarget(PromptPool(ids=["c", "hard", "easy", "solved"], columns=columns), width=0.1)
    >>> sorted(t.prompt_id for t in curriculum.ask(2))                         # a quarter code; math at the start: .75
    ['c', 'easy']
    """

    lane = "target"
    learns_from = "means"
    saved_if_set = frozenset({"patience", "profile_rollouts"})

    def __init__(
        self,
        pool: PromptPool | None = None,
        *,
        category: str | Sequence[str] | None = None,
        column: str | None = None,
        shares: Mapping[str, Any] | None = None,
        start: Share = 0.75,
        end: Share = 0.25,
        steps: Count = 100,
        width: Positive = 0.15,
        levels: Count = 16,
        solved_at: PositiveShare = 1.0,
        patience: Count | None = None,
        profile_rollouts: Count = 8,
        **core: Unpack[CoreOptions],
    ) -> None:
        named = check_columns(category)
        self.category, self.column = named, column
        self.start, self.end, self.steps, self.width, self.n_levels = start, end, steps, width, levels
        self.solved_at, self.patience = solved_at, patience
        self.given_shares = None if shares is None else _checked(shares)
        self.columns_spec = {**self.columns_spec, "drawn": (np.int8, 0)}
        if patience is not None:
            self.probe_rollouts = profile_rollouts
            self.columns_spec |= _PROFILE_COLUMNS
        kept = {"category": None if named is None else list(named), "shares": self.given_shares}
        super().__init__(pool, options=kept, **core)

    @property
    def grouped_by(self) -> tuple[str, ...]:
        if self.category is not None:
            return self.category
        return ("category",) if "category" in self.pool.columns else ()

    def build(self) -> None:
        self.begun = self.profiles = 0  # the step before the schedule's first, and how often it profiled
        self.best, self.stale = -1e10, 0  # the best score (below any: none yet), and evaluations since
        self.profiling = False
        super().build()

    # ---- the arms: a level of a domain each ----

    def divide(self) -> tuple[list[str], np.ndarray]:
        rates = self._pass_rates()
        if self.patience is not None:
            rates = np.where(np.isnan(self.columns["rate"]), rates, self.columns["rate"])
        names, domain_of = self._domains()
        level_of = np.round(rates * self.n_levels).astype(np.int64)
        solved = rates >= self.solved_at
        of_level = domain_of * (self.n_levels + 1) + level_of
        arms, arm_of = np.unique(2 * of_level + solved, return_inverse=True)
        domain, level = np.divmod(arms // 2, self.n_levels + 1)
        self.domains, self.shares = names, self._shares_of(names, domain_of)
        self.owed = np.zeros(len(names))
        self.domain_of_arm, self.level, self.solved = domain, level / self.n_levels, arms % 2 > 0
        labels = [
            f"{names[in_domain]} {rate:g}{' solved' if always else ''}".strip()
            for in_domain, rate, always in zip(domain.tolist(), self.level.tolist(), self.solved.tolist(), strict=True)
        ]
        return labels, arm_of

    def members_of(self, arm_of: np.ndarray, n_arms: int) -> ArmMembers:
        return ArmRounds(arm_of, n_arms, self.columns["drawn"], self.aside())

    def _domains(self) -> tuple[list[str], np.ndarray]:
        if not self.grouped_by:
            return [""], np.zeros(len(self.pool), dtype=np.int64)
        return self.arms_in_columns(self.grouped_by, "add it, or name another with category=...")

    def _pass_rates(self) -> np.ndarray:
        name = self.column or ("pass_rate" if "pass_rate" in self.pool.columns else "difficulty")
        values = self.pool.require(name, "GaussianTarget", "add it by `rollwise profile`, or name another column")
        if name == "difficulty" and not self.column:
            return rates_of(values)
        if values.dtype.kind not in "biuf" or values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
            raise PoolError(f"GaussianTarget needs one number in [0, 1] for each prompt in column {name!r}")
        return values.astype(np.float64)

    def _shares_of(self, names: Sequence[str], domain_of: np.ndarray) -> np.ndarray:
        """The weight of each domain, (D,)."""
        if self.given_shares is None:
            return np.bincount(domain_of, minlength=len(names)).astype(np.float64)
        if unknown := sorted(set(self.given_shares) - set(names)):
            raise PoolError(f"shares has {unknown[0]!r}, which is no domain of the pool; it has {', '.join(names)}")
        return np.array([self.given_shares.get(name, 0.0) for name in names])

    # ---- profiling again ----

    @property
    def wants_probes(self) -> bool:
        return self.patience is not None

    @property
    def follows_score(self) -> bool:
        return self.patience is not None

    def note_score(self, score: float) -> None:
        score = check_number("the score of an evaluation", score, low=-1e9, high=1e9)
        self.best, self.stale = (score, 0) if score > self.best else (self.best, self.stale + 1)
        if self.patience is not None and self.stale >= self.patience and not self.profiling:
            self.profiling = True
            self.columns["awaits"][:] = True

    def select_probes(self, k: int) -> Picks:
        if self.patience is None:
            return Picks.join([])
        waiting = np.flatnonzero(self.columns["awaits"])
        free = self.members.is_free(waiting)
        slots = waiting[free][:k]
        self.columns["awaits"][slots] = False
        if not (free | self.ledger.open[waiting]).any():  # they are set aside for want of rewards, and keep their rates
            self.columns["awaits"][waiting] = False
        return Picks.of(slots, "profile")

    def observe_probes(self, evidence: Evidence) -> None:
        if self.patience is None:  # probes of before a load with other options
            return
        judged = evidence.where(evidence.judged)
        self.columns["found"][judged.slots] = np.where(judged.known, judged.solved, judged.mean)

    def _end_profile(self) -> None:
        """Take the pass rates that were found, and begin the schedule again."""
        found, owed = self.columns["found"], dict(zip(self.domains, self.owed.tolist(), strict=True))
        free = np.flatnonzero(self.members.is_free(np.arange(len(self.pool))))
        told = ~np.isnan(found)
        self.columns["rate"][told] = found[told]
        found[:] = np.nan
        self.divide_into(*self.divide())
        self.owed = np.array([owed[name] for name in self.domains])
        self.members.set(free, True)
        self.begun, self.profiles, self.profiling, self.stale = self.step - 1, self.profiles + 1, False, 0

    # ---- ask ----

    @property
    def target(self) -> float:
        """The mean of the Gaussian at this step."""
        return target_mean(self.step - self.begun, self.steps, self.start, self.end)

    def renew_arms(self) -> None:
        if self.profiling and not self.columns["awaits"].any():
            self._end_profile()

    def choose(self, k: int, left: np.ndarray, flying: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        left, mean = left.copy(), self.target
        arms, chances = np.empty(k, dtype=np.int64), np.empty(k)
        for i, at in enumerate(self.rng["level"].random(k)):
            inside = np.flatnonzero((left > 0) & (self.domain_of_arm == self._next_domain(left)))
            if not self.solved[inside].all():
                inside = inside[~self.solved[inside]]
            share = level_shares(self.level[inside], mean, self.width)
            drawn = min(int(np.searchsorted(np.cumsum(share), at, side="right")), len(share) - 1)
            arms[i], chances[i] = inside[drawn], share[drawn]
            left[arms[i]] -= 1
        return arms, chances

    def _next_domain(self, left: np.ndarray) -> int:
        """The domain that is owed most among those that have prompts left; solved ones only if no other is left."""
        can = left > 0
        if (can & ~self.solved).any():
            can &= ~self.solved
        there = np.bincount(self.domain_of_arm[can], minlength=len(self.domains)) > 0
        weights = np.where(there, self.shares, 0.0)
        weights = weights if weights.any() else there.astype(np.float64)
        self.owed += weights / weights.sum()
        domain = int(np.argmax(np.where(there & (weights > 0), self.owed, -np.inf)))
        self.owed[domain] -= 1.0
        return domain

    # ---- looking inside, saving ----

    def own_metrics(self) -> dict[str, float]:
        again = {} if self.patience is None else {"profiles": float(self.profiles)}
        return {"target_pass_rate": self.target, **again}

    def own_state(self) -> dict[str, Any]:
        again = {} if self.patience is None else {"again": {name: getattr(self, name) for name in _PROGRESS}}
        return {"owed": dict(zip(self.domains, self.owed.tolist(), strict=True)), **again}

    def load_own_state(self, state: Mapping[str, Any], added: np.ndarray) -> None:
        if self.patience is not None and "again" in state:
            self.__dict__ |= {name: state["again"][name] for name in _PROGRESS}
            self.divide_into(*self.divide())
        self.owed = np.array([float(state["owed"].get(name, 0.0)) for name in self.domains])


def _checked(shares: Mapping[str, Any]) -> dict[str, float]:
    checked = {
        str(name): check_number(f"share of {name!r}", x, low=0.0, high=1e12)
        for name, x in check_mapping("shares", shares).items()
    }
    if not any(checked.values()):
        raise ConfigError(f"shares must give some domain more than 0, got {dict(shares)!r}")
    return checked
