"""How large a run's pool was, which its files say only indirectly."""

from __future__ import annotations

import numpy as np

from rollwise.evaluation import RunData
from rollwise.evaluation.group_table import GroupTable

# Less than one prompt of any pool.
LEAST_COVERAGE = 1e-12


def pool_size(run: RunData, groups: GroupTable) -> int | None:
    """The pool's size; None where the files don't tell.

    From the last `curriculum/coverage`, the share of the pool that was asked for by that step, and the prompts that
    were; else the config's `train_prompts`. Never less than the prompts that were asked for. While a run goes on, and
    after a kill, `rollouts.jsonl` is a step ahead of that line.
    """
    asked = int(np.unique(groups.prompt[groups.train]).size)
    coverage = run.column("curriculum/coverage")
    known = np.flatnonzero(np.isfinite(coverage) & (coverage > LEAST_COVERAGE))
    if known.size and asked:
        by_then = np.unique(groups.prompt[groups.train & (groups.step <= run.steps[known[-1]])]).size
        return max(asked, round(by_then / float(coverage[known[-1]])))
    said = run.config.get("train_prompts")
    if isinstance(said, int) and not isinstance(said, bool) and said > 0:
        return max(asked, said)
    return None
