"""What is estimated of a method over its seeds, as plain records."""

from __future__ import annotations

from dataclasses import dataclass

from rollwise.evaluation.bootstrap import Interval


@dataclass(frozen=True)
class Difference:
    """A method's values less the baseline's of the same seeds.

    Attributes:
        mean: The mean over the seeds that both have.
        sd: The standard deviation over them; NaN for one.
        interval: The paired bootstrap interval of the mean; None for too few seeds.
        better: In how many seeds the method did better; None for a measure where neither more nor less is better.
        n: How many seeds both have.
    """

    mean: float
    sd: float
    interval: Interval | None
    better: int | None
    n: int


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
    """

    value: float
    interval: Interval | None
    median: float
    reached: int
    n: int


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
