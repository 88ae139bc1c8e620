"""The numbers of one simulated run."""

from __future__ import annotations

import math

import numpy as np

from rollwise.evaluation.calibration import brier_score, pearson_correlation
from rollwise.simulation.log import SimulationLog


def summary(log: SimulationLog, n_prompts: int, category_scores: np.ndarray) -> dict[str, float]:
    """The numbers of one run; those that nothing is known of are NaN.

    Args:
        log: what happened.
        n_prompts: in the pool.
        category_scores: (C,) scores at the end.
    """
    ratio, asked = log.effective_ratio, log.slots[log.slots >= 0]
    brier, correlation = calibration(log.predicted, log.realised)
    return {
        "effective_ratio": _mean(ratio),
        "effective_ratio_2nd_half": _mean(ratio[len(ratio) // 2 :]),
        "score": log.final_score,
        "hardest": float(np.fmin.reduce(category_scores)),
        "abs_advantage": _mean(log.abs_advantage),
        "coverage": len(np.unique(asked)) / n_prompts,
        "brier": brier,
        "correlation": correlation,
        "steps": float(len(ratio)),
        "rollouts": float(log.rollouts[-1]),
        "uncharged_rollouts": float(log.uncharged_rollouts[-1]),
    }


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
