"""Curves of a method, averaged over its seeds, as plain records."""

from __future__ import annotations

from dataclasses import dataclass

from rollwise.evaluation.sizes import GroupSizes
from rollwise.evaluation.success_rates import SuccessMap


@dataclass(frozen=True)
class MeanCurve:
    """A curve averaged over seeds: x, mean and standard deviation, equally long; no deviation for one seed."""

    x: tuple[float, ...]
    mean: tuple[float, ...]
    sd: tuple[float, ...]


@dataclass(frozen=True)
class GapBand:
    """A method's paired difference from the baseline along the budget, and a band that holds all of it in 95 %.

    Attributes:
        x: The places.
        mean: The mean difference over the seeds at each.
        low, high: The band's ends; empty for fewer than three seeds.
    """

    x: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class MethodSignals:
    """What a method's steps were like: of all its compared runs, as far as all of them came by the headline's budget.

    Attributes:
        curves: By the names of `evaluation.signals.SIGNALS`, over training steps, averaged over parts of the way and
            then over seeds; one that no run has is absent.
        rates: The success rates of the groups of all its runs together; None where they have none.
        sizes: How many rollouts the groups of all its runs have; None where all are of one size.
    """

    curves: dict[str, MeanCurve]
    rates: SuccessMap | None
    sizes: GroupSizes | None = None
