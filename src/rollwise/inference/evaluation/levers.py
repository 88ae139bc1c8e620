"""Why a setting costs what it does: winners lost by giving up or by choosing, and what two levers save together.

Source: `frontier-and-zip-rc-lite`, appendices A.3 (oracle accuracy) and B.7 (keep rate, compounding). numpy alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rollwise.errors import ConfigError
from rollwise.inference.evaluation.pareto import RESAMPLES, PolicyRun
from rollwise.inference.measures.measures import Estimate
from rollwise.inference.policies.candidates import FloatArray
from rollwise.rng import stream_generator


@dataclass(frozen=True)
class WhereLost:
    """What becomes of the prompts that some candidate of the full run solves.

    Attributes:
        oracle: Share of prompts with a success among the candidates carried to the end.
        given_up: The baseline's oracle minus this one: prompts whose last success was given up or never begun.
        missed: Oracle minus accuracy: prompts with a success that was not chosen.
        keep_rate: Of the candidates that began, the share carried to the end.
    """

    oracle: float
    given_up: Estimate
    missed: Estimate
    keep_rate: float


def where_lost(run: PolicyRun, baseline: PolicyRun, *, resamples: int = RESAMPLES) -> WhereLost | None:
    """Whether giving up lost the winners or the choice missed them; None for runs that hold no oracle.

    `given_up + missed` is the baseline's oracle minus the run's accuracy.
    """
    if run.oracle is None or baseline.oracle is None or run.begun is None or run.carried is None:
        return None
    drawn = stream_generator(0, "prompts").integers(len(run.oracle), size=(resamples, len(run.oracle)))
    return WhereLost(
        oracle=float(run.oracle.mean()),
        given_up=Estimate.mean(baseline.oracle - run.oracle, drawn),
        missed=Estimate.mean(run.oracle - run.accuracy, drawn),
        keep_rate=float(run.carried.sum() / max(run.begun.sum(), 1.0)),
    )


@dataclass(frozen=True)
class Compounded:
    """What two levers save together, against the product of what they leave when pulled alone.

    Attributes:
        product: 1 - (1 - saving of the one) * (1 - saving of the other).
        beyond: The saving of both minus `product`; above 0 they help each other.
    """

    product: float
    beyond: Estimate


def compounded(
    both: PolicyRun, one: PolicyRun, other: PolicyRun, baseline: PolicyRun, *, resamples: int = RESAMPLES
) -> Compounded:
    """The saving in row-forwards of two levers against the product of both (B.7), with an interval over prompts.

    Raises:
        ConfigError: the runs have other numbers of prompts.
    """
    costs = [run.row_forwards for run in (both, one, other, baseline)]
    n = len(costs[0])
    if any(len(cost) != n for cost in costs) or not n:
        raise ConfigError(f"all runs must be of the same prompts, got {[len(cost) for cost in costs]}")
    drawn = stream_generator(0, "prompts").integers(n, size=(resamples, n))
    whole = np.stack([cost.sum() for cost in costs])
    resampled = np.stack([cost[drawn].sum(axis=1) for cost in costs])
    beyond = _left(resampled) - resampled[0] / resampled[3]
    left = float(_left(whole))
    return Compounded(1 - left, Estimate.of(left - float(whole[0] / whole[3]), beyond))


def _left(costs: FloatArray) -> FloatArray:
    """The product of what each lever leaves of the baseline's cost."""
    return np.asarray(costs[1] / costs[3] * costs[2] / costs[3])
