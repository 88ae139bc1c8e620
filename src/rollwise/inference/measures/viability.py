"""Whether a head is worth decoding with, by rollouts that are there: value@K must be above random@K.

Source: `frontier-and-zip-rc-lite`, section 4.2 and appendix B.5, which required it before anything was decoded live.
The interval is ours. numpy alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rollwise.inference.measures.measures import Estimate
from rollwise.options import check_whole
from rollwise.rng import stream_generator
from rollwise.runs.evaluation_file import FAILED, PASSED


def viability(values_end: ArrayLike, rewards: ArrayLike, prompt: ArrayLike, k: int) -> dict[str, Any] | None:
    """What choosing the best-valued of K of a prompt's rollouts gains over a random one, with a 95 % interval.

    Means over the disjoint groups of K of each prompt, then over prompts; prompts are what is resampled.

    Args:
        values_end: (M,).
        rewards: (M,), 1 for a success and 0 else.
        prompt: (M,).
        k: Candidates of a group; prompts with fewer rollouts are left out.

    Returns:
        `k`, `prompts`, `value`, `random`, `gain`, `low`, `high` and `verdict`, "passed" where `low` is above 0; None
        where fewer than two prompts have K rollouts.

    >>> found = viability([0.9, 0.1, 0.2, 0.7], [1, 0, 0, 1], [0, 0, 1, 1], 2)
    >>> found["value"], found["random"], found["verdict"]
    (1.0, 0.5, 'passed')
    """
    check_whole("k", k, least=1)
    values, earned = np.asarray(values_end, dtype=np.float64), np.asarray(rewards, dtype=np.float64)
    prompts = np.asarray(prompt)
    chosen, floor = [], []
    for one in np.unique(prompts):
        mine = np.flatnonzero(prompts == one)
        groups = mine[: len(mine) // k * k].reshape(-1, k)
        if len(groups):
            best = groups[np.arange(len(groups)), values[groups].argmax(axis=1)]
            chosen.append(float(earned[best].mean()))
            floor.append(float(earned[groups].mean()))
    if len(chosen) < 2:
        return None
    gain = np.array(chosen) - np.array(floor)
    drawn = stream_generator(0, "viability").integers(len(gain), size=(2000, len(gain)))
    found = Estimate.mean(gain, drawn)
    return {
        "k": k,
        "prompts": len(gain),
        "value": float(np.mean(chosen)),
        "random": float(np.mean(floor)),
        "gain": found.value,
        "low": found.low,
        "high": found.high,
        "verdict": PASSED if found.low > 0 else FAILED,
    }
