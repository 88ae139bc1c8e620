"""The length half of a head: how far E[l] is from the tokens that were to come, along the rollouts. numpy alone.

Source: `frontier-and-zip-rc-lite`, section 6 and appendix B.7: its length predictions are weaker than its values, and
what uses them "should be gated" on them. The paper gives no measure and no threshold; these are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rollwise.evaluation.calibration import pearson_correlation
from rollwise.inference.measures.measures import Estimate
from rollwise.inference.policies.candidates import FloatArray
from rollwise.rng import stream_generator

USABLE, BLIND, UNKNOWN = "usable", "blind", "unknown"


def length_errors(remaining: Sequence[FloatArray], prompt: ArrayLike, steps: Sequence[int]) -> list[dict[str, Any]]:
    """The error of E[l] after this many tokens, of the rollouts that go on beyond.

    A rollout of T tokens has T - t to come after t of them. `error` is the mean |E[l] - (T - t)|, `bias` the mean of
    the difference, `blind` the error of the best constant, the median of what was to come. `skill` is 1 - error /
    blind, with a 95 % interval over prompts: 0 for a head that knows no more than the constant.

    Args:
        remaining: (M,) arrays (T,) of expected remaining tokens at the positions that produced the tokens.
        prompt: (M,).
        steps: Tokens, 0 or more.

    >>> tracks = [np.array([3.0, 2.0, 1.0]), np.array([5.0, 4.0, 3.0, 2.0, 1.0])]
    >>> [(at["alive"], at["error"], at["blind"], at["skill"]["value"]) for at in length_errors(tracks, [0, 1], [0, 3])]
    [(2, 0.0, 1.0, 1.0), (1, 0.0, 0.0, nan)]
    """
    prompts, lengths = np.asarray(prompt), np.array([len(track) for track in remaining])
    found = []
    for step in steps:
        alive = np.flatnonzero(lengths > step)
        said = np.array([remaining[i][step] for i in alive.tolist()])
        came = (lengths[alive] - step).astype(np.float64)
        off = np.abs(came - np.median(came)) if len(came) else came
        error = np.abs(said - came)
        found.append(
            {
                "step": int(step),
                "alive": len(alive),
                "error": _mean(error),
                "bias": _mean(said - came),
                "blind": _mean(off),
                "correlation": pearson_correlation(said, came) if len(came) > 1 else float("nan"),
                "skill": _skill(error, off, prompts[alive]),
            }
        )
    return found


def length_gate(skill: dict[str, float]) -> str:
    """Whether what uses E[l] (early stop's latency, utility's charge) may: "usable", "blind" or "unknown".

    >>> length_gate({"value": 0.3, "low": 0.1, "high": 0.4}), length_gate({"value": 0.1, "low": -0.1, "high": 0.2})
    ('usable', 'blind')
    """
    if np.isnan(skill["low"]):
        return UNKNOWN
    return USABLE if skill["low"] > 0 else BLIND


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _skill(error: FloatArray, blind: FloatArray, prompt: Any) -> dict[str, float]:
    """1 - error / blind, and its interval over prompts; NaN where the best constant has no error."""
    if not blind.sum():
        return asdict(Estimate(float("nan")))
    _, place = np.unique(prompt, return_inverse=True)
    sums = [np.bincount(place, weights=one) for one in (error, blind)]
    drawn = stream_generator(0, "length").integers(len(sums[0]), size=(1000, len(sums[0])))
    mine, theirs = (one[drawn].sum(axis=1) for one in sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        resampled = np.where(theirs > 0, 1 - mine / theirs, np.nan)
    return asdict(Estimate.of(float(1 - error.sum() / blind.sum()), resampled if len(sums[0]) > 1 else []))
