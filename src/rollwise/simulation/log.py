"""What happened in a simulated training, step by step, and its numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rollwise.evaluation.calibration import brier_score, pearson_correlation
from rollwise.evaluation.dynamics import success_rate_heatmap
from rollwise.evaluation.sizes import GroupSizes, group_sizes, join_sizes
from rollwise.options import check_whole
from rollwise.tickets.evidence import Evidence
from rollwise.tickets.ticket import Ticket


@dataclass(frozen=True, slots=True)
class SimulationLog:
    """What happened in a *simulated* training of T steps, W groups at most in each; row t is what step t asked.

    W is the batch; with a gate, which has further prompts rolled out, as many times that as it may make rounds.

    Attributes:
        slots: (T, W) int64, rows of the prompts in the world's pool; -1 where fewer came.
        predicted: (T, W) the mean score that the curriculum expected of each when it asked; NaN without a belief.
        expected: (T, W) the true success probability of each when it was rolled out; NaN where fewer came, as below.
        realised: (T, W) the mean reward of each group.
        outcome: (T, W) that of the rollouts that its ticket asked for: without a screening, by which it was predicted.
        effective_ratio: (T,) share of the groups whose rewards differ, of all that were rolled out.
        all_good: (T,) share of the groups that are all solved.
        all_bad: (T,) share of the others without contrast.
        sizes: (T, W) int64, rollouts of each group; 0 where fewer came.
        abs_advantage: (T,) mean |A| over the groups, A as the learner's `advantage` has it.
        squared_advantage: (T,) mean A^2 over the rollouts.
        zero_advantage: (T,) share of the rollouts with A = 0.
        score: (T,) mean true success probability on held-out prompts, when the step's rollouts are made.
        category_scores: (T, C) the same by category.
        final_score: that after the last training.
        category_share: (T, C) share of the prompts in each category.
        categories: C names.
        lanes: lane -> (T,) how many prompts came by it.
        rollouts: (T,) int64, rollouts made so far, to measure and to screen included.
        uncharged_rollouts: (T,) int64, those made so far for an oracle, which `rollouts` leaves out.
        group_size: rollouts a group.
    """

    slots: np.ndarray
    predicted: np.ndarray
    expected: np.ndarray
    realised: np.ndarray
    outcome: np.ndarray
    effective_ratio: np.ndarray
    all_good: np.ndarray
    all_bad: np.ndarray
    sizes: np.ndarray
    abs_advantage: np.ndarray
    squared_advantage: np.ndarray
    zero_advantage: np.ndarray
    score: np.ndarray
    category_scores: np.ndarray
    final_score: float
    category_share: np.ndarray
    categories: tuple[str, ...]
    lanes: dict[str, np.ndarray]
    rollouts: np.ndarray
    uncharged_rollouts: np.ndarray
    group_size: int

    def contrast(self, since: int = 0) -> float:
        """Share of all groups that were rolled out from row `since` on whose rewards differ; NaN without a group.

        Not the mean of the steps' shares: with a gate a step that finds less contrast rolls out more groups, so that
        uniform sampling would seem to find more with a gate than without.
        """
        groups = (self.slots[since:] >= 0).sum(axis=1)
        mixed = np.where(groups > 0, self.effective_ratio[since:], 0.0) @ groups
        return float(mixed / groups.sum()) if groups.any() else math.nan

    def average(self, values: np.ndarray) -> np.ndarray:
        """Mean of a value of each prompt, (N,), over those that each step asked for, (T,); NaN where none came."""
        there = self.slots >= 0
        sums = np.where(there, np.asarray(values, dtype=np.float64)[self.slots], 0.0).sum(axis=1)
        counts = there.sum(axis=1)
        return np.asarray(np.where(counts > 0, sums / np.maximum(counts, 1), np.nan))


def parts(series: np.ndarray, n: int = 3) -> np.ndarray:
    """Means of a series (T, ...) over `n` equal parts of training, (n, ...); NaN is left out.

    >>> parts(np.array([0.0, 1.0, 2.0, 3.0, 4.0, 6.0])).tolist()
    [0.5, 2.5, 5.0]
    """
    return np.array([np.nanmean(part, axis=0) for part in np.array_split(series, check_whole("n", n, least=1))])


def heatmap(log: SimulationLog, bins: int | None = None) -> np.ndarray:
    """Share of each step's groups by realised success rate, (T, bins); BOTS, appendix F.4 and Figure 7.

    Bin b of `bins` holds the rates nearest to b / (bins - 1), so the first and the last hold the ends. By default one
    for each possible number of successes in a group, 0/G to G/G. A step in which nothing came is NaN.
    """
    bins = log.group_size + 1 if bins is None else check_whole("bins", bins, least=2)
    steps = np.broadcast_to(np.arange(len(log.realised))[:, None], log.realised.shape)
    edges = np.arange(len(log.realised) + 1, dtype=np.float64) - 0.5  # a column for each step
    return success_rate_heatmap(steps.ravel(), log.realised.ravel(), edges, bins).T


@dataclass(slots=True)
class Recorder:
    """The arrays of a `SimulationLog` while they are filled.

    Attributes:
        steps: T.
        width: W.
        group_size: rollouts a group.
        categories: C names.
        made: rollouts so far that are charged.
    """

    steps: int
    width: int
    group_size: int
    categories: tuple[str, ...]
    made: int = 0
    rows: int = 0
    arrays: dict[str, np.ndarray] = field(init=False)
    lanes: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        groups, by_category = (self.steps, self.width), (self.steps, len(self.categories))
        self.arrays = {
            "slots": np.full(groups, -1, dtype=np.int64),
            **{name: np.full(groups, np.nan) for name in ("predicted", "expected", "realised", "outcome")},
            **{name: np.full(self.steps, np.nan) for name in ("effective_ratio", "all_good", "all_bad")},
            "sizes": np.zeros(groups, dtype=np.int64),
            **{name: np.full(self.steps, np.nan) for name in ("abs_advantage", "squared_advantage", "zero_advantage")},
            "score": np.full(self.steps, np.nan),
            "category_scores": np.full(by_category, np.nan),
            "category_share": np.zeros(by_category),
            **{name: np.zeros(self.steps, dtype=np.int64) for name in ("rollouts", "uncharged_rollouts")},
        }

    def begun(self, row: int, score: float, category_scores: np.ndarray) -> None:
        """Note how good the learner is as a step's rollouts begin."""
        self.rows = row + 1
        self.arrays["score"][row], self.arrays["category_scores"][row] = score, category_scores

    def spent(self, row: int, rollouts: int, *, charged: bool = True) -> None:
        """Count rollouts that were made."""
        self.arrays["rollouts" if charged else "uncharged_rollouts"][row] += rollouts
        self.made += rollouts if charged else 0

    def asked(self, row: int, tickets: list[Ticket], slots: np.ndarray, expected: np.ndarray) -> None:
        """Note what was asked for, after what the step has asked for already."""
        start = int(np.count_nonzero(self.arrays["slots"][row] >= 0))
        here = slice(start, start + len(slots))
        self.arrays["slots"][row, here], self.arrays["expected"][row, here] = slots, expected
        self.arrays["predicted"][row, here] = [np.nan if t.predicted is None else t.predicted for t in tickets]
        for ticket in tickets:
            self.lanes.setdefault(ticket.lane, np.zeros(self.steps, dtype=np.int64))[row] += 1

    def came(
        self, row: int, evidence: Evidence, category: np.ndarray, advantages: list[np.ndarray], outcome: list[float]
    ) -> None:
        """Note what came of all that a step asked for.

        Args:
            row: of the step.
            evidence: of K groups.
            category: (K,) their categories.
            advantages: K arrays.
            outcome: K mean rewards without those of screenings.
        """
        if not len(evidence):
            return
        flat = np.concatenate(advantages)
        self.arrays["sizes"][row, : len(evidence)] = [len(own) for own in advantages]
        self.arrays["squared_advantage"][row] = np.square(flat).mean()
        self.arrays["zero_advantage"][row] = (flat == 0.0).mean()
        self.arrays["realised"][row, : len(evidence)] = evidence.mean
        self.arrays["outcome"][row, : len(evidence)] = outcome
        self.arrays["category_share"][row] = np.bincount(category, minlength=len(self.categories)) / len(category)
        for name in ("all_good", "all_bad", "abs_advantage"):
            self.arrays[name][row] = getattr(evidence, name).mean()
        self.arrays["effective_ratio"][row] = evidence.mixed.mean()

    def log(self, final_score: float) -> SimulationLog:
        """All of it, as far as the training went."""
        arrays = {name: array[: self.rows] for name, array in self.arrays.items()}
        for name in ("rollouts", "uncharged_rollouts"):
            arrays[name] = np.cumsum(arrays[name])
        return SimulationLog(
            **arrays,
            final_score=final_score,
            categories=self.categories,
            lanes={lane: counts[: self.rows] for lane, counts in self.lanes.items()},
            group_size=self.group_size,
        )


def summary(log: SimulationLog, n_prompts: int, category_scores: np.ndarray) -> dict[str, float]:
    """The numbers of one run; those that nothing is known of are NaN.

    Args:
        log: what happened.
        n_prompts: in the pool.
        category_scores: (C,) scores at the end.
    """
    steps, asked = len(log.effective_ratio), log.slots[log.slots >= 0]
    brier, correlation = calibration(log.predicted, log.outcome)
    return {
        "effective_ratio": log.contrast(),
        "effective_ratio_2nd_half": log.contrast(steps // 2),
        "score": log.final_score,
        "hardest": float(np.fmin.reduce(category_scores)),
        **{name: _mean(getattr(log, name)) for name in ("abs_advantage", "squared_advantage", "zero_advantage")},
        "coverage": len(np.unique(asked)) / n_prompts,
        "brier": brier,
        "correlation": correlation,
        "steps": float(steps),
        "rollouts": float(log.rollouts[-1]),
        "uncharged_rollouts": float(log.uncharged_rollouts[-1]),
    }


def sizes_of_log(log: SimulationLog) -> GroupSizes | None:
    """How many rollouts the groups have; None where all are of one size."""
    came = log.sizes > 0
    return group_sizes(log.sizes[came], log.predicted[came], log.realised[came])


def method_sizes(runs: Sequence[Mapping[str, Any]]) -> dict[str, GroupSizes]:
    """How many rollouts the groups of each method have, all seeds together, of those whose groups differ in size."""
    of: dict[str, list[GroupSizes]] = {}
    for run in runs:
        if "sizes" in run:
            of.setdefault(run["method"], []).append(GroupSizes.from_dict(run["sizes"]))
    return {name: joined for name, found in of.items() if (joined := join_sizes(found)) is not None}


def sizes_in_words(grouped: Mapping[str, GroupSizes]) -> str:
    """A line for each method whose groups differ in size, for a table's caption."""
    ends = {name: (found.histogram[0][0], found.histogram[-1][0]) for name, found in grouped.items()}
    return "".join(
        f"\n{name}: groups of {low} to {high} rollouts, {grouped[name].mean:.1f} on the average"
        for name, (low, high) in ends.items()
    )


def calibration(predicted: np.ndarray, realised: np.ndarray) -> tuple[float, float]:
    """Brier score, the mean of (predicted - realised)^2, and Pearson's correlation, of mean scores of any shape.

    NaN where nothing was predicted, or one of them does not vary.

    >>> calibration(np.array([0.5, 0.5, 1.0, 1.0, np.nan]), np.array([0.25, 0.25, 0.75, 0.75, 0.5]))
    (0.0625, 1.0)
    """
    known = ~np.isnan(predicted) & ~np.isnan(realised)
    p, r = np.clip(predicted[known], 0.0, 1.0), realised[known]  # a belief may leave [0, 1] by a rounding error
    return brier_score(p, r), pearson_correlation(p, r)


def _mean(values: np.ndarray) -> float:
    return float(np.nanmean(values)) if not np.isnan(values).all() else math.nan
