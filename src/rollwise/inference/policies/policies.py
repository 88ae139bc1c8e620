"""The decoder's policies: which candidates of best-of-N are carried on. Pure functions; numpy alone.

Source: `frontier-and-zip-rc-lite`, section 3.2 and Table 7. All are the paper's but `UtilityOneByOne` and `Sequential`.
What it leaves open of `Prune` and `EarlyStop` is as in its authors' code (`ziprc/adaptive_decode.py`).
`warmup` and `interval` are by default those of its 1024 tokens; the commands scale them to theirs (`defaults.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rollwise.errors import ConfigError
from rollwise.inference.policies.candidates import CARRY_ON, BoolArray, Candidates, Decision, FloatArray, Policy
from rollwise.inference.policies.confidence import DeepConfPolicy
from rollwise.inference.policies.equations import launch_gain, losers, not_worth, spared
from rollwise.inference.policies.until import AdaptiveConsistencyVote, EarlyStoppingVote, Until, UntilChecked
from rollwise.options import Count, NotNegative, Number, check_fields, make_named


@dataclass(frozen=True, kw_only=True)
class BestOfN:
    """Carry all candidates to the end: the fixed-budget baseline."""

    name = "none"
    needs_signal = False

    def first(self, k: int) -> int:
        return k

    def due(self, step: int) -> bool:
        return False

    def decide(self, candidates: Candidates) -> Decision:
        return CARRY_ON


@dataclass(frozen=True, kw_only=True)
class _Periodic:
    """Begins with all candidates, and looks at them every `interval` steps from `warmup` on."""

    warmup: Count = 128
    interval: Count = 32

    def __post_init__(self) -> None:
        check_fields(self)

    def first(self, k: int) -> int:
        return k

    def due(self, step: int) -> bool:
        return step >= self.warmup and (step - self.warmup) % self.interval == 0

    def warm(self, candidates: Candidates) -> BoolArray:
        """(K,) which running candidates have `warmup` tokens: a server may begin some later than others."""
        return candidates.running & (candidates.tokens >= self.warmup)


@dataclass(frozen=True, kw_only=True)
class Prune(_Periodic):
    """Every `interval` steps from `warmup` on abandon those valued below `threshold`, lowest first; keep some running.

    Finished ones do not count among those kept, as in the authors' decoder. Defaults: Table 7, for responses of some
    300 tokens.

    Args:
        warmup: First step at which candidates are abandoned, in tokens.
        interval: Steps between.
        keep: k_min, running candidates that are kept whatever their value.
        threshold: Only candidates below are abandoned.
    """

    name = "prune"
    keep: Count = 2
    threshold: Number = 0.5

    def decide(self, candidates: Candidates) -> Decision:
        if not self.due(candidates.step):
            return CARRY_ON
        return Decision(losers(candidates, self.warm(candidates), self.threshold, self.keep))


@dataclass(frozen=True, kw_only=True)
class EarlyStop(_Periodic):
    """Once the best running candidate's smoothed value reaches `threshold`, commit to it and abandon the others.

    Section 3.2 does not say when it looks. The authors' decoder looks when it prunes: at step 128 and every 32 steps.
    The commands take that, in proportion to their limit, but with `finished` every step.

    Args:
        threshold: tau; the paper sweeps 0.7 to 0.95 and reports 0.8.
        warmup: First step at which it may commit.
        interval: Steps between.
        finished: Ours: a finished candidate may be the best too, by the head's verdict if it has one; then all that run
            are abandoned. It looks whenever one finishes, too.
    """

    name = "early-stop"
    threshold: Number = 0.8
    warmup: Count = 1
    interval: Count = 1
    finished: bool = False

    def decide(self, candidates: Candidates) -> Decision:
        if candidates.step < self.warmup or not (self.finished or self.due(candidates.step)):
            return CARRY_ON
        among = self.warm(candidates) | candidates.choosable if self.finished else self.warm(candidates)
        there = np.flatnonzero(among)
        values = candidates.values[there]
        if not values.max(initial=-np.inf) >= self.threshold:
            return CARRY_ON
        best = there[np.argmax(values)]
        others = candidates.running.copy()
        others[best] = False
        return Decision(tuple(np.flatnonzero(others).tolist()), stop=True)


@dataclass(frozen=True, kw_only=True)
class Charged(_Periodic):
    """Gives up candidates that are not worth their remaining tokens: by default one at a time, by U(S)."""

    beta: NotNegative = 0.02
    gamma: NotNegative = 0.0
    normalise_by: Literal["typical", "limit"] = "typical"

    def decide(self, candidates: Candidates) -> Decision:
        if not self.due(candidates.step):
            return CARRY_ON
        return Decision(self.given_up(candidates))

    def given_up(self, candidates: Candidates) -> tuple[int, ...]:
        """Which candidates are not worth what they cost."""
        return spared(candidates, self.warm(candidates), self.costs(candidates), self.beta, self.gamma)

    def costs(self, candidates: Candidates) -> FloatArray:
        """(K,) expected tokens still to come, in units of a typical candidate or of the limit."""
        unit = candidates.typical if self.normalise_by == "typical" else float(candidates.limit)
        return candidates.remaining / max(unit, 1.0)


@dataclass(frozen=True, kw_only=True)
class Utility(Charged):
    """Keep candidate j only if v_j * prod over i != j of (1 - v_i) exceeds beta * E[l_j] / l_max: section 3.2's rule.

    It is said of all candidates at once, as the paper says it, so several winners may each fall for the sake of the
    others. Finished candidates are in the product, and the best one stays if all would go, which the paper leaves open;
    in the authors' decoder the product is over running ones, and the best two of them always stay. The product is the
    chance that only j succeeds where rewards are 0 and 1; states outside [0, 1] are first scaled to it, and the gain by
    their range.

    Args:
        beta: Charge on all remaining tokens; the paper sweeps 0.002 to 0.1.
        gamma: Only with `simultaneous` false: it stands in the paper's U(S), and not in its rule.
        normalise_by: Tokens are counted in units of `limit`, l_max (section 3.2), or of `typical`, what the head
            expects of a whole candidate (appendix B.5).
        warmup: First step at which candidates are abandoned.
        interval: Steps between.
        simultaneous: False is `utility-one-by-one`, which had this name once.
    """

    name = "utility"
    normalise_by: Literal["typical", "limit"] = "limit"
    simultaneous: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.simultaneous and self.gamma:
            raise ConfigError(
                f"gamma={self.gamma!r} is no part of the paper's rule; leave it out, or take policy utility-one-by-one"
            )

    def given_up(self, candidates: Candidates) -> tuple[int, ...]:
        if not self.simultaneous:
            return super().given_up(candidates)
        return not_worth(candidates, self.warm(candidates), self.costs(candidates), self.beta)


@dataclass(frozen=True, kw_only=True)
class UtilityOneByOne(Charged):
    """Ours: the paper's U(S) = E[max r] - beta * sum E[l] - gamma * max E[l], with candidates removed one at a time.

    The one whose removal raises U most goes, and all is computed anew, so that of several winners one is left. Finished
    candidates count at no cost; the last is kept; any reward states are dealt with by the product of their
    distributions.

    Args:
        beta: Charge on all remaining tokens.
        gamma: Charge on the longest candidate's.
        normalise_by: As for `Utility`; `typical` by default.
        warmup: First step at which candidates are abandoned.
        interval: Steps between.
    """

    name = "utility-one-by-one"


@dataclass(frozen=True, kw_only=True)
class Sequential(_Periodic):
    """Ours: begin with a few candidates, and another only while it is expected to pay (Weitzman 1979, "Pandora's box").

    A new candidate's expected gain over the best finished one, which has value v, is E[max(r, v)] - v: for rewards 0
    and 1, p * (1 - v). It is launched while that exceeds `beta` times its expected tokens, in units of a typical
    candidate's. p begins as V(x) and moves with what came of this prompt's candidates:
    p = (prior * V(x) + sum of their values) / (prior + their number). Running candidates whose value is below `below`
    are abandoned from `warmup` on, if one is waiting to take their place. Saves most of the row-forwards; one prompt
    takes longer, as its candidates run one after another, so that it shortens a batch's time, not a single answer's.

    Args:
        beta: Gain in reward that one more typical candidate must be worth.
        width: Candidates that run at a time.
        prior: How many candidates V(x) counts for. With less, two failures are enough to give a prompt up.
        below: Value under which a running candidate is given up for another; 0 for never.
        warmup: First step at which it may be, in tokens of that candidate.
        interval: Steps between.
    """

    name = "sequential"
    beta: NotNegative = 0.05
    width: Count = 1
    prior: NotNegative = 4.0
    below: NotNegative = 0.0

    def first(self, k: int) -> int:
        return min(k, self.width)

    def due(self, step: int) -> bool:
        return self.below > 0 and super().due(step)

    def decide(self, candidates: Candidates) -> Decision:
        values, waiting = candidates.values, int(candidates.waiting.sum())
        abandon = np.zeros(len(values), dtype=bool)
        if self.below > 0:
            doomed = np.flatnonzero(self.warm(candidates) & (values < self.below))
            abandon[doomed[np.argsort(values[doomed], kind="stable")][:waiting]] = True
        running = candidates.running & ~abandon
        seen = ~candidates.waiting & ~running
        best = float(values[candidates.choosable].max(initial=-np.inf))
        p = (self.prior * candidates.prompt_value + values[seen].sum()) / max(self.prior + seen.sum(), 1e-12)
        free = self.width - int(running.sum())
        gone = tuple(np.flatnonzero(abandon).tolist())
        if best == -np.inf and not running.any():
            return Decision(gone, launch=min(waiting, max(free, 1)))
        if best > -np.inf and not launch_gain(p, best, candidates.states) > self.beta:
            return Decision(gone, stop=not running.any())
        return Decision(gone, launch=min(waiting, max(free, 0)))


PEERS = (DeepConfPolicy, EarlyStoppingVote, AdaptiveConsistencyVote, UntilChecked)
"""Those that need no success head."""

POLICIES: dict[str, type[Any]] = {
    policy.name: policy for policy in (BestOfN, Prune, EarlyStop, Utility, UtilityOneByOne, Sequential, Until, *PEERS)
}


def make_policy(name: str, **options: Any) -> Policy:
    """A policy by its name in `POLICIES`; `ConfigError` for an unknown name or option, or a value out of range.

    >>> make_policy("prune", keep=1).keep
    1
    """
    policy: Policy = make_named("policy", POLICIES, name, options)
    return policy
