"""What is estimated of a method over its seeds, as plain records."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from rollwise.evaluation.bootstrap import Interval

# A verdict needs this many paired seeds: the t test finds a true difference of 1.2 deviations with power 0.8.
ENOUGH_SEEDS = 8


@dataclass(frozen=True)
class Difference:
    """A method's values less another's of the same seeds, as a rule the baseline's.

    Attributes:
        mean: The mean over the seeds that both have.
        sd: The standard deviation over them; NaN for one.
        interval: The paired bootstrap interval of the mean; None for too few seeds.
        t_interval: The paired t interval of the mean; None for too few seeds.
        p: Of the two-sided paired t test, not corrected; NaN for too few seeds.
        better: In how many seeds the method did better; None for a measure where neither more nor less is better.
        n: How many seeds both have.
    """

    mean: float
    sd: float
    interval: Interval | None
    t_interval: Interval | None
    p: float
    better: int | None
    n: int

    @property
    def side(self) -> int:
        """1 where both intervals are above 0, -1 where both are below it, else 0."""
        found = [one for one in (self.interval, self.t_interval) if one is not None]
        if len(found) < 2:
            return 0
        return int(all(one.low > 0 for one in found)) - int(all(one.high < 0 for one in found))


class Effect(StrEnum):
    """What can be said of a method's score beside the baseline's.

    HELPED and HURT need `ENOUGH_SEEDS` paired seeds, a t interval and a bootstrap interval that both leave out 0, and
    p < 0.05 after Holm's correction over the methods of the plan. With fewer seeds there is no verdict.
    """

    HELPED = "helped"
    HURT = "hurt"
    UNDECIDED = "can't tell"
    FEW = "too few seeds"


@dataclass(frozen=True)
class Verdict:
    """What is said of a method, and its p after Holm's correction over the plan's methods; NaN for too few seeds."""

    effect: Effect
    p: float


@dataclass(frozen=True)
class Summary:
    """A measure of a method: mean and standard deviation over its seeds, and its difference from the baseline."""

    mean: float
    sd: float
    n: int
    difference: Difference | None


@dataclass(frozen=True)
class Relative:
    """TTB, BSF or another ratio of a method: of the curves averaged over seeds, and of each seed by itself.

    Attributes:
        value: Of the averaged curves, over the seeds that method and baseline both have; infinity where the method
            never gets there, NaN where there is nothing to get to.
        interval: Its paired bootstrap interval, whose ends may be infinite; None for too few seeds.
        median: Of the single seeds, each with its own baseline run; a seed that never gets there counts as infinite, so
            the median is finite where more than half get there.
        reached: How many seeds get there.
        n: How many seeds have something to get to.
        singles: Each of these seeds' own, in the seeds' order.
    """

    value: float
    interval: Interval | None
    median: float
    reached: int
    n: int
    singles: tuple[float, ...]


@dataclass(frozen=True)
class Share:
    """A method's gain over the baseline as a share of the oracle's, with its paired bootstrap interval."""

    value: float
    interval: Interval | None


@dataclass(frozen=True)
class OracleGain:
    """Whether the task can tell methods apart: the oracle's gain over the baseline, and whether it is one."""

    difference: Difference | None
    tells_apart: bool


@dataclass(frozen=True)
class SeedsNeeded:
    """How many seeds a method needs, by the deviation of its present paired differences, with power 0.8.

    Attributes:
        sd: The standard deviation of the differences over the present seeds.
        n: How many these are.
        found: The least true difference that this many seeds find, tested alone.
        alone: By wanted difference: seeds for the t test alone, at least `ENOUGH_SEEDS`; None for more than 1,000.
        in_plan: The same among all methods of the plan: at Holm's strictest step, 0.05 over their number.
    """

    sd: float
    n: int
    found: float
    alone: dict[float, int | None]
    in_plan: dict[float, int | None]


@dataclass(frozen=True)
class Pair:
    """A method's score less that of another one that is not the baseline as a rule.

    Attributes:
        method, other: Their names.
        difference: The paired difference at the headline's budget.
        p: After Holm's correction over all pairs of methods; NaN for too few seeds.
        told: Whether they can be told apart: by the rule of `Effect`, with this p.
    """

    method: str
    other: str
    difference: Difference
    p: float
    told: bool


@dataclass(frozen=True)
class Rank:
    """A method's place among all that are ranked, by mean score.

    Attributes:
        rank: Its place, 1 the best.
        interval: 95 % of the resamples of the seeds have it between these places.
        first: In which share of the resamples it is the best; a tie counts in parts.
        n: Over how many seeds, common to all that are ranked.
    """

    rank: int
    interval: Interval
    first: float
    n: int


@dataclass(frozen=True)
class Statistics:
    """What can be said of the scores at the headline's budget.

    Attributes:
        tests: How many methods Holm's correction is over: those of the plan, run or not, but baseline and oracle.
        verdicts: By method; those alone that have a seed in common with the baseline.
        needed: Seeds that a wanted difference from the baseline needs, by method; from 3 seeds on, and of differences
            that vary.
        pairs: Differences between any two methods, the better-ranked first.
        ranks: By method; the oracle and methods with fewer than half of the baseline's seeds are not ranked.
    """

    tests: int = 0
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    needed: dict[str, SeedsNeeded] = field(default_factory=dict)
    pairs: tuple[Pair, ...] = ()
    ranks: dict[str, Rank] = field(default_factory=dict)
