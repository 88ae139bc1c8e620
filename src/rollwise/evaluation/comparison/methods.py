"""One method's result: its measures and curves over seeds, beside the baseline's of the same seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rollwise.evaluation.bootstrap import FEWEST_SEEDS, bootstrap_interval, percentile_interval, resample_weights
from rollwise.evaluation.comparison.bands import PLACES, gap_band
from rollwise.evaluation.comparison.data import (
    BSF_PERCENTS,
    COMPARED,
    RATIO_OF_BEST,
    TTB_PERCENTS,
    ComparedRuns,
    relatives,
    resampled_relatives,
)
from rollwise.evaluation.comparison.estimates import Difference, OracleGain, Relative, Share, Summary
from rollwise.evaluation.comparison.mean_curves import GapBand, MeanCurve
from rollwise.evaluation.comparison.results import AxisResult, MethodResult, RunResult
from rollwise.evaluation.comparison.student import paired_p, t_interval
from rollwise.evaluation.curves import Curve, FloatArray, run_curve, time_of_best
from rollwise.evaluation.run_measures import Measure

# The parts of a budget over which what each step has is averaged, for a curve.
PARTS = 20


@dataclass(frozen=True)
class Methods:
    """Everything that a method's result is made from."""

    data: ComparedRuns
    rows: Sequence[RunResult]
    baseline: str
    oracle: str | None
    measures: dict[str, Measure]
    resamples: int
    seed: int

    def method(self, method: str, gains: Mapping[str, OracleGain]) -> MethodResult:
        """One method's result."""
        seeds = tuple(row.seed for row in self.compared(method))
        paired = {row.seed for row in self.compared(self.baseline)}
        return MethodResult(
            name=method,
            seeds=seeds,
            paired=tuple(seed for seed in seeds if seed in paired),
            measures={k: self.summary(method, k, None, m.better) for k, m in self.measures.items()} if seeds else {},
            axes={axis: found for axis in self.data.budgets if (found := self.on_axis(method, axis)) is not None},
            shares={key: self.share(method, key) if gain.tells_apart else None for key, gain in gains.items()},
        )

    def compared(self, method: str) -> list[RunResult]:
        """The method's compared runs."""
        return [row for row in self.rows if row.method == method and row.status == COMPARED]

    def values(self, method: str, key: str, axis: str | None) -> dict[int, float]:
        """A measure's finite values by seed."""
        found = {row.seed: row.value(key, axis) for row in self.compared(method)}
        return {seed: value for seed, value in found.items() if math.isfinite(value)}

    def summary(self, method: str, key: str, axis: str | None, better: int) -> Summary:
        """Mean and spread of a measure, and its difference from the baseline."""
        own = self.values(method, key, axis)
        numbers = np.array(list(own.values()))
        difference = None
        if method != self.baseline:
            base = self.values(self.baseline, key, axis)
            gaps = paired_gaps(own, base)
            difference = self.difference(gaps, better) if gaps.size else None
        return Summary(_mean(numbers), _sd(numbers), len(numbers), difference)

    def difference(self, gaps: FloatArray, better: int) -> Difference:
        """The mean of paired differences, (n,)."""
        mean, sd, n = _mean(gaps), _sd(gaps), len(gaps)
        return Difference(
            mean=mean,
            sd=sd,
            interval=bootstrap_interval(gaps, resamples=self.resamples, seed=self.seed),
            t_interval=t_interval(mean, sd, n) if n >= FEWEST_SEEDS else None,
            p=float(paired_p(mean, sd, n)) if n >= FEWEST_SEEDS else math.nan,
            better=int((better * gaps > 0).sum()) if better else None,
            n=n,
        )

    def on_axis(self, method: str, axis: str) -> AxisResult | None:
        """The method on one axis; None where it has no curve there."""
        seeds = self.data.seeds(axis, method)
        if not seeds or self.data.grid(axis, method, seeds)[0].size == 0:
            return None
        paired = self.data.seeds(axis, method, self.baseline)
        cut = self.data.end(axis, paired, method, self.baseline) if paired else math.nan
        found = self.relatives(method, axis, paired, cut)
        end = self.data.end(axis, seeds, method)
        own = self.data.grid(axis, method, paired, cut) if paired else (np.empty(0), np.empty((0, 0)))
        return AxisResult(
            cut=cut,
            score=self.summary(method, "score", axis, 1),
            area=self.summary(method, "area", axis, 1),
            effective_task_ratio=self.summary(method, "effective_task_ratio", axis, 1),
            ttb={percent: found[f"ttb_{percent}"] for percent in TTB_PERCENTS},
            bsf={percent: found[f"bsf_{percent}"] for percent in BSF_PERCENTS},
            time_of_best=float(time_of_best(own[0], own[1].mean(axis=0)[None])[0]) if own[0].size else math.nan,
            time_of_best_ratio=found[RATIO_OF_BEST],
            curve=_mean_curve(*self.data.grid(axis, method, seeds, end)),
            ratio=self.ratio(method, axis, seeds, end),
            gap=self.gap(method, paired, cut) if paired and axis == self.data.headline else None,
        )

    def gap(self, method: str, seeds: Sequence[int], cut: float) -> GapBand | None:
        """The difference from the baseline at common places of the headline's axis, over these seeds."""
        axis = self.data.headline
        own, base = (self.data.grid(axis, name, seeds, cut) for name in (method, self.baseline))
        if method == self.baseline or not own[0].size or not base[0].size:
            return None
        x = np.linspace(max(own[0][0], base[0][0]), min(own[0][-1], base[0][-1]), PLACES)
        at = [np.stack([np.interp(x, grid, curve) for curve in curves]) for grid, curves in (own, base)]
        return gap_band(x, at[0] - at[1], seed=self.seed)

    def relatives(self, method: str, axis: str, seeds: Sequence[int], cut: float) -> dict[str, Relative]:
        """TTB, BSF and ratio of the times of the best: of the curves averaged over these seeds, and of single seeds."""
        value: dict[str, FloatArray] = {}
        resampled: dict[str, FloatArray] = {}
        if seeds:
            own, base = (self.data.grid(axis, name, seeds, cut) for name in (method, self.baseline))
            # numpy's mean leaves a flat curve flat; weights of 1/n would let it rise by a rounding.
            averaged, base_averaged = ((x, y.mean(axis=0)[None]) for x, y in (own, base))
            value = relatives(axis, averaged, base_averaged, cut)
            if len(seeds) >= FEWEST_SEEDS and method != self.baseline:
                weights = resample_weights(len(seeds), resamples=self.resamples, seed=self.seed)
                resampled = resampled_relatives(axis, weights, own, base, cut)
        found = {}
        for key in [*(f"ttb_{p}" for p in TTB_PERCENTS), *(f"bsf_{p}" for p in BSF_PERCENTS), RATIO_OF_BEST]:
            singles = np.array([row.value(key, axis) for row in self.compared(method)])
            singles = singles[~np.isnan(singles)]
            found[key] = Relative(
                value=float(value[key][0]) if key in value else math.nan,
                interval=percentile_interval(resampled[key]) if key in resampled else None,
                median=float(np.median(singles)) if singles.size else math.nan,  # infinite if a middle one is
                reached=int(np.isfinite(singles).sum()),
                n=len(singles),
                singles=tuple(singles.tolist()),
            )
        return found

    def ratio(self, method: str, axis: str, seeds: Sequence[int], end: float) -> MeanCurve | None:
        """The effective task ratio averaged over parts of the way to `end`, then over seeds; x is each part's end."""
        found = [run_curve(self.data.runs[method, seed], "frac_mixed", axis) for seed in seeds]
        return mean_of_parts([curve for curve in found if curve is not None], end)

    def oracle_gain(self, oracle: str, key: str) -> OracleGain:
        """Whether the oracle beats the baseline; only then can the task tell methods apart."""
        gain = self.summary(oracle, key, self.data.headline, 1).difference
        return OracleGain(gain, gain is not None and gain.side > 0)

    def share(self, method: str, key: str) -> Share | None:
        """The method's mean gain over the baseline / the oracle's, over the seeds that all three have."""
        own, base, best = (
            self.values(name, key, self.data.headline) for name in (method, self.baseline, str(self.oracle))
        )
        seeds = sorted(own.keys() & base.keys() & best.keys())
        gains = np.array([own[s] - base[s] for s in seeds])
        oracle_gains = np.array([best[s] - base[s] for s in seeds])
        if method == self.baseline or not seeds or oracle_gains.mean() <= 0:
            return None
        interval = None
        if len(seeds) >= FEWEST_SEEDS and method != self.oracle:
            weights = resample_weights(len(seeds), resamples=self.resamples, seed=self.seed)
            top, bottom = weights @ gains, weights @ oracle_gains
            interval = percentile_interval(np.divide(top, bottom, out=np.full(len(top), np.nan), where=bottom > 0))
        return Share(float(gains.mean() / oracle_gains.mean()), interval)


def paired_gaps(one: Mapping[int, float], other: Mapping[int, float]) -> FloatArray:
    """The first's values less the other's, (n,), of the seeds that both have, in their order."""
    return np.array([one[seed] - other[seed] for seed in sorted(one.keys() & other.keys())])


def _mean_curve(x: FloatArray, y: FloatArray) -> MeanCurve:
    sd = y.std(axis=0, ddof=1).tolist() if len(y) > 1 else []
    return MeanCurve(tuple(x.tolist()), tuple(y.mean(axis=0).tolist()), tuple(sd))


def mean_of_parts(curves: Sequence[Curve], end: float) -> MeanCurve | None:
    """Curves averaged over at most 20 parts of the way to `end`, then over runs; x is each part's end."""
    if not curves:
        return None
    edges = np.linspace(0, end, min(PARTS, *(len(curve.x) for curve in curves)) + 1)
    return _mean_curve(edges[1:], np.stack([_part_means(curve, edges) for curve in curves]))


def _part_means(curve: Curve, edges: FloatArray) -> FloatArray:
    """The curve's mean over each part (low, high] between the edges, (P,); a part without an entry is interpolated."""
    # A step's line says what was spent by its end, so the step belongs to the part that its x ends in.
    part = np.searchsorted(edges, curve.x, side="left") - 1
    inside = (part >= 0) & (part < len(edges) - 1)
    count = np.bincount(part[inside], minlength=len(edges) - 1)
    total = np.bincount(part[inside], weights=curve.y[inside], minlength=len(edges) - 1)
    some = count > 0
    if not some.any():
        return np.full(len(count), float(curve.y.mean()))
    return np.asarray(np.interp(edges[1:], edges[1:][some], total[some] / count[some]), dtype=np.float64)


def _mean(numbers: FloatArray) -> float:
    return float(numbers.mean()) if numbers.size else math.nan


def _sd(numbers: FloatArray) -> float:
    return float(numbers.std(ddof=1)) if numbers.size > 1 else math.nan
