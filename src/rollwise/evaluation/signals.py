"""What a run's steps were like, as curves over steps: what the papers draw of several methods in one figure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rollwise.evaluation.curves import Curve, FloatArray
from rollwise.evaluation.judgments import curriculum_column
from rollwise.evaluation.lengths import SOLVED, UNSOLVED, lengths_by_step
from rollwise.evaluation.run_measures import rollout_rewards
from rollwise.evaluation.sizes import GroupSizes, sizes_of
from rollwise.evaluation.success_rates import RateCounts, rate_counts
from rollwise.runs.group_table import GroupTable
from rollwise.runs.reading import RunData

SIGNALS = {
    "mixed": "groups whose rewards differ",
    "some_solved": "groups not all failed",
    "some_failed": "groups not all solved",
    "abs_advantage": "mean |A|",
    "reward": "mean reward of the rollouts",
    "judge_reward": "judge reward",
    "prediction_mean": "mean prediction",
    "prediction_std": "deviation of the predictions",
    "solved_length": "tokens of a solved completion",
    "unsolved_length": "tokens of one not solved",
}
"""Name -> words. A group has failed or is solved as a whole where its rewards agree, below `solved_at` or not."""


@dataclass(frozen=True)
class RunSignals:
    """One run's.

    Attributes:
        curves: By the names of `SIGNALS`, over training steps; one that the run does not have is absent.
        rates: Its groups by step and success rate; None without any.
        sizes: How many rollouts its groups have; None where all are of one size.
    """

    curves: dict[str, Curve]
    rates: RateCounts | None
    sizes: GroupSizes | None = None

    @classmethod
    def of(cls, run: RunData, groups: GroupTable) -> RunSignals:
        """Those of a run with these groups."""
        found = {name: (x[np.isfinite(y)], y[np.isfinite(y)]) for name, x, y in _columns(run, groups)}
        curves = {name: Curve(x, y) for name, (x, y) in found.items() if len(x)}
        return cls(curves, rate_counts(groups), sizes_of(groups))


def _columns(run: RunData, groups: GroupTable) -> Iterator[tuple[str, FloatArray, FloatArray]]:
    """Name, steps and values of each."""
    steps = run.metrics["step"]
    yield "mixed", steps, run.column("frac_mixed")
    yield "some_solved", steps, 1 - run.column("frac_all_bad")
    yield "some_failed", steps, 1 - run.column("frac_all_good")
    yield "abs_advantage", steps, run.column("abs_advantage")
    yield "reward", steps, rollout_rewards(run)
    for name in ("judge_reward", "prediction_mean", "prediction_std"):
        yield name, steps, curriculum_column(run, name)
    at, lengths = lengths_by_step(groups)
    yield "solved_length", at.astype(np.float64), lengths[:, SOLVED]
    yield "unsolved_length", at.astype(np.float64), lengths[:, UNSOLVED]
