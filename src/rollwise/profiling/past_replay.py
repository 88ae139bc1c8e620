"""What `rollwise simulate --replay` would say of past rollouts, in short."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from rollwise.errors import RollwiseError
from rollwise.runs.names import METRICS_FILE
from rollwise.runs.past import PastRollouts
from rollwise.simulation.methods import DEFAULT_METHODS
from rollwise.simulation.one_run import play
from rollwise.simulation.replay import ReplayWorld
from rollwise.simulation.replay_log import log_of, read_log
from rollwise.simulation.worlds import idle_mark
from rollwise.tickets.outcome import RewardSpec

SEEDS = 3
MOST_GROUPS = 6400
"""Each method replays at most this many groups: seconds for all of them."""


def replay(past: PastRollouts, spec: RewardSpec) -> dict[str, Any]:
    """The share of groups with contrast that each default method would have found, over a few seeds.

    Returns:
        `why`, the reason why the log can't be replayed; or `steps`, `of` (the log's), `logged` (the log's own share in
        these steps), `seeds` and `methods`, each with `ratio`, `sd`, `difference` (from uniform sampling, seed by seed)
        and `mark`.
    """
    try:
        log = read_log(past.path) if (Path(past.path) / METRICS_FILE).is_file() else log_of(past, spec)
    except RollwiseError as error:
        return {"why": str(error)}
    steps = min(log.steps, max(1, MOST_GROUPS // log.batch))
    found, marks = dict[str, list[float]](), dict[str, str | None]()
    sizes = steps, log.batch, log.group_size
    for name, method in DEFAULT_METHODS.items():
        found[name] = []
        for seed in range(SEEDS):
            world = ReplayWorld(log, seed=seed)
            curriculum, happened = play(method, world, seed, sizes, most_rollouts=math.prod(sizes))
            found[name].append(happened.contrast())
            marks[name] = idle_mark(curriculum, world)
    uniform = np.array(found["uniform"])
    return {
        "logged": log.contrast_until(steps),
        "steps": steps,
        "of": log.steps,
        "seeds": SEEDS,
        "methods": [
            {
                "method": name,
                "ratio": float(np.mean(ratios)),
                "sd": float(np.std(ratios, ddof=1)),
                "difference": float(np.mean(np.array(ratios) - uniform)),
                "mark": marks[name],
            }
            for name, ratios in found.items()
        ],
    }
